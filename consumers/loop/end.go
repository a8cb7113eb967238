package loop

import (
	"context"
	"errors"
	"time"

	"tutti/internal/core"
)

// BusyDelay is the delay before a message is redelivered whose scope, page or record is being processed for another one.
const BusyDelay = time.Second

var (
	// ErrBusy ends the processing of a message whose scope or page is being processed for another message or by another
	// consumer. The message is redelivered after BusyDelay.
	ErrBusy = errors.New("another message of the same scope is being processed")
	// ErrJobEnded ends the processing of a message whose job has ended, by a cancel or in another process. The message is
	// redelivered at once, to end what is left of the job.
	ErrJobEnded = errors.New("the job has ended")
)

// End ends the processing of m with its error: it acknowledges m when err is nil, and requeues it otherwise.
func (l *Loop) End(ctx context.Context, m core.Message, err error) {
	defer l.Release(m)
	switch {
	case err == nil:
		l.Ack(ctx, m)
	case l.Stopping(ctx):
		l.RequeueNow(ctx, m)
	case errors.Is(err, ErrBusy):
		l.Requeue(ctx, m, BusyDelay)
	case errors.Is(err, ErrJobEnded):
		l.Requeue(ctx, m, 0)
	default:
		req := m.Request()
		page := 0
		if req.Page != nil {
			page = req.Page.Number
		}
		l.log.Warn("request will be retried", "scope", string(req.Scope), "job_id", req.JobID, "organization", req.Organization,
			"page", page, "attempts", Attempts(m)+1, "err", err)
		l.Requeue(ctx, m, l.RetryDelay(m, err))
	}
}

// Requeue returns a message to the queue, to be redelivered after delay.
func (l *Loop) Requeue(ctx context.Context, m core.Message, delay time.Duration) {
	l.RequeueAs(ctx, m, m.Request(), delay)
}

// RequeueAs is Requeue for a message whose Request has become req.
func (l *Loop) RequeueAs(ctx context.Context, m core.Message, req core.Request, delay time.Duration) {
	switch m := m.(type) {
	case *batchedMessage:
		m.requeue(ctx, req, delay)
	case *delivery:
		m.requeue(ctx, req, delay)
	}
}

// RequeueNow returns a message to the queue, to be redelivered at once, also when ctx has ended.
func (l *Loop) RequeueNow(ctx context.Context, m core.Message) {
	l.Requeue(context.WithoutCancel(ctx), m, 0)
}

// Ack acknowledges a message. When the queue does not respond, the message is redelivered, and processing it again changes
// nothing.
func (l *Loop) Ack(ctx context.Context, m core.Message) {
	if err := m.Ack(ctx); err != nil {
		l.log.Warn("acknowledging a request", "request_id", m.Request().ID, "err", err)
	}
}

// Release ends the heartbeat of a message that has ended.
func (l *Loop) Release(m core.Message) { l.heartbeat.release(m) }

// Attempts counts the earlier attempts at m's Request.
func Attempts(m core.Message) int { return m.Request().Attempts + m.Deliveries() - 1 }

// RetryDelay returns how long to wait before m is retried after err.
func (l *Loop) RetryDelay(m core.Message, err error) time.Duration { return l.Delay(Attempts(m), err) }
