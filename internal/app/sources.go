package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tutti/ingest"
	"tutti/ingest/kafka"
	"tutti/internal/core"
	"tutti/internal/upstream/lyric"
)

// openIngest creates the service for triggers, notifications and retries.
func (a *App) openIngest(context.Context) error {
	repositories := make([]core.Repository, 0, len(a.cfg.Repositories))
	sources := make(map[string]ingest.Source, len(a.cfg.Repositories))
	for _, rc := range a.cfg.Repositories {
		repositories = append(repositories, rc.Core())
		source := ingest.Source{WebhookSecret: rc.Notifications.Webhook.Secret.Reveal()}
		if s, ok := rc.Own().(*lyric.Settings); ok {
			source.LyricCategory, source.LyricEntity = s.CategoryID, s.Entity
		}
		sources[rc.Code] = source
	}
	letters := a.queue.DeadLetters()
	var err error
	a.ingest, err = ingest.New(repositories, a.queue, a.queue.Jobs(), a.queue.Cells(), ingest.Config{
		Logger: a.log.With("component", "ingest"), Metrics: a.metrics.ingest,
		Sources: sources, Batches: a.queue, DeadLetters: letters, DeadLetterIndex: letters, Signatures: a.queue,
	})
	return err
}

// topic is a Kafka topic as one consumer group of one cluster sees it.
type topic struct{ brokers, name, group string }

// topics returns the Kafka topics to read. Repositories with the same topic and group share a reader, because several readers of a
// group would each receive only part of the messages.
func (a *App) topics() map[topic]*ingest.FeedConfig {
	feeds := make(map[topic]*ingest.FeedConfig)
	feed := func(brokers []string, name, group string) *ingest.FeedConfig {
		brokers = slices.Clone(brokers)
		slices.Sort(brokers)
		t := topic{strings.Join(brokers, ","), name, group}
		if feeds[t] == nil {
			feeds[t] = &ingest.FeedConfig{Topic: name}
		}
		return feeds[t]
	}
	for _, rc := range a.cfg.Repositories {
		if k := rc.Notifications.Kafka; len(k.Brokers) > 0 {
			f := feed(k.Brokers, k.Topic, k.Group)
			f.Repositories = append(f.Repositories, rc.Code)
		}
	}
	if k := a.cfg.Ingest.Kafka; len(k.Brokers) > 0 {
		feed(k.Brokers, k.RequestTopic, k.Group).Requests = true
	}
	return feeds
}

// startSources starts the Kafka readers and the reconciler. Brokers that do not answer do not fail it; /ready and the metrics
// report them.
func (a *App) startSources(ctx context.Context) error {
	feeds := a.topics()
	for _, t := range slices.SortedFunc(maps.Keys(feeds), func(x, y topic) int {
		return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.group, y.group), cmp.Compare(x.brokers, y.brokers))
	}) {
		if err := a.startReader(ctx, t, *feeds[t]); err != nil {
			return fmt.Errorf("topic %s: %w", t.name, err)
		}
	}
	every := make(map[string]time.Duration)
	for _, rc := range a.cfg.Repositories {
		if rc.Reconcile.Every > 0 {
			every[rc.Code] = rc.Reconcile.Every
		}
	}
	reconciler, err := ingest.NewReconciler(a.ingest, a.queue.Cells(), every, ingest.ReconcilerConfig{
		Logger: a.log.With("component", "reconcile"),
	})
	if err != nil {
		return err
	}
	reconciler.Start()
	a.cleanup.push("reconciler", reconciler.Stop)
	return nil
}

func (a *App) startReader(ctx context.Context, t topic, feed ingest.FeedConfig) error {
	handler, err := a.ingest.NewFeed(feed)
	if err != nil {
		return err
	}
	reader, err := kafka.New(kafka.Config{
		Brokers: strings.Split(t.brokers, ","), Topic: t.name, Group: t.group,
		Logger: a.log.With("component", "kafka"), Metrics: a.metrics.kafka,
	}, handler)
	if err != nil {
		return err
	}
	if err := reader.Start(ctx); err != nil {
		return err
	}
	a.readers = append(a.readers, reader)
	a.cleanup.push("reader of topic "+t.name, func(ctx context.Context) error { return a.stopReader(ctx, t, reader) })
	return nil
}

// stopReader stops a reader. It leaves most of the stop timeout to the steps after it. An abandoned batch is read again.
func (a *App) stopReader(ctx context.Context, t topic, reader *kafka.Reader) error {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/4)
		defer cancel()
	}
	err := reader.Stop(ctx)
	if core.CodeOf(err) == core.CodeUnavailable {
		a.log.Info("messages in flight are read again after the next start", "topic", t.name)
		return nil
	}
	return err
}

// brokers reports whether every topic is read; nil when there is none.
func (a *App) brokers() (known bool, err error) {
	var faults []error
	for _, r := range a.readers {
		faults = append(faults, r.Health())
	}
	return len(a.readers) > 0, errors.Join(faults...)
}
