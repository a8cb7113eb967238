package natsread

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
)

const (
	// WatchWait is how long one pull of a watch stays open.
	WatchWait = 30 * time.Second
	// readerTTL is how long the server keeps an unused consumer of a reader.
	readerTTL = 2 * time.Minute
	// minRestartDelay and maxRestartDelay bound the pause after an error of a background loop.
	minRestartDelay = 100 * time.Millisecond
	maxRestartDelay = 10 * time.Second
)

// errGap: a message was lost in transit, so the watch restarts after the last one it received.
var errGap = errors.New("a message was lost in transit")

// RestartOnError runs follow, and again after every error, until ctx ends. The pauses grow while it fails quickly.
func RestartOnError(ctx context.Context, c *natsconn.Conn, what string, follow func(context.Context) error) {
	rest := minRestartDelay
	for ctx.Err() == nil {
		if _, connected := c.AwaitConnected(ctx, time.Now().Add(WatchWait), nil); !connected {
			continue
		}
		began := time.Now()
		err := follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxRestartDelay {
			rest = minRestartDelay
		}
		if c.NC.IsConnected() && !errors.Is(err, errConnectionChanged) {
			c.Log.Warn("restarting the watch of a stream", "watch", what, "err", err)
		}
		if retry.Sleep(ctx, retry.Jitter(rest)) != nil {
			return
		}
		rest = min(2*rest, maxRestartDelay)
	}
}

// Reader reads messages of a stream in order, through its own ephemeral consumer.
type Reader struct {
	conn   *natsconn.Conn
	stream jetstream.Stream
	name   string
	puller *Puller
	// delivered is the consumer's sequence of the last message.
	delivered uint64
}

// Message is a message with its sequence in the stream and the time at which it was stored.
type Message struct {
	*nats.Msg
	Sequence uint64
	StoredAt time.Time
}

// NewReader returns a reader of a stream through an ephemeral consumer with cfg.
func NewReader(ctx context.Context, c *natsconn.Conn, s jetstream.Stream, cfg jetstream.ConsumerConfig) (*Reader, error) {
	cfg.AckPolicy = jetstream.AckNonePolicy
	cfg.MemoryStorage = true
	cfg.Replicas = 1
	cfg.InactiveThreshold = readerTTL
	consumer, err := s.CreateConsumer(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r := &Reader{conn: c, stream: s, name: consumer.CachedInfo().Name}
	if r.puller, err = NewPuller(c, s.CachedInfo().Config.Name, r.name); err != nil {
		return nil, err
	}
	r.puller.strict = true
	return r, nil
}

// Next returns the next messages; none when there are none within wait. errGap when one was lost.
func (r *Reader) Next(ctx context.Context, wait time.Duration) ([]Message, error) {
	raw, err := r.puller.Next(ctx, Budget{Messages: maxPull / 2}, wait)
	if err != nil {
		return nil, err
	}
	messages := make([]Message, 0, len(raw))
	for _, m := range raw {
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		if meta.Sequence.Consumer != r.delivered+1 {
			return nil, errGap
		}
		r.delivered++
		messages = append(messages, Message{Msg: m, Sequence: meta.Sequence.Stream, StoredAt: meta.Timestamp})
	}
	return messages, nil
}

// Close deletes the consumer; if that fails, the server does so after readerTTL.
func (r *Reader) Close(ctx context.Context) {
	r.puller.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if !r.conn.NC.IsConnected() {
		return
	}
	if err := r.stream.DeleteConsumer(ctx, r.name); err != nil {
		r.conn.Log.Debug("consumer of a reader not deleted", "err", err)
	}
}

// All calls each for every message that a stream has now on the subjects of filter. The read may be served by a
// replica that is behind what was acknowledged: then it waits for the replica.
func All(ctx context.Context, c *natsconn.Conn, s jetstream.Stream, filter string, each func(Message) error) error {
	return readAll(ctx, c, s, jetstream.ConsumerConfig{FilterSubject: filter, DeliverPolicy: jetstream.DeliverAllPolicy}, each)
}

// maxSingleReads is how many messages After reads one by one, before it creates a consumer: that, and deleting it, takes as long as
// several of these reads.
const maxSingleReads = 8

// After is like All for the messages after a sequence, and cheap with none or few. headersOnly omits their data.
func After(
	ctx context.Context, c *natsconn.Conn, s jetstream.Stream, filter string, after uint64, headersOnly bool, each func(Message) error,
) error {
	last, err := LastSequence(ctx, s, filter)
	for n := 0; err == nil && n < maxSingleReads && !headersOnly; n++ {
		if last <= after {
			return nil
		}
		m, found := s.GetMsg(ctx, after+1, jetstream.WithGetMsgSubject(filter))
		if natsconn.IsNotFound(found) { // the last one was removed
			return nil
		}
		if err = found; err == nil {
			after = m.Sequence
			err = each(Message{Msg: &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}, Sequence: m.Sequence, StoredAt: m.Time})
		}
	}
	if err != nil || last <= after {
		return err
	}
	return readAll(ctx, c, s, jetstream.ConsumerConfig{
		FilterSubject: filter, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1, HeadersOnly: headersOnly,
	}, each)
}

// readAll reads the messages of a new consumer with cfg until it has read those that the stream has now.
func readAll(
	ctx context.Context, c *natsconn.Conn, s jetstream.Stream, cfg jetstream.ConsumerConfig, each func(Message) error,
) error {
	filter := cfg.FilterSubject
	last, err := LastSequence(ctx, s, filter)
	if err != nil {
		return err
	}
	reader, err := NewReader(ctx, c, s, cfg)
	if err != nil {
		return err
	}
	defer reader.Close(ctx)
	heard, read, wait := time.Now(), max(cfg.OptStartSeq, 1)-1, time.Duration(0)
	for {
		messages, err := reader.Next(ctx, wait)
		if errors.Is(err, errGap) || errors.Is(err, errConnectionChanged) {
			return core.WrapError(core.CodeUnavailable, "the connection was lost", err)
		}
		if errors.Is(err, ErrConsumerLost) && reader.delivered == 0 && time.Since(heard) < natsconn.CallTimeout {
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
			heard, read = time.Now(), m.Sequence
		}
		if len(messages) > 0 {
			continue
		}
		if time.Since(heard) > natsconn.CallTimeout {
			return core.NewError(core.CodeUnavailable, "a replica of the queue is behind its leader")
		}
		// The server may count too few messages of a consumer that was created while one was replaced, and answers a pull
		// without a wait by that count only.
		wait = BusyPause
		if err := retry.Sleep(ctx, BusyPause); err != nil {
			return err
		}
		if last, err = LastSequence(ctx, s, filter); err != nil { // the last message may have been removed
			return err
		}
	}
}

// LastSequence returns the sequence of the last message on the subjects of filter, as the stream's leader has it, 0 for none.
func LastSequence(ctx context.Context, s jetstream.Stream, filter string) (uint64, error) {
	m, err := s.GetLastMsgForSubject(ctx, filter)
	if natsconn.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return m.Sequence, nil
}
