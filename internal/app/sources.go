package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tutti/consumers"
	"tutti/ingest"
	"tutti/ingest/kafka"
	"tutti/ingest/kafka/connection"
	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index/rebuild"
	"tutti/internal/report/why"
	"tutti/internal/upstream/protocol"
)

// indexer fetches records and writes them: the consumers, and the sources of their Requests.
type indexer struct {
	*base
	search  *searching
	builtIn *builtIn
	// upstreams are the upstreams of the consumers, by repository code.
	upstreams map[string]*watchedUpstream
	rebuilds  map[string]*rebuild.Rebuild
	// contradictions say, by repository, why the mapping file cannot be put into the index; nil where it could.
	contradictions map[string]*atomic.Pointer[contradiction]
	declared       *declarations
	consumers      *consumers.Consumers
	traced         []why.Repository
	ingest         *ingest.Service
	readers        []*kafka.Reader
	relay          *ingest.Relay // nil without a repository that the built-in one feeds
}

// openIngest creates the service for triggers, notifications and retries.
func (x *indexer) openIngest(context.Context) error {
	sources := make(map[string]ingest.Source, len(x.cfg.Repositories))
	for _, rc := range x.cfg.Repositories {
		source := ingest.Source{WebhookSecret: rc.Notifications.Webhook.Secret.Reveal()}
		if t := protocol.Of(rc.Type); t.EventServer != nil {
			source.Server = t.EventServer(rc.Own())
		}
		sources[rc.Code] = source
	}
	letters := x.data.Queue.DeadLetters()
	var err error
	x.ingest, err = ingest.New(x.cfg.CoreRepositories(), x.data.Queue, x.data.Queue.Jobs(), x.data.Queue.Cells(), ingest.Config{
		Logger: x.log.With("component", "ingest"), Metrics: x.metrics.ingest,
		Formats: protocol.EventFormats(), Sources: sources, Batches: x.data.Queue, Lists: x.data.Queue.Lists(), DeadLetters: letters, DeadLetterIndex: letters, Signatures: x.data.Queue.Signatures(),
		Tracer: x.tracer, Served: x.data.Queue.Served,
	})
	if err == nil {
		x.cleanup.Push("times of the last notifications", func(ctx context.Context) error {
			x.tryStoreNotifications(ctx)
			return nil
		})
	}
	return err
}

// tryStoreNotifications stores when the repositories were last notified. Nothing is lost with these times, so a failure is only logged.
func (x *indexer) tryStoreNotifications(ctx context.Context) {
	if err := x.ingest.StoreNotifications(ctx); err != nil && ctx.Err() == nil {
		x.log.Warn("storing when repositories were last notified", "err", err)
	}
}

// topic identifies a Kafka topic of a cluster and the consumer group that reads it. brokers are sorted and joined by commas.
type topic struct{ brokers, name, group string }

// feed is a topic's connection and what is done with its messages.
type feed struct {
	connection connection.Config
	ingest.FeedConfig
}

// topics returns the Kafka topics to read. Repositories with the same topic and group share a reader, because several readers of a
// group would each receive only part of the messages.
func (x *indexer) topics() map[topic]*feed {
	feeds := make(map[topic]*feed)
	of := func(key string, k config.KafkaConnection, name, group string) *feed {
		t := topic{strings.Join(slices.Sorted(slices.Values(k.Brokers)), ","), name, group}
		if feeds[t] == nil { // the others connect the same way: the configuration was validated
			feeds[t] = &feed{settings.KafkaConnection(key, k), ingest.FeedConfig{Topic: name}}
		}
		return feeds[t]
	}
	for i, rc := range x.cfg.Repositories {
		if k := rc.Notifications.Kafka; len(k.Brokers) > 0 {
			f := of(settings.KafkaKey(i), k.KafkaConnection, k.Topic, k.Group)
			f.Repositories = append(f.Repositories, rc.Code)
		}
	}
	if k := x.cfg.Ingest.Kafka; len(k.Brokers) > 0 {
		of(settings.RequestTopicKey, k.KafkaConnection, k.RequestTopic, k.Group).Requests = true
	}
	return feeds
}

// startSources starts the Kafka readers and the reconciler. Brokers that do not answer do not fail it; /ready and the metrics
// report them.
func (x *indexer) startSources(ctx context.Context) error {
	feeds := x.topics()
	for _, t := range slices.SortedFunc(maps.Keys(feeds), func(x, y topic) int {
		return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.group, y.group), cmp.Compare(x.brokers, y.brokers))
	}) {
		if err := x.startReader(ctx, t, *feeds[t]); err != nil {
			return fmt.Errorf("topic %s: %w", t.name, err)
		}
	}
	every := make(map[string]time.Duration)
	for _, rc := range x.cfg.Repositories {
		if rc.Reconcile.Every > 0 {
			every[rc.Code] = rc.Reconcile.Every
		}
	}
	reconciler, err := ingest.NewReconciler(x.ingest, x.data.Queue.Cells(), every, ingest.ReconcilerConfig{
		Logger: x.log.With("component", "reconcile"),
	})
	if err != nil {
		return err
	}
	reconciler.Start()
	x.cleanup.Push("reconciler", reconciler.Stop)
	return nil
}

func (x *indexer) startReader(ctx context.Context, t topic, of feed) error {
	handler, err := x.ingest.NewFeed(of.FeedConfig)
	if err != nil {
		return err
	}
	reader, err := kafka.New(kafka.Config{
		Connection: of.connection, Topic: t.name, Group: t.group,
		Logger: x.log.With("component", "kafka"), Metrics: x.metrics.kafka,
	}, handler)
	if err != nil {
		return err
	}
	if err := reader.Start(ctx); err != nil {
		return err
	}
	x.readers = append(x.readers, reader)
	x.cleanup.Push("reader of topic "+t.name, func(ctx context.Context) error { return x.stopReader(ctx, t, reader) })
	return nil
}

// stopReader stops a reader. It leaves most of the stop timeout to the steps after it. An abandoned batch is read again.
func (x *indexer) stopReader(ctx context.Context, t topic, reader *kafka.Reader) error {
	ctx, cancel := partOf(ctx, 1, 4)
	defer cancel()
	err := reader.Stop(ctx)
	if core.CodeOf(err) == core.CodeUnavailable {
		x.log.Info("messages in flight are read again after the next start", "topic", t.name)
		return nil
	}
	return err
}

// brokers returns why topics cannot be read; known is false when no topic is configured.
func (x *indexer) brokers() (known bool, err error) {
	var errs []error
	for _, r := range x.readers {
		errs = append(errs, r.Health())
	}
	return len(x.readers) > 0, errors.Join(errs...)
}

// startRelay starts publishing the built-in repository's changes to the queue.
func (x *indexer) startRelay(context.Context) error {
	rc := x.builtIn.localRepository()
	if rc == nil {
		return nil
	}
	relay, err := ingest.NewRelay(x.ingest, x.builtIn.metadata, rc.Code, ingest.RelayConfig{Logger: x.log.With("component", "outbox")})
	if err != nil {
		return err
	}
	relay.Start()
	x.relay = relay
	x.cleanup.Push("outbox relay", x.stopRelay)
	return nil
}

// stopRelay stops the relay. It leaves most of the stop timeout to the steps after it. Unsent events are sent after the next start.
func (x *indexer) stopRelay(ctx context.Context) error {
	ctx, cancel := partOf(ctx, 1, 4)
	defer cancel()
	err := x.relay.Stop(ctx)
	if core.CodeOf(err) == core.CodeUnavailable {
		x.log.Info("changes in flight are published after the next start")
		return nil
	}
	return err
}
