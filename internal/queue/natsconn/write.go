package natsconn

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
)

const (
	// slowWriteTime is how long a write may take before the streams are probed: nats-server does not answer a message
	// that it could not write.
	slowWriteTime = 250 * time.Millisecond
	// publishRetries and publishRetryWait cover the time in which a stream of a cluster has no leader.
	publishRetries   = 3
	publishRetryWait = 100 * time.Millisecond
)

// Write runs one write to a stream, for at most CallTimeout. It fails at once while the streams cannot store, and
// ends early when a probe finds that during the write: nats-server does not answer a message that it could not write.
func (c *Conn) Write(ctx context.Context, write func(ctx context.Context) error) error {
	c.writes.RLock()
	defer c.writes.RUnlock()
	state := c.Durability.health()
	if state.Err() != nil {
		return context.Cause(state)
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	defer context.AfterFunc(state, cancel)()
	defer time.AfterFunc(slowWriteTime, c.Durability.RequestProbe).Stop()
	err := write(ctx)
	if err != nil && state.Err() != nil {
		return context.Cause(state)
	}
	if err != nil && core.CodeOf(WrapError("writing", err)) == core.CodeUnavailable {
		c.Durability.RequestProbe()
	}
	return err
}

// Publish stores a message and returns when the server has it on disk.
func (c *Conn) Publish(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (ack *jetstream.PubAck, err error) {
	opts = append(opts, jetstream.WithRetryAttempts(publishRetries), jetstream.WithRetryWait(publishRetryWait))
	err = c.Write(ctx, func(ctx context.Context) error {
		ack, err = c.JS.PublishMsg(ctx, m, opts...)
		return err
	})
	return ack, err
}

// Replace is Publish for a message in place of those that its subject has, which the server removes in the same step. The stream must allow
// rollups. A limit of one message for each subject is no alternative: the server does not store what that limit removes, and brings it
// back after a crash unless the subject has a newer message then. A consumer of the stream must not acknowledge: a rollup has it forget deliveries.
func (c *Conn) Replace(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	return c.Publish(ctx, replacing(m), opts...)
}

// replacing returns m with the header by which the server removes the earlier messages of its subject.
func replacing(m *nats.Msg) *nats.Msg {
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	return m
}

// Resend calls try again while it is not answered, for CallTimeout together: a cluster leaves calls without an answer, and an
// acknowledgement without an effect, while it elects a leader. The first attempt gets FirstAttemptTimeout, each further one twice as
// long. try must have the same effect when it runs again. What Write refuses is not tried again.
func Resend(ctx context.Context, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	for length := FirstAttemptTimeout; ; length *= 2 {
		attempt, end := context.WithTimeout(ctx, length)
		err := try(attempt)
		if _, refused := errors.AsType[*core.Error](err); refused { // by Write: the streams cannot store
			end()
			return err
		}
		unanswered := errors.Is(err, context.DeadlineExceeded)
		if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) { // no leader yet
			<-attempt.Done()
			unanswered = true
		}
		end()
		if !unanswered || ctx.Err() != nil {
			return err
		}
	}
}
