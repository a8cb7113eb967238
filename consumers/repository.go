package consumers

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
)

// repository processes the Requests of one repository.
type repository struct {
	Repository
	c     *Consumers
	log   *slog.Logger
	pause *indexPause

	recordCalls, pageCalls *semaphore.Weighted // calls to the upstream in flight
	batched                *semaphore.Weighted // records of batches in flight
	pagesInFlight          map[string]struct{}
	endingJobs             map[string]chan struct{} // jobs that are being ended; the channel is closed afterwards
	mu                     sync.Mutex               // guards pagesInFlight, endingJobs and records
	records                map[string]*recordInFlight
	progress               *progress
	organizations          organizationList
	rejections             rejectionMonitor
	clockAlarm             atomic.Int64 // Unix time of the last alarm in ns, 0 for none
}

func newRepository(c *Consumers, r Repository) *repository {
	setDefault(&r.PageSize, 500)
	setDefault(&r.Concurrency, 4)
	r.PageSize = max(2, r.PageSize) // pages overlap by one row
	return &repository{
		Repository: r, c: c, log: c.cfg.Logger.With("repository", r.Code),
		pause:       newIndexPause("the first check of the index has not ended"),
		recordCalls: semaphore.NewWeighted(int64(r.Concurrency)), pageCalls: semaphore.NewWeighted(int64(r.Concurrency)),
		batched: semaphore.NewWeighted(int64(c.cfg.RecordsInFlight)), pagesInFlight: make(map[string]struct{}),
		endingJobs: make(map[string]chan struct{}), records: make(map[string]*recordInFlight),
		progress: newProgress(c.deps.Organizations, c.cfg.ProgressEvery),
	}
}

// Bounds of one pull.
const (
	fetchWait  = 5 * time.Second
	fetchBytes = 1 << 20
)

// pull fetches messages from src and starts handle for each, at most limit at a time, and none while the index takes no
// writes. handle ends each message and releases it from the heartbeat; it may call its third argument to free its slot
// earlier.
func (r *repository) pull(class core.Class, src Source, limit int, work handler) {
	ctx := r.c.draining
	w := newWorker(r, limit, work)
	for try := 0; ; {
		if r.pause.wait(ctx) != nil || w.slots.Acquire(ctx, 1) != nil {
			return
		}
		n := 1
		for n < limit && w.slots.TryAcquire(1) {
			n++
		}
		messages, err := r.fetch(ctx, src, n)
		w.slots.Release(int64(n - len(messages)))
		for _, m := range messages {
			p := newDelivery(m, w)
			if early := time.Until(m.Request().NotBefore); early > 0 { // republished with a delay
				w.slots.Release(1)
				p.requeue(ctx, p.Request(), early)
				continue
			}
			p.start()
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			try = 0
			continue
		}
		r.log.Warn("fetching requests", "class", string(class), "err", err)
		if sleep(ctx, backoff(try, r.c.cfg.RetryBase, 5*time.Second)) != nil {
			return
		}
		try++
	}
}

// fetch fetches at most n messages, and stops waiting when the index stops taking writes.
func (r *repository) fetch(ctx context.Context, src Source, n int) ([]core.Message, error) {
	ctx, cancel := r.pause.whileRunning(ctx)
	defer cancel()
	messages, err := src.Fetch(ctx, n, fetchBytes, fetchWait)
	if err != nil && ctx.Err() != nil {
		err = nil
	}
	return messages, err
}

// requeue returns a message to the queue, to be redelivered after delay.
func (r *repository) requeue(ctx context.Context, m core.Message, delay time.Duration) {
	r.requeueAs(ctx, m, m.Request(), delay)
}

// requeueAs is requeue for a message whose Request has become req.
func (r *repository) requeueAs(ctx context.Context, m core.Message, req core.Request, delay time.Duration) {
	switch m := m.(type) {
	case *batchedMessage:
		m.requeue(ctx, req, delay)
	case *delivery:
		m.requeue(ctx, req, delay)
	}
}

// ack acknowledges a message. When the queue does not respond, the message is redelivered, and processing it again changes
// nothing.
func (r *repository) ack(ctx context.Context, m core.Message) {
	if err := m.Ack(ctx); err != nil {
		r.log.Warn("acknowledging a request", "request_id", m.Request().ID, "err", err)
	}
}

// attempts counts the earlier attempts at m's Request.
func attempts(m core.Message) int { return m.Request().Attempts + m.Deliveries() - 1 }

// retryDelay returns how long to wait before m is retried after err.
func (r *repository) retryDelay(m core.Message, err error) time.Duration {
	return max(retryAfter(err), backoff(attempts(m), r.c.cfg.RetryBase, r.c.cfg.RetryMax))
}

// retryUntilStopped calls f until it succeeds, fails with an error that no retry can fix, or the process stops.
func (r *repository) retryUntilStopped(ctx context.Context, what string, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || !core.Retryable(err) {
			return err
		}
		if r.c.draining.Err() != nil || ctx.Err() != nil {
			return err
		}
		r.log.Warn("retrying", "action", what, "err", err)
		if sleep(r.c.draining, max(retryAfter(err), backoff(try, r.c.cfg.RetryBase, 5*time.Second))) != nil {
			return err
		}
	}
}
