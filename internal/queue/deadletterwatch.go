package queue

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/retry"
)

const (
	// watchWait is how long one pull of a watch stays open.
	watchWait = 30 * time.Second
	// readerTTL is how long the server keeps an unused consumer of a reader.
	readerTTL = 2 * time.Minute
	// loadTime limits loading the dead letters at start.
	loadTime = time.Minute
)

// errGap: a message was lost in transit, so the watch restarts after the last one it received.
var errGap = errors.New("a message was lost on the way")

// awaitLoaded blocks until the dead letters that existed at the start are loaded.
func (d *DeadLetters) awaitLoaded(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	return wrapError("reading the dead letters", d.index.awaitLoaded(ctx))
}

// watch updates the index until ctx ends.
func (d *DeadLetters) watch(ctx context.Context) {
	d.queue.restartOnError(ctx, "dead_letters", d.follow)
}

// follow reads the stream from the last applied message on, headers only, until an error. Messages need no ack here,
// so each is sent once, and the consumer's own sequence shows whether one was lost.
func (d *DeadLetters) follow(ctx context.Context) error {
	info, err := d.stream.Info(ctx)
	if err != nil {
		return err
	}
	if info.State.LastSeq < d.index.lastSeen() {
		d.index.reset()
	}
	reader, err := d.queue.newReader(ctx, d.stream, jetstream.ConsumerConfig{
		FilterSubject: deadPrefix + ">", HeadersOnly: true,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: d.index.lastSeen() + 1,
	})
	if err != nil {
		return err
	}
	defer reader.close(ctx)
	wait := time.Duration(0)
	for {
		messages, err := reader.next(ctx, wait)
		if err != nil {
			return err
		}
		for _, m := range messages {
			d.apply(m)
		}
		if len(messages) > 0 {
			d.updateMetric()
			continue
		}
		// Everything that existed at the start is loaded: wait for changes.
		d.index.setLoaded()
		wait = watchWait
	}
}

// apply applies one message of the stream to the index.
func (d *DeadLetters) apply(m readMessage) {
	if isRemoved(m.Header) {
		d.index.remove(m.Subject, m.sequence)
		return
	}
	d.index.put(m.Subject, m.Header.Get(headerReason), m.Header.Get(headerBody) != "", m.sequence)
}

// reader reads messages of a stream in order, through its own ephemeral consumer.
type reader struct {
	queue  *Queue
	stream jetstream.Stream
	name   string
	puller *puller
	// delivered is the consumer's sequence of the last message.
	delivered uint64
}

// readMessage is a message with its sequence in the stream and the time at which it was stored.
type readMessage struct {
	*nats.Msg
	sequence uint64
	storedAt time.Time
}

func (q *Queue) newReader(ctx context.Context, s jetstream.Stream, cfg jetstream.ConsumerConfig) (*reader, error) {
	cfg.AckPolicy = jetstream.AckNonePolicy
	cfg.MemoryStorage = true
	cfg.Replicas = 1
	cfg.InactiveThreshold = readerTTL
	consumer, err := s.CreateConsumer(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r := &reader{queue: q, stream: s, name: consumer.CachedInfo().Name}
	if r.puller, err = newPuller(q.nc, q.connection, s.CachedInfo().Config.Name, r.name); err != nil {
		return nil, err
	}
	r.puller.strict = true
	return r, nil
}

// next returns the next messages; none when there are none within wait. errGap when one was lost.
func (r *reader) next(ctx context.Context, wait time.Duration) ([]readMessage, error) {
	raw, err := r.puller.next(ctx, budget{messages: maxPull / 2}, wait)
	if err != nil {
		return nil, err
	}
	messages := make([]readMessage, 0, len(raw))
	for _, m := range raw {
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		if meta.Sequence.Consumer != r.delivered+1 {
			return nil, errGap
		}
		r.delivered++
		messages = append(messages, readMessage{Msg: m, sequence: meta.Sequence.Stream, storedAt: meta.Timestamp})
	}
	return messages, nil
}

// close deletes the consumer; if that fails, the server does so after readerTTL.
func (r *reader) close(ctx context.Context) {
	r.puller.close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if !r.queue.nc.IsConnected() {
		return
	}
	if err := r.stream.DeleteConsumer(ctx, r.name); err != nil {
		r.queue.log.Debug("consumer of a reader not deleted", "err", err)
	}
}

// readAll calls each for every message that a stream has now on the subjects of filter. The read may be served by a
// replica that is behind what was acknowledged: then it waits for the replica.
func (q *Queue) readAll(ctx context.Context, s jetstream.Stream, filter string, each func(readMessage) error) error {
	last, err := lastSequence(ctx, s, filter)
	if err != nil {
		return err
	}
	reader, err := q.newReader(ctx, s, jetstream.ConsumerConfig{
		FilterSubject: filter, DeliverPolicy: jetstream.DeliverAllPolicy,
	})
	if err != nil {
		return err
	}
	defer reader.close(ctx)
	heard, read, wait := time.Now(), uint64(0), time.Duration(0)
	for {
		messages, err := reader.next(ctx, wait)
		if errors.Is(err, errGap) || errors.Is(err, errConnectionChanged) {
			return core.WrapError(core.CodeUnavailable, "the connection was lost", err)
		}
		if errors.Is(err, errConsumerLost) && reader.delivered == 0 && time.Since(heard) < callTimeout {
			err = nil // a replica may not know a new consumer yet
		} else if err == nil && len(messages) == 0 && read >= last {
			return nil
		}
		if err != nil {
			return err
		}
		for _, m := range messages {
			if err := each(m); err != nil {
				return err
			}
			heard, read = time.Now(), m.sequence
		}
		if len(messages) > 0 {
			continue
		}
		if time.Since(heard) > callTimeout {
			return core.NewError(core.CodeUnavailable, "a replica of the queue is behind its leader")
		}
		// The server may count too few messages of a consumer that was created while one was replaced, and answers a pull
		// without a wait by that count only.
		wait = busyPause
		if err := retry.Sleep(ctx, busyPause); err != nil {
			return err
		}
		if last, err = lastSequence(ctx, s, filter); err != nil { // the last message may have been removed
			return err
		}
	}
}

// lastSequence returns the sequence of the last message on the subjects of filter, as the stream's leader has it, 0 for none.
func lastSequence(ctx context.Context, s jetstream.Stream, filter string) (uint64, error) {
	m, err := s.GetLastMsgForSubject(ctx, filter)
	if isNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return m.Sequence, nil
}
