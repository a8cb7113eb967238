package loop

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
)

// localRetriesPerSlot is how many messages of a class may wait in this process for a retry, for each slot of its worker.
const localRetriesPerSlot = 4

// worker processes the messages of a class.
type worker struct {
	l      *Loop
	handle Handler
	// slots bounds the messages that are processed, localRetries those that wait in this process to be processed again.
	slots, localRetries *semaphore.Weighted
}

func newWorker(l *Loop, limit int, handle Handler) *worker {
	return &worker{
		l: l, handle: handle,
		slots: semaphore.NewWeighted(int64(limit)), localRetries: semaphore.NewWeighted(int64(localRetriesPerSlot * limit)),
	}
}

// take starts processing m in a slot, which was acquired before, or requeues m when it is too early for it.
func (w *worker) take(ctx context.Context, m core.Message) {
	d := newDelivery(m, w)
	if early := time.Until(d.Request().NotBefore); early > 0 { // republished with a delay
		w.slots.Release(1)
		d.requeue(ctx, d.Request(), early)
		return
	}
	d.start()
}

// delivery is a delivered message with its worker, so that it can be processed again without another delivery.
type delivery struct {
	core.Message
	*worker
	// request is the message's Request, with what was learned since it was delivered. Another goroutine reads it when a
	// newer message for the same record arrives.
	request atomic.Pointer[core.Request]
	// republishFailures counts failed attempts to republish the Request. One goroutine at a time processes the message.
	republishFailures int
	// lastHeartbeat is the time of the last heartbeat, in ns after since, the time of the delivery.
	since         time.Time
	lastHeartbeat atomic.Int64
}

// errHeartbeatOverdue is the error of a heartbeat that is too late.
var errHeartbeatOverdue = errors.New("the queue may have redelivered the message to another consumer")

func newDelivery(m core.Message, w *worker) *delivery {
	p := &delivery{Message: m, worker: w, since: time.Now()}
	req := m.Request()
	p.request.Store(&req)
	return p
}

// sinceHeartbeat returns the time since the last heartbeat.
func (p *delivery) sinceHeartbeat() time.Duration {
	return time.Since(p.since) - time.Duration(p.lastHeartbeat.Load())
}

// InProgress implements core.Message. After an ack wait without a heartbeat the message may belong to another consumer, and
// the server would count the heartbeat for that one: none is sent any more.
func (p *delivery) InProgress() error {
	now := time.Since(p.since)
	if p.sinceHeartbeat() >= p.l.cfg.AckWait {
		return errHeartbeatOverdue
	}
	err := p.Message.InProgress()
	if err == nil {
		p.lastHeartbeat.Store(int64(now))
	}
	return err
}

// maybeRedelivered reports whether the queue may have delivered the message to another consumer. Heartbeats are sent every
// third of the ack wait, and the last one may have been written to a connection that was already broken.
func (p *delivery) maybeRedelivered() bool { return p.sinceHeartbeat() > p.l.cfg.AckWait*2/3 }

// start processes the message in a slot of its worker, which it releases.
func (p *delivery) start() {
	p.l.heartbeat.hold(p)
	p.l.inFlight.Go(func() {
		free := sync.OnceFunc(func() { p.slots.Release(1) })
		defer free()
		p.handle(p.l.work, p, free)
	})
}

// Request implements core.Message.
func (p *delivery) Request() core.Request { return *p.request.Load() }

// requeue returns the message to the queue, to be redelivered after delay. After half of the deliveries, or when req differs
// from what was delivered, req is republished instead, so that only a message that ends the process reaches the last
// delivery. When the queue does not take it, the message stays in flight and is retried locally, so that the queue does not
// drop it.
func (p *delivery) requeue(ctx context.Context, req core.Request, delay time.Duration) {
	l := p.l
	p.request.Store(&req)
	if p.maybeRedelivered() && p.Deliveries() < l.cfg.MaxDeliver { // the server would apply a Nak to the newer delivery
		l.cfg.Logger.InfoContext(ctx, "a request is redelivered after its ack wait", "request_id", req.ID, "since_heartbeat", p.sinceHeartbeat())
		return
	}
	if p.Deliveries() >= l.cfg.MaxDeliver/2 || !req.NotFoundSince.Equal(p.Message.Request().NotFoundSince) {
		err := l.requests.Republish(ctx, p.Message, req, delay)
		if err == nil {
			return
		}
		l.cfg.Logger.Log(ctx, RetryLevel(p.republishFailures), "republishing a request", "request_id", req.ID, "err", err)
		p.republishFailures++
		if l.draining.Err() == nil && p.localRetries.TryAcquire(1) {
			p.retryLocally(delay)
			return
		}
	}
	if err := p.Nak(delay); err != nil {
		// The queue delivers it again when the ack wait ends.
		l.cfg.Logger.WarnContext(ctx, "requeueing a request", "request_id", req.ID, "err", err)
	}
}

// retryLocally keeps the message in flight and processes it again after delay: the queue may be full until some messages in
// flight have ended. The message waits without a slot, so that others are processed.
func (p *delivery) retryLocally(delay time.Duration) {
	l := p.l
	l.heartbeat.hold(p)
	l.inFlight.Go(func() {
		defer l.heartbeat.release(p)
		defer p.localRetries.Release(1)
		if l.Sleep(max(delay, l.cfg.RetryBase)) != nil || p.slots.Acquire(l.draining, 1) != nil {
			p.requeue(context.WithoutCancel(l.work), p.Request(), 0)
			return
		}
		p.start()
	})
}
