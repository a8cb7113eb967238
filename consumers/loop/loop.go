// Package loop pulls the Requests of a repository from its durable consumers and calls a handler for each message: bounded,
// only while the index takes writes, with heartbeats, retries, and a quarantine of poison messages after a crash.
//
// It imports internal/core, internal/base/retry and internal/base/span, and knows no upstream, no document and no job.
package loop

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"tutti/internal/base/retry"
	"tutti/internal/base/span"
	"tutti/internal/core"
)

// Source is one durable consumer. Fetch returns at most max messages as soon as one is available, and none after wait.
type Source interface {
	Fetch(ctx context.Context, max, maxBytes int, wait time.Duration) ([]core.Message, error)
}

// Requests publishes the Requests of messages again.
type Requests interface {
	// PublishUnlessRemovalPending publishes r unless the pending Request of the same record stands (core.Request.MergeWithPending),
	// which is success too.
	PublishUnlessRemovalPending(ctx context.Context, r core.Request) error
	// Republish publishes r, which is m's Request with or without changes, on its subject again with m's attempts and version,
	// not to be processed before after has passed, unless a newer Request is pending.
	Republish(ctx context.Context, m core.Message, r core.Request, after time.Duration) error
}

// Config holds the settings of a Loop; all but Tracer are required.
type Config struct {
	// Repository is the code of the repository.
	Repository string
	Logger     *slog.Logger
	// Tracer starts the spans of messages; nil for none.
	Tracer *span.Tracer
	// AckWait is the consumers' ack wait.
	AckWait time.Duration
	// MaxDeliver is the number of deliveries after which the queue drops a message.
	MaxDeliver int
	// RetryBase and RetryMax bound the backoff between attempts.
	RetryBase, RetryMax time.Duration
}

// Loop pulls the messages of one repository.
type Loop struct {
	*Process
	Pause    *Pause
	cfg      Config
	requests Requests
	cells    core.Cells
}

// New returns a Loop that is paused until the first check of the index.
func New(p *Process, requests Requests, cells core.Cells, cfg Config) *Loop {
	return &Loop{
		Process: p, Pause: newPause(cfg.Logger, NotChecked),
		cfg: cfg, requests: requests, cells: cells,
	}
}

// Handler processes a message in flight: it ends it, and calls Release. It may call free to free its slot earlier.
type Handler func(ctx context.Context, m core.Message, free func())

// Bounds of one pull.
const (
	fetchWait  = 5 * time.Second
	fetchBytes = 1 << 20
)

// Pull fetches messages from src and starts handle for each, at most limit at a time, and none while the repository is
// paused, until the process stops.
func (l *Loop) Pull(class core.Class, src Source, limit int, handle Handler) {
	ctx := l.draining
	w := newWorker(l, limit, handle)
	for try := 0; ; {
		if l.AwaitIndex() != nil || w.slots.Acquire(ctx, 1) != nil {
			return
		}
		n := 1
		for n < limit && w.slots.TryAcquire(1) {
			n++
		}
		messages, err := l.fetch(ctx, src, n)
		w.slots.Release(int64(n - len(messages)))
		for _, m := range messages {
			w.take(ctx, m)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			try = 0
			continue
		}
		l.cfg.Logger.Warn("fetching requests", "class", string(class), "err", err)
		if l.Sleep(retry.Delay(try, l.cfg.RetryBase, 5*time.Second)) != nil {
			return
		}
		try++
	}
}

// PullQuarantined is Pull with a quarantine: after a crash, messages that may have caused it are processed alone.
func (l *Loop) PullQuarantined(class core.Class, src Source, limit int, handle Handler) {
	l.Pull(class, src, limit, newQuarantine(l, class).quarantineSuspects(handle))
}

// PullBatches pulls messages for several records from src like Pull, and calls handle with a message for each record, at most
// limit at a time.
func (l *Loop) PullBatches(src Source, limit int, handle Handler) {
	slots := semaphore.NewWeighted(int64(limit))
	l.Pull(core.ClassBatches, src, batchesInFlight, func(ctx context.Context, m core.Message, _ func()) {
		newBatch(l, m).process(ctx, slots, handle)
	})
}

// fetch fetches at most n messages, and stops waiting when the index stops taking writes.
func (l *Loop) fetch(ctx context.Context, src Source, n int) ([]core.Message, error) {
	ctx, cancel := l.Pause.whileRunning(ctx)
	defer cancel()
	messages, err := src.Fetch(ctx, n, fetchBytes, fetchWait)
	if err != nil && ctx.Err() != nil {
		err = nil
	}
	return messages, err
}

// AwaitIndex returns nil once the repository is not paused, and an error when the process stops before.
func (l *Loop) AwaitIndex() error { return l.Pause.wait(l.draining) }

// RetryLevel returns the log level of a failure: only the first one and those at doubled attempts are visible by default.
func RetryLevel(attempts int) slog.Level {
	if attempts&(attempts+1) == 0 {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// maxRetryAfter bounds the delay that an upstream may request, so that one response cannot stop a repository for a day.
const maxRetryAfter = 5 * time.Minute

// retryAfter returns the delay that the upstream or the engine requested, at most maxRetryAfter.
func retryAfter(err error) time.Duration { return min(core.RetryAfterOf(err), maxRetryAfter) }

// Delay returns how long to wait before the given attempt, from 0, after err.
func (l *Loop) Delay(try int, err error) time.Duration {
	return max(retryAfter(err), retry.Delay(try, l.cfg.RetryBase, l.cfg.RetryMax))
}

// RetryUntilStopped calls f until it succeeds, fails with an error that no retry can fix, or the process stops.
func (l *Loop) RetryUntilStopped(ctx context.Context, what string, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || !core.Retryable(err) {
			return err
		}
		if l.Stopping(ctx) {
			return err
		}
		l.cfg.Logger.WarnContext(ctx, "retrying", "action", what, "err", err)
		if l.Sleep(max(retryAfter(err), retry.Delay(try, l.cfg.RetryBase, 5*time.Second))) != nil {
			return err
		}
	}
}

// publishConcurrency is how many Requests of one PublishEach are on their way at once.
const publishConcurrency = 128

// PublishEach publishes many Requests at once, which share writes of the queue, as PublishUnlessRemovalPending does each, and calls published
// with each that was, one at a time. Those that fail are tried again together, until the process stops. It returns the error of one of those
// that no retry can fix, which does not concern the others.
func (l *Loop) PublishEach(ctx context.Context, requests iter.Seq[core.Request], published func(core.Request)) error {
	left := slices.Collect(requests)
	var refused error
	err := l.RetryUntilStopped(ctx, "publishing records", func() (failed error) {
		var calls errgroup.Group
		calls.SetLimit(publishConcurrency)
		var mu sync.Mutex
		var again []core.Request
		for _, r := range left {
			calls.Go(func() error {
				err := l.requests.PublishUnlessRemovalPending(ctx, r)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					published(r)
				case core.Retryable(err):
					failed, again = err, append(again, r)
				default:
					refused = err
				}
				return nil
			})
		}
		_ = calls.Wait() // each has its own error
		left = again
		return failed
	})
	return cmp.Or(err, refused)
}

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

// Task is how a message is processed.
type Task struct {
	// Do processes it.
	Do func(ctx context.Context) error
	// Failed acknowledges or requeues it after an error of Do.
	Failed func(ctx context.Context, err error)
}

// Run processes m with t.Do, in a span. Then it acknowledges m, or requeues it if the process stops, or calls t.Failed.
func (l *Loop) Run(ctx context.Context, m core.Message, t Task) {
	defer l.Release(m)
	ctx, s := startSpan(ctx, l.cfg.Tracer, m)
	err := t.Do(ctx)
	defer endSpan(s, err)
	switch {
	case err == nil:
		l.Ack(ctx, m)
	case l.Stopping(ctx):
		l.RequeueNow(ctx, m)
	default:
		t.Failed(ctx, err)
	}
}

// Do is Run with a Task that requeues m after an error.
func (l *Loop) Do(ctx context.Context, m core.Message, handle func(ctx context.Context) error) {
	l.Run(ctx, m, Task{handle, func(ctx context.Context, err error) {
		switch {
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
			l.cfg.Logger.WarnContext(ctx, "request will be retried", "scope", string(req.Scope), "job_id", req.JobID, "organization", req.Organization,
				"page", page, "attempts", Attempts(m)+1, "err", err)
			l.Requeue(ctx, m, l.RetryDelay(m, err))
		}
	}})
}

// startSpan starts the span of the processing of m, below the span that published its Request; none without a tracer.
func startSpan(ctx context.Context, tracer *span.Tracer, m core.Message) (context.Context, span.Span) {
	if tracer == nil {
		return ctx, span.Span{}
	}
	req := m.Request()
	ctx, s := tracer.Consume(ctx, "process "+string(req.Scope), req.Traceparent)
	s.Text("repository", req.Repository)
	s.Text("organization", req.Organization)
	s.Text("record_id", req.RecordID)
	s.Text("job_id", req.JobID)
	s.Text("request_id", req.ID)
	s.Text("kind", string(req.Kind))
	s.Text("cause", string(req.Cause))
	s.Int("attempts", int64(Attempts(m)))
	if req.Page != nil {
		s.Int("page", int64(req.Page.Number))
	}
	return ctx, s
}

// endSpan ends the span of a message's processing with its error. That a message is processed later is not an error.
func endSpan(s span.Span, err error) {
	if errors.Is(err, ErrBusy) || errors.Is(err, ErrJobEnded) {
		s.Text("requeued", err.Error())
		err = nil
	}
	s.End(err)
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
		l.cfg.Logger.WarnContext(ctx, "acknowledging a request", "request_id", m.Request().ID, "err", err)
	}
}

// Release ends the heartbeat of a message that has ended.
func (l *Loop) Release(m core.Message) { l.heartbeat.release(m) }

// Attempts counts the earlier attempts at m's Request.
func Attempts(m core.Message) int { return m.Request().Attempts + m.Deliveries() - 1 }

// RetryDelay returns how long to wait before m is retried after err.
func (l *Loop) RetryDelay(m core.Message, err error) time.Duration { return l.Delay(Attempts(m), err) }
