package queue

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
)

const (
	// publishRetries and publishRetryWait bridge the moment in which a stream of a cluster has no leader.
	publishRetries   = 3
	publishRetryWait = 100 * time.Millisecond
)

// Publish validates r and stores it in place of an older Request of the same subject; it returns when the server has
// it on disk. A Request as of an earlier version (AsOf), such as a removal of a topic that is read again, is stored as by
// PublishUnlessRemovalPending. A Request of the outbox is stored once per id: the same id again within two minutes is dropped and counts
// as stored. CodeInvalid for a bad Request, CodeOverloaded when the queue is full, CodeUnavailable when it does not
// answer; then the Request may be stored all the same, and repeating it does no harm.
func (q *Queue) Publish(ctx context.Context, r core.Request) error {
	if r.AsOf > 0 {
		return q.PublishUnlessRemovalPending(ctx, r)
	}
	err := q.publishRequest(ctx, r)
	q.metrics.countPublished(err)
	return err
}

// PublishUnlessRemovalPending is Publish for a Request that tutti makes by itself. If its subject holds a Request, waiting
// or in flight, it stores what core.Request.MergeWithPending returns; nothing to store is success. A pending Request to
// index is replaced, since its record may already have been fetched.
func (q *Queue) PublishUnlessRemovalPending(ctx context.Context, r core.Request) error {
	err := q.publishUnlessRemovalPending(ctx, r)
	q.metrics.countPublished(err)
	return err
}

func (q *Queue) publishUnlessRemovalPending(ctx context.Context, r core.Request) error {
	subject, err := requestSubject(r)
	if err != nil {
		return err
	}
	sequence, offered := uint64(0), r
	for {
		err := q.publishRequest(ctx, offered, jetstream.WithExpectLastSequencePerSubject(sequence))
		if !isConflict(err) {
			return err
		}
		there, err := q.requests.GetLastMsgForSubject(ctx, subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			sequence, offered = 0, r
			continue
		case err != nil:
			return wrapError("reading the request that is there", err)
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

func (q *Queue) publishRequest(ctx context.Context, r core.Request, opts ...jetstream.PublishOpt) error {
	subject, err := requestSubject(r)
	if err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return core.WrapError(core.CodeInvalid, "encoding the request", err)
	}
	opts = append(opts, jetstream.WithExpectStream(streamRequests))
	if r.Cause == core.CauseOutbox && r.Attempts == 0 && r.ID != "" {
		opts = append(opts, jetstream.WithMsgID(r.ID))
	}
	err = q.publish(ctx, subject, data, opts...)
	return wrapError("publishing the request", err)
}

// Republish stores r, which is the Request of m with or without a change, not to be worked on before the time after from now,
// with its deliveries added to its attempts and as of m's version, so that m, which must have come from a Consumer of this
// Queue, is replaced and never reaches its last delivery. It is delivered at once all the same: who gets it reads its
// NotBefore. When a newer Request of the subject is there already, that one stands and nothing is stored. m needs no Ack
// afterwards. CodeOverloaded when the queue is full, as a cluster refuses replacements then too: m is still in flight, and the
// delivery that it has does not count.
func (q *Queue) Republish(ctx context.Context, m core.Message, r core.Request, after time.Duration) error {
	own, ok := m.(*message)
	if !ok {
		return core.NewError(core.CodeInvalid, "republishing a message that is not the queue's")
	}
	r.Attempts += own.deliveries
	r.NotBefore = time.Now().UTC().Add(after)
	defer own.forgetHandOuts(ctx)
	r.AsOf = own.version
	err := q.publishRequest(ctx, r, jetstream.WithExpectLastSequencePerSubject(own.sequence))
	if isConflict(err) {
		return nil
	}
	return err
}

// publish waits until the server has stored a message.
func (q *Queue) publish(ctx context.Context, subject string, data []byte, opts ...jetstream.PublishOpt) error {
	opts = append(opts, jetstream.WithRetryAttempts(publishRetries), jetstream.WithRetryWait(publishRetryWait))
	return q.write(ctx, func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, subject, data, opts...)
		return err
	})
}
