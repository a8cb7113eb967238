package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
)

const (
	// maxUngathered is how many publishes may be in flight before further Requests are gathered.
	maxUngathered = 2
	// gatherWindow is the interval over which arrivals are counted: a burst is burstSize arrivals in the previous one.
	gatherWindow = 20 * time.Millisecond
	burstSize    = 2 * minBatch
	// maxGathered is how many Requests may wait; more are rejected.
	maxGathered = 4096
	// gatherLinger is how long the first Request of a burst waits for others.
	gatherLinger = 5 * time.Millisecond
)

// gatherer combines Requests that arrive one by one, in quick succession or while others are being published, into
// batches: the server syncs once for each message. A single Request does not wait.
type gatherer struct {
	// work counts the goroutines that Queue.Close waits for.
	work *sync.WaitGroup

	mu       sync.Mutex
	inFlight int
	waiting  []gathered
	// The current window began at since, with arrived Requests so far; burst reports whether the previous one was a
	// burst.
	since   time.Time
	arrived int
	burst   bool
}

type gathered struct {
	// ctx is the caller's: a Request whose publish failed must not be stored later.
	ctx     context.Context //nolint:containedctx // it bounds one call that another goroutine makes
	request core.Request
	// stored receives the outcome; it is buffered, because the caller may have gone.
	stored chan error
}

// publish stores r, by itself or in a batch.
func (g *gatherer) publish(ctx context.Context, p *publisher, r core.Request) error {
	g.mu.Lock()
	g.countArrival(time.Now())
	if !g.burst && g.inFlight < maxUngathered {
		g.inFlight++
		g.mu.Unlock()
		err := p.publishNewest(ctx, r)
		g.publishDone(p)
		return err
	}
	if len(g.waiting) >= maxGathered {
		g.mu.Unlock()
		return &core.Error{
			Code: core.CodeOverloaded, Message: "publishing the request: too many requests are waiting to be published",
			RetryAfter: natsconn.RetryWhenFull,
		}
	}
	one := gathered{ctx, r, make(chan error, 1)}
	g.waiting = append(g.waiting, one)
	if g.inFlight == 0 {
		g.inFlight++
		g.work.Go(func() { g.publishGroup(p) })
	}
	g.mu.Unlock()
	select {
	case err := <-one.stored:
		return err
	case <-ctx.Done():
	}
	if g.withdraw(one) {
		return natsconn.WrapError("publishing the request", ctx.Err())
	}
	return <-one.stored // it is on its way: what the caller sends then comes after it
}

// withdraw removes a Request from those that wait, and reports whether it was one of them.
func (g *gatherer) withdraw(one gathered) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := len(g.waiting)
	g.waiting = slices.DeleteFunc(g.waiting, func(other gathered) bool { return other.stored == one.stored })
	return len(g.waiting) < before
}

// countArrival counts an arrival; the lock must be held.
func (g *gatherer) countArrival(now time.Time) {
	if age := now.Sub(g.since); age >= gatherWindow {
		g.burst = g.arrived >= burstSize && age < 2*gatherWindow
		g.since, g.arrived = now, 0
	}
	g.arrived++
}

// publishDone starts the next group after a publish.
func (g *gatherer) publishDone(p *publisher) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 || g.burst && g.inFlight > 1 { // during a burst, all wait for the same publish
		g.inFlight--
		return
	}
	g.work.Go(func() { g.publishGroup(p) })
}

// publishGroup publishes the waiting Requests, during a burst after a short wait for more.
func (g *gatherer) publishGroup(p *publisher) {
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
	g.publishGathered(p, group)
	g.publishDone(p)
}

// publishGathered publishes a group: batchable Requests in batches, those for the same record as one, all others concurrently.
func (g *gatherer) publishGathered(p *publisher, group []gathered) {
	requests := make([]core.Request, len(group))
	for i, one := range group {
		requests[i] = one.request
	}
	ctx := context.Background() // each call has its own timeout; a batch is of many callers
	var alone errgroup.Group
	alone.SetLimit(publishConcurrency)
	for _, members := range groupBatches(requests) {
		records := byRecord(requests, members)
		if len(records) >= minBatch && p.batches.admit(ctx, p) {
			err := p.publishBatch(ctx, requests, members)
			for _, i := range members {
				group[i].stored <- err
			}
			continue
		}
		for _, same := range records {
			alone.Go(func() error {
				ctx := ctx
				if len(same) == 1 {
					ctx = group[same[0]].ctx
				}
				err := p.publishNewest(ctx, requests[same[0]])
				for _, i := range same {
					group[i].stored <- err
				}
				return nil
			})
		}
	}
	_ = alone.Wait() // each has its own error
}
