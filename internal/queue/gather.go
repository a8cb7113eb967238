package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
)

const (
	// gatherFlights is how many publishes are under way before Requests that come meanwhile are gathered.
	gatherFlights = 2
	// gatherWindow is the time over which arrivals are counted: many came when gatherMany did in the last one.
	gatherWindow = 20 * time.Millisecond
	gatherMany   = 2 * leastBatch
	// gatherMost is how many may wait; more are refused.
	gatherMost = 4096
	// gatherLinger is how long the first of many waits for the others.
	gatherLinger = 5 * time.Millisecond
)

// gatherer lets Requests that come one by one, in quick succession or while others are being published, travel together:
// the server syncs each message, so the more come, the less each costs. One that comes alone does not wait.
type gatherer struct {
	mu      sync.Mutex
	flying  int
	waiting []gathered
	// window began at since, with arrived Requests so far; many reports whether the one before had many.
	since   time.Time
	arrived int
	many    bool
}

type gathered struct {
	// ctx is the caller's: one who was told of a failure must not be followed by the Request all the same.
	ctx     context.Context //nolint:containedctx // it bounds one call that another goroutine makes
	request core.Request
	// stored takes the outcome; there is room for it, whether or not somebody still waits.
	stored chan error
}

// publish stores r, alone or with others.
func (g *gatherer) publish(ctx context.Context, q *Queue, r core.Request) error {
	g.mu.Lock()
	g.arrive(time.Now())
	if !g.many && g.flying < gatherFlights {
		g.flying++
		g.mu.Unlock()
		err := q.publishRequest(ctx, r)
		g.landed(q)
		return err
	}
	if len(g.waiting) >= gatherMost {
		g.mu.Unlock()
		return &core.Error{
			Code: core.CodeOverloaded, Message: "publishing the request: too many wait for the queue already",
			RetryAfter: retryWhenFull,
		}
	}
	one := gathered{ctx, r, make(chan error, 1)}
	g.waiting = append(g.waiting, one)
	if g.flying == 0 {
		g.flying++
		q.work.Go(func() { g.fly(q) })
	}
	g.mu.Unlock()
	select {
	case err := <-one.stored:
		return err
	case <-ctx.Done():
		return fault("publishing the request", ctx.Err())
	}
}

// arrive counts an arrival; the lock must be held.
func (g *gatherer) arrive(now time.Time) {
	if age := now.Sub(g.since); age >= gatherWindow {
		g.many = g.arrived >= gatherMany && age < 2*gatherWindow
		g.since, g.arrived = now, 0
	}
	g.arrived++
}

// landed lets what was gathered during a publish take its place.
func (g *gatherer) landed(q *Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 || g.many && g.flying > 1 { // of many, all wait for the same flight
		g.flying--
		return
	}
	q.work.Go(func() { g.fly(q) })
}

// fly publishes what is waiting, and waits a moment for more where many come.
func (g *gatherer) fly(q *Queue) {
	g.mu.Lock()
	linger := g.many && len(g.waiting) < leastBatch
	g.mu.Unlock()
	if linger {
		time.Sleep(gatherLinger)
	}
	g.mu.Lock()
	n := min(len(g.waiting), core.MaxBatchRecords)
	group := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	g.mu.Unlock()
	g.take(q, group)
	g.landed(q)
}

// take publishes a group: those that may travel together in batches, all others side by side.
func (g *gatherer) take(q *Queue, group []gathered) {
	group = slices.DeleteFunc(group, func(one gathered) bool { return one.ctx.Err() != nil })
	requests := make([]core.Request, len(group))
	for i, one := range group {
		requests[i] = one.request
	}
	ctx := context.Background() // each call is bounded by itself; a batch is of many callers
	var alone errgroup.Group
	alone.SetLimit(publishesAtOnce)
	for _, members := range batchesOf(requests) {
		if len(members) >= leastBatch && q.batches.admit(ctx, q) {
			err := q.publishTogether(ctx, requests, members)
			for _, i := range members {
				group[i].stored <- err
			}
			continue
		}
		for _, i := range members {
			alone.Go(func() error {
				group[i].stored <- q.publishRequest(group[i].ctx, requests[i])
				return nil
			})
		}
	}
	_ = alone.Wait() // each has its own error
}
