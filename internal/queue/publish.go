package queue

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/base/span"
	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/subjects"
	"tutti/internal/queue/together"
)

// publisher stores Requests in the stream of requests.
type publisher struct {
	conn       *natsconn.Conn
	log        *slog.Logger
	requests   jetstream.Stream
	metrics    *Metrics
	maxPending int
	// openConsumers returns the consumers that are open.
	openConsumers func() []*Consumer
	// together stores the Requests that replace whatever is pending.
	together *together.Batches
	batches  batchLimiter
	gather   gatherer
}

// Publish validates r and stores it in place of an older Request of the same subject; it returns when the server has
// it on disk. A Request as of an earlier version (AsOf), such as a removal read again from a topic, is stored by
// PublishUnlessRemovalPending. A Request of the outbox is stored once per id: the same id within two minutes is
// dropped and counts as stored. A Request without a Traceparent gets that of the span of ctx. CodeInvalid for an invalid Request,
// CodeOverloaded when the queue is full, also for a Request that would replace another one, CodeUnavailable when it does not answer; then
// the Request may still be stored, and publishing it again is safe.
func (p *publisher) Publish(ctx context.Context, r core.Request) error {
	if r.AsOf > 0 {
		return p.PublishUnlessRemovalPending(ctx, r)
	}
	err := p.publishNewest(ctx, r)
	p.metrics.countPublished(err)
	return err
}

// publishNewest stores r in place of the pending Request of its subject, unless r is sent again and the pending one is newer
// (core.Request.YieldsTo).
func (p *publisher) publishNewest(ctx context.Context, r core.Request) error {
	return p.publish(ctx, r, false)
}

// PublishUnlessRemovalPending is Publish for a Request that tutti makes by itself. If its subject holds a Request, waiting
// or in flight, it stores what core.Request.MergeWithPending returns; nothing to store is success. A pending Request to
// index is replaced, since its record may already have been fetched.
func (p *publisher) PublishUnlessRemovalPending(ctx context.Context, r core.Request) error {
	err := p.publish(ctx, r, true)
	p.metrics.countPublished(err)
	return err
}

// publish stores r in place of the pending Request of its subject, unless that stays (core.Request.YieldsTo); with merge what
// core.Request.MergeWithPending returns.
func (p *publisher) publish(ctx context.Context, r core.Request, merge bool) error {
	subject, err := subjects.OfRequest(r)
	if err != nil {
		return err
	}
	// repeated reports whether r may have been stored before: an answer was lost, or r is of the outbox, which sends a change again after a
	// crash.
	began, sequence, offered, repeated := time.Now(), uint64(0), r, r.Cause == core.CauseOutbox
	if !merge && !repeated {
		sequence = anySequence
	}
	for {
		attempts, err := p.publishAfter(ctx, subject, offered, sequence)
		if !natsconn.IsConflict(err) {
			return err
		}
		repeated = repeated || attempts > 1
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
		switch {
		case merge:
			var replaces bool
			if offered, replaces = r.MergeWithPending(pending, versionOf(pending, there.Time)); !replaces {
				return nil
			}
		case repeated && r.YieldsTo(pending):
			if before, err := together.StoredBefore(ctx, p.requests, there.Time, began); err != nil || !before || r.Cause == core.CauseOutbox {
				return err
			}
		}
	}
}

// anySequence is the sequence of the last message, whichever that is.
const anySequence = math.MaxUint64

// publishAfter stores r, of a subject, if the subject's last message has a sequence, in place of that message; 0 for no message. It returns how often
// it sent r. With anySequence what is sent again needs a subject without a message: a newer Request may have come after r.
//
// The replaced message is removed by its sequence. A rollup, by which the server would remove it in the same step, has the server forget deliveries:
// where it removes a message in flight, others in flight are never delivered again (nats-server 2.12.0 to 2.15.3).
func (p *publisher) publishAfter(ctx context.Context, subject string, r core.Request, sequence uint64) (attempts int, err error) {
	if r.Traceparent == "" {
		r.Traceparent = span.Traceparent(ctx)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return 0, core.WrapError(core.CodeInvalid, "encoding the request", err)
	}
	var done together.Stored
	waits := false // others of the subject do, until the replaced one is removed

	err = natsconn.Resend(ctx, func(ctx context.Context) error { // stored twice, it is processed twice, or conflicts with itself
		attempts++
		m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{jetstream.ExpectedStreamHeader: {streamRequests}}}
		if r.Cause == core.CauseOutbox && r.Attempts == 0 && r.ID != "" {
			m.Header.Set(jetstream.MsgIDHeader, r.ID)
		}
		var err error
		if sequence == anySequence {
			if attempts == 1 {
				done, err = p.together.Replace(ctx, m)
				waits = err == nil && done.Replaced > 0
				return err
			}
			sequence = 0
		}
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(sequence, 10))
		if sequence == 0 && attempts == 1 {
			done, err = p.together.Store(ctx, m)
			return err
		}
		ack, err := p.conn.Publish(ctx, m)
		if err == nil && !ack.Duplicate {
			done = together.Stored{Sequence: ack.Sequence, Replaced: sequence, Asked: true}
			p.together.Remember(subject, ack.Sequence)
		}
		return err
	})
	if err == nil && done.Replaced > 0 {
		if err := together.RemoveReplaced(ctx, p.requests, subject, done); err != nil {
			p.together.Forget(subject, done.Sequence) // the next one asks, and removes all
			p.log.Debug("a replaced request was not removed", "request_id", r.ID, "err", err)
		}
	}
	if waits {
		p.together.Removed(subject)
	}
	return attempts, natsconn.WrapError("publishing the request", err)
}

// Republish stores r, the Request of m with or without changes, in place of m, with m's deliveries added to its
// attempts and as of m's version, so that m never reaches its last delivery. r must not be processed before after has
// passed: it is delivered at once, and the consumer reads its NotBefore. m must be from a Consumer of this Queue and
// needs no Ack afterwards. If the subject has a newer Request, nothing is stored, and m ends. CodeOverloaded when the queue is
// full: m is still in flight, and its current delivery does not count.
func (p *publisher) Republish(ctx context.Context, m core.Message, r core.Request, after time.Duration) error {
	own, ok := m.(*message)
	if !ok {
		return core.NewError(core.CodeInvalid, "republishing a message of another queue")
	}
	r.Attempts += own.deliveries
	r.NotBefore = time.Now().UTC().Add(after)
	defer own.forgetHandOuts(ctx)
	r.AsOf = own.version
	subject, err := subjects.OfRequest(r)
	if err != nil {
		return err
	}
	_, err = p.publishAfter(ctx, subject, r, own.sequence)
	if natsconn.IsConflict(err) {
		return m.Ack(ctx)
	}
	return err
}
