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
	// maxUngathered is how many publishes are under way before Requests that come meanwhile are gathered.
	maxUngathered = 2
	// gatherWindow is the time over which arrivals are counted: many came when gatherMany did in the last one.
	gatherWindow = 20 * time.Millisecond
	burstSize    = 2 * minBatch
	// maxGathered is how many may wait; more are refused.
	maxGathered = 4096
	// gatherLinger is how long the first of many waits for the others.
	gatherLinger = 5 * time.Millisecond
)

// gatherer lets Requests that come one by one, in quick succession or while others are being published, travel together:
// the server syncs each message, so the more come, the less each costs. One that comes alone does not wait.
type gatherer struct {
	mu       sync.Mutex
	inFlight int
	waiting  []gathered
	// window began at since, with arrived Requests so far; many reports whether the one before had many.
	since   time.Time
	arrived int
	burst   bool
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
	g.countArrival(time.Now())
	if !g.burst && g.inFlight < maxUngathered {
		g.inFlight++
		g.mu.Unlock()
		err := q.publishRequest(ctx, r)
		g.publishDone(q)
		return err
	}
	if len(g.waiting) >= maxGathered {
		g.mu.Unlock()
		return &core.Error{
			Code: core.CodeOverloaded, Message: "publishing the request: too many wait for the queue already",
			RetryAfter: retryWhenFull,
		}
	}
	one := gathered{ctx, r, make(chan error, 1)}
	g.waiting = append(g.waiting, one)
	if g.inFlight == 0 {
		g.inFlight++
		q.work.Go(func() { g.publishGroup(q) })
	}
	g.mu.Unlock()
	select {
	case err := <-one.stored:
		return err
	case <-ctx.Done():
		return wrapError("publishing the request", ctx.Err())
	}
}

// countArrival counts an arrival; the lock must be held.
func (g *gatherer) countArrival(now time.Time) {
	if age := now.Sub(g.since); age >= gatherWindow {
		g.burst = g.arrived >= burstSize && age < 2*gatherWindow
		g.since, g.arrived = now, 0
	}
	g.arrived++
}

// publishDone lets what was gathered during a publish take its place.
func (g *gatherer) publishDone(q *Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 || g.burst && g.inFlight > 1 { // of many, all wait for the same flight
		g.inFlight--
		return
	}
	q.work.Go(func() { g.publishGroup(q) })
}

// publishGroup publishes what is waiting, and waits a moment for more where many come.
func (g *gatherer) publishGroup(q *Queue) {
	g.mu.Lock()
	linger := g.burst && len(g.waiting) < minBatch
	g.mu.Unlock()
	if linger {
		time.Sleep(gatherLinger)
	}
	g.mu.Lock()
	n := min(len(g.waiting), core.MaxBatchRecords)
	group := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	g.mu.Unlock()
	g.publishGathered(q, group)
	g.publishDone(q)
}

// publishGathered publishes a group: those that may travel together in batches, all others side by side.
func (g *gatherer) publishGathered(q *Queue, group []gathered) {
	group = slices.DeleteFunc(group, func(one gathered) bool { return one.ctx.Err() != nil })
	requests := make([]core.Request, len(group))
	for i, one := range group {
		requests[i] = one.request
	}
	ctx := context.Background() // each call is bounded by itself; a batch is of many callers
	var alone errgroup.Group
	alone.SetLimit(publishConcurrency)
	for _, members := range groupBatches(requests) {
		if len(members) >= minBatch && q.batches.admit(ctx, q) {
			err := q.publishBatch(ctx, requests, members)
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
