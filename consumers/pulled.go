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

// stayingPerSlot is how many messages of a class may stay in flight for each that is worked on.
const stayingPerSlot = 4

// worker is what works on the messages of a class.
type worker struct {
	r    *repository
	work working
	// slots bounds the messages that are worked on, staying those that wait in this process to be worked on again.
	slots, staying *semaphore.Weighted
}

func newWorker(r *repository, limit int, work working) *worker {
	return &worker{
		r: r, work: work,
		slots: semaphore.NewWeighted(int64(limit)), staying: semaphore.NewWeighted(int64(stayingPerSlot * limit)),
	}
}

// pulled is a delivered message with what works on it, so that it can be worked on again without another delivery.
type pulled struct {
	core.Message
	*worker
	// request is the message's Request, with what has become known since it was delivered. Another goroutine reads it when
	// a newer message for the same record arrives.
	request atomic.Pointer[core.Request]
	// refused counts how often the queue did not take the Request again. One goroutine at a time works on the message.
	refused int
	// heard is how long after since, in ns, the queue last heard of the message from this process.
	since time.Time
	heard atomic.Int64
}

// errOverdue is the error of a heartbeat that comes too late.
var errOverdue = errors.New("the queue may have given the message to another consumer")

func newPulled(m core.Message, w *worker) *pulled {
	p := &pulled{Message: m, worker: w, since: time.Now()}
	req := m.Request()
	p.request.Store(&req)
	return p
}

// silent returns for how long the queue has heard nothing of the message.
func (p *pulled) silent() time.Duration { return time.Since(p.since) - time.Duration(p.heard.Load()) }

// InProgress implements core.Message. After an ack wait without a heartbeat the message is another consumer's, and the server
// would take the heartbeat for that one's: none is sent any more.
func (p *pulled) InProgress() error {
	now := time.Since(p.since)
	if p.silent() >= p.r.c.cfg.AckWait {
		return errOverdue
	}
	err := p.Message.InProgress()
	if err == nil {
		p.heard.Store(int64(now))
	}
	return err
}

// superseded reports whether the queue may have delivered the message to another consumer: heartbeats come every third of the
// ack wait, and the last one may have been written to a connection that was broken already.
func (p *pulled) superseded() bool { return p.silent() > p.r.c.cfg.AckWait*2/3 }

// begin works on the message in a slot of its class, which it releases.
func (p *pulled) begin() {
	p.r.c.keeper.hold(p)
	p.r.c.inHand.Go(func() {
		free := sync.OnceFunc(func() { p.slots.Release(1) })
		defer free()
		p.work(p.r.c.work, p, free)
	})
}

// Request implements core.Message.
func (p *pulled) Request() core.Request { return *p.request.Load() }

// giveBack returns the message to the queue, to be delivered after delay. After half of its deliveries, or where req is not
// what was delivered, req is published again instead, so that only a message that kills the process reaches the last delivery;
// when the queue does not take it, the message stays in flight. The queue does not give up a message that it did not take.
func (p *pulled) giveBack(ctx context.Context, req core.Request, delay time.Duration) {
	r := p.r
	p.request.Store(&req)
	if p.superseded() && p.Deliveries() < r.c.cfg.MaxDeliver { // the server would take a Nak for one of the newer delivery
		r.log.Info("a request is left to its ack wait", "request_id", req.ID, "silent", p.silent())
		return
	}
	if p.Deliveries() >= r.c.cfg.MaxDeliver/2 || !req.NotFoundSince.Equal(p.Message.Request().NotFoundSince) {
		err := r.c.deps.Requests.Republish(ctx, p.Message, req, delay)
		if err == nil {
			return
		}
		r.log.Log(ctx, retryLevel(p.refused), "publishing a request again", "request_id", req.ID, "err", err)
		p.refused++
		if r.c.draining.Err() == nil && p.staying.TryAcquire(1) {
			p.stay(delay)
			return
		}
	}
	if err := p.Nak(delay); err != nil {
		// The queue delivers it again when the ack wait ends.
		r.log.Warn("giving a request back", "request_id", req.ID, "err", err)
	}
}

// stay keeps the message in flight and works on it again after delay: the queue may have no room until some of those in
// flight have ended. The message waits without a slot, so that others are worked on.
func (p *pulled) stay(delay time.Duration) {
	c := p.r.c
	c.keeper.hold(p)
	c.inHand.Go(func() {
		defer c.keeper.release(p)
		defer p.staying.Release(1)
		if sleep(c.draining, max(delay, c.cfg.RetryBase)) != nil || p.slots.Acquire(c.draining, 1) != nil {
			p.giveBack(context.WithoutCancel(c.work), p.Request(), 0)
			return
		}
		p.begin()
	})
}
