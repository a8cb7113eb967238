package queue

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/subjects"
	"tutti/internal/span"
)

// publisher stores Requests in the stream of requests.
type publisher struct {
	conn       *natsconn.Conn
	requests   jetstream.Stream
	metrics    *Metrics
	maxPending int
	// openConsumers returns the consumers that are open.
	openConsumers func() []*Consumer
	// work counts the goroutines that Queue.Close waits for.
	work    *sync.WaitGroup
	batches batchLimiter
	gather  gatherer
}

// Publish validates r and stores it in place of an older Request of the same subject; it returns when the server has
// it on disk. A Request as of an earlier version (AsOf), such as a removal read again from a topic, is stored by
// PublishUnlessRemovalPending. A Request of the outbox is stored once per id: the same id within two minutes is
// dropped and counts as stored. A Request without a Traceparent gets that of the span of ctx. CodeInvalid for an invalid Request, CodeOverloaded when the queue is full,
// CodeUnavailable when it does not answer; then the Request may still be stored, and publishing it again is safe.
func (p *publisher) Publish(ctx context.Context, r core.Request) error {
	if r.AsOf > 0 {
		return p.PublishUnlessRemovalPending(ctx, r)
	}
	err := p.publishRequest(ctx, r)
	p.metrics.countPublished(err)
	return err
}

// PublishUnlessRemovalPending is Publish for a Request that tutti makes by itself. If its subject holds a Request, waiting
// or in flight, it stores what core.Request.MergeWithPending returns; nothing to store is success. A pending Request to
// index is replaced, since its record may already have been fetched.
func (p *publisher) PublishUnlessRemovalPending(ctx context.Context, r core.Request) error {
	err := p.publishUnlessRemovalPending(ctx, r)
	p.metrics.countPublished(err)
	return err
}

func (p *publisher) publishUnlessRemovalPending(ctx context.Context, r core.Request) error {
	subject, err := subjects.OfRequest(r)
	if err != nil {
		return err
	}
	sequence, offered := uint64(0), r
	for {
		err := p.publishRequest(ctx, offered, jetstream.WithExpectLastSequencePerSubject(sequence))
		if !natsconn.IsConflict(err) {
			return err
		}
		there, err := p.requests.GetLastMsgForSubject(ctx, subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			sequence, offered = 0, r
			continue
		case err != nil:
			return natsconn.WrapError("reading the pending request", err)
		}
		var pending core.Request
		sequence, offered = there.Sequence, r
		if json.Unmarshal(there.Data, &pending) != nil {
			continue
		}
		var replaces bool
		if offered, replaces = r.MergeWithPending(pending, versionOf(pending, there.Time)); !replaces {
			return nil
		}
	}
}

func (p *publisher) publishRequest(ctx context.Context, r core.Request, opts ...jetstream.PublishOpt) error {
	subject, err := subjects.OfRequest(r)
	if err != nil {
		return err
	}
	if r.Traceparent == "" {
		r.Traceparent = span.Traceparent(ctx)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return core.WrapError(core.CodeInvalid, "encoding the request", err)
	}
	opts = append(opts, jetstream.WithExpectStream(streamRequests))
	if r.Cause == core.CauseOutbox && r.Attempts == 0 && r.ID != "" {
		opts = append(opts, jetstream.WithMsgID(r.ID))
	}
	err = natsconn.Resend(ctx, func(ctx context.Context) error { // stored twice, it is processed twice, or conflicts with itself
		_, err := p.conn.Publish(ctx, &nats.Msg{Subject: subject, Data: data}, opts...)
		return err
	})
	return natsconn.WrapError("publishing the request", err)
}

// Republish stores r, the Request of m with or without changes, in place of m, with m's deliveries added to its
// attempts and as of m's version, so that m never reaches its last delivery. r must not be processed before after has
// passed: it is delivered at once, and the consumer reads its NotBefore. m must be from a Consumer of this Queue and
// needs no Ack afterwards. If the subject has a newer Request, nothing is stored. CodeOverloaded when the queue is
// full, since a cluster rejects replacements then too: m is still in flight, and its current delivery does not count.
func (p *publisher) Republish(ctx context.Context, m core.Message, r core.Request, after time.Duration) error {
	own, ok := m.(*message)
	if !ok {
		return core.NewError(core.CodeInvalid, "republishing a message of another queue")
	}
	r.Attempts += own.deliveries
	r.NotBefore = time.Now().UTC().Add(after)
	defer own.forgetHandOuts(ctx)
	r.AsOf = own.version
	err := p.publishRequest(ctx, r, jetstream.WithExpectLastSequencePerSubject(own.sequence))
	if natsconn.IsConflict(err) {
		return nil
	}
	return err
}
