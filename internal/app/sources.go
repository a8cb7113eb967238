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
)

// openIngest makes what takes triggers, notifications and retries.
func (a *App) openIngest(context.Context) error {
	repositories := make([]core.Repository, 0, len(a.cfg.Repositories))
	sources := make(map[string]ingest.Source, len(a.cfg.Repositories))
	for _, rc := range a.cfg.Repositories {
		repositories = append(repositories, rc.Core())
		sources[rc.Code] = ingest.Source{
			WebhookSecret: rc.Notifications.Webhook.Secret.Reveal(), LyricCategory: rc.Lyric.CategoryID,
			LyricEntity: rc.Lyric.Entity,
		}
	}
	jobs, letters := a.queue.Jobs(), a.queue.DeadLetters()
	var err error
	a.ingest, err = ingest.New(repositories, a.queue, jobs, jobs, ingest.Config{
		Logger: a.log.With("component", "ingest"), Metrics: a.metrics.ingest,
		Sources: sources, Batches: a.queue, Letters: letters, LetterIndex: letters, Signatures: a.queue,
	})
	return err
}

// topic is a Kafka topic as one consumer group of one cluster sees it.
type topic struct{ brokers, name, group string }

// topics returns what is read of Kafka. The repositories that name the same topic for the same group share a reader: the
// readers of a group would each see a part of its messages.
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

// startSources begins to read what repositories tell by Kafka, and to reconcile. Brokers that do not answer are waited
// for; /ready and the metrics say so.
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
	reconciler, err := ingest.NewReconciler(a.ingest, a.queue.Jobs(), every, ingest.ReconcilerConfig{
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

// stopReader leaves most of the time for stopping to what is stopped after it. A batch that is given up is read again.
func (a *App) stopReader(ctx context.Context, t topic, reader *kafka.Reader) error {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/4)
		defer cancel()
	}
	err := reader.Stop(ctx)
	if core.CodeOf(err) == core.CodeUnavailable {
		a.log.Info("messages in hand are read again after the next start", "topic", t.name)
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
