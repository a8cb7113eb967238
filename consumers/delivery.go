package consumers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
)

// localRetriesPerSlot is how many messages of a class may stay in flight for each that is worked on.
const localRetriesPerSlot = 4

// worker is what works on the messages of a class.
type worker struct {
	r      *repository
	handle handler
	// slots bounds the messages that are worked on, staying those that wait in this process to be worked on again.
	slots, localRetries *semaphore.Weighted
}

func newWorker(r *repository, limit int, work handler) *worker {
	return &worker{
		r: r, handle: work,
		slots: semaphore.NewWeighted(int64(limit)), localRetries: semaphore.NewWeighted(int64(localRetriesPerSlot * limit)),
	}
}

// delivery is a delivered message with what works on it, so that it can be worked on again without another delivery.
type delivery struct {
	core.Message
	*worker
	// request is the message's Request, with what has become known since it was delivered. Another goroutine reads it when
	// a newer message for the same record arrives.
	request atomic.Pointer[core.Request]
	// republishFailures counts how often the queue did not take the Request again. One goroutine at a time works on the message.
	republishFailures int
	// heard is how long after since, in ns, the queue last heard of the message from this process.
	since         time.Time
	lastHeartbeat atomic.Int64
}

// errHeartbeatOverdue is the error of a heartbeat that comes too late.
var errHeartbeatOverdue = errors.New("the queue may have given the message to another consumer")

func newDelivery(m core.Message, w *worker) *delivery {
	p := &delivery{Message: m, worker: w, since: time.Now()}
	req := m.Request()
	p.request.Store(&req)
	return p
}

// sinceHeartbeat returns for how long the queue has heard nothing of the message.
func (p *delivery) sinceHeartbeat() time.Duration {
	return time.Since(p.since) - time.Duration(p.lastHeartbeat.Load())
}

// InProgress implements core.Message. After an ack wait without a heartbeat the message is another consumer's, and the server
// would take the heartbeat for that one's: none is sent any more.
func (p *delivery) InProgress() error {
	now := time.Since(p.since)
	if p.sinceHeartbeat() >= p.r.c.cfg.AckWait {
		return errHeartbeatOverdue
	}
	err := p.Message.InProgress()
	if err == nil {
		p.lastHeartbeat.Store(int64(now))
	}
	return err
}

// maybeRedelivered reports whether the queue may have delivered the message to another consumer: heartbeats come every third of the
// ack wait, and the last one may have been written to a connection that was broken already.
func (p *delivery) maybeRedelivered() bool { return p.sinceHeartbeat() > p.r.c.cfg.AckWait*2/3 }

// start works on the message in a slot of its class, which it releases.
func (p *delivery) start() {
	p.r.c.heartbeat.hold(p)
	p.r.c.inFlight.Go(func() {
		free := sync.OnceFunc(func() { p.slots.Release(1) })
		defer free()
		p.handle(p.r.c.work, p, free)
	})
}

// Request implements core.Message.
func (p *delivery) Request() core.Request { return *p.request.Load() }

// requeue returns the message to the queue, to be delivered after delay. After half of its deliveries, or where req is not
// what was delivered, req is published again instead, so that only a message that kills the process reaches the last delivery;
// when the queue does not take it, the message stays in flight. The queue does not give up a message that it did not take.
func (p *delivery) requeue(ctx context.Context, req core.Request, delay time.Duration) {
	r := p.r
	p.request.Store(&req)
	if p.maybeRedelivered() && p.Deliveries() < r.c.cfg.MaxDeliver { // the server would take a Nak for one of the newer delivery
		r.log.Info("a request is left to its ack wait", "request_id", req.ID, "silent", p.sinceHeartbeat())
		return
	}
	if p.Deliveries() >= r.c.cfg.MaxDeliver/2 || !req.NotFoundSince.Equal(p.Message.Request().NotFoundSince) {
		err := r.c.deps.Requests.Republish(ctx, p.Message, req, delay)
		if err == nil {
			return
		}
		r.log.Log(ctx, retryLevel(p.republishFailures), "publishing a request again", "request_id", req.ID, "err", err)
		p.republishFailures++
		if r.c.draining.Err() == nil && p.localRetries.TryAcquire(1) {
			p.retryLocally(delay)
			return
		}
	}
	if err := p.Nak(delay); err != nil {
		// The queue delivers it again when the ack wait ends.
		r.log.Warn("giving a request back", "request_id", req.ID, "err", err)
	}
}

// retryLocally keeps the message in flight and works on it again after delay: the queue may have no room until some of those in
// flight have ended. The message waits without a slot, so that others are worked on.
func (p *delivery) retryLocally(delay time.Duration) {
	c := p.r.c
	c.heartbeat.hold(p)
	c.inFlight.Go(func() {
		defer c.heartbeat.release(p)
		defer p.localRetries.Release(1)
		if sleep(c.draining, max(delay, c.cfg.RetryBase)) != nil || p.slots.Acquire(c.draining, 1) != nil {
			p.requeue(context.WithoutCancel(c.work), p.Request(), 0)
			return
		}
		p.start()
	})
}
