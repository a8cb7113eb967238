package deadletter

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
	"tutti/internal/queue/subjects"
)

// loadTime limits loading the dead letters at start.
const loadTime = time.Minute

// AwaitLoaded blocks until the dead letters that existed at the start are loaded.
func (d *Store) AwaitLoaded(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	return natsconn.WrapError("reading the dead letters", d.index.awaitLoaded(ctx))
}

// Watch updates the index until ctx ends.
func (d *Store) Watch(ctx context.Context) {
	natsread.RestartOnError(ctx, d.conn, "dead_letters", d.follow)
}

// follow reads the stream from the last applied message on, headers only, until an error. Messages need no ack here,
// so each is sent once, and the consumer's own sequence shows whether one was lost.
func (d *Store) follow(ctx context.Context) error {
	info, err := d.stream.Info(ctx)
	if err != nil {
		return err
	}
	if info.State.LastSeq < d.index.lastSeen() {
		d.index.reset()
	}
	reader, err := natsread.NewReader(ctx, d.conn, d.stream, jetstream.ConsumerConfig{
		FilterSubject: subjects.DeadPrefix + ">", HeadersOnly: true,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: d.index.lastSeen() + 1,
	})
	if err != nil {
		return err
	}
	defer reader.Close(ctx)
	wait := time.Duration(0)
	for {
		messages, err := reader.Next(ctx, wait)
		if err != nil {
			return err
		}
		for _, m := range messages {
			d.apply(m)
		}
		if err := d.removeObsolete(ctx); err != nil {
			return err
		}
		if len(messages) > 0 {
			d.UpdateMetric()
			continue
		}
		// Everything that existed at the start is loaded: wait for changes.
		d.index.setLoaded()
		wait = natsread.WatchWait
	}
}

// apply applies one message of the stream to the index.
func (d *Store) apply(m natsread.Message) {
	if isRemoved(m.Header) {
		d.index.remove(m.Subject, m.Sequence)
		return
	}
	version, _ := strconv.ParseInt(m.Header.Get(headerVersion), 10, 64)
	d.index.put(entry{
		sequence: m.Sequence, subject: m.Subject, version: core.Version(version),
		body: m.Header.Get(headerBody) != "", named: m.Header.Get(headerNamed) != "",
	}, m.Header.Get(headerReason))
	// Afterwards: Clear, which does both in the other order, finds it in the index, or it is found here that the record was settled.
	if version > 0 && d.settled.after([]byte(m.Subject), core.Version(version)) {
		d.obsolete = append(d.obsolete, m.Subject)
	}
}
