package queue

import (
	"context"
	"sync"

	"tutti/internal/core"
)

// gatherFlights is how many publishes are under way before Requests that come meanwhile are gathered.
const gatherFlights = 2

// gatherer lets Requests that come one by one, while others are being published, travel together: the server syncs each
// message, so the more come, the less each costs. One that comes alone does not wait.
type gatherer struct {
	mu      sync.Mutex
	flying  int
	waiting []gathered
}

type gathered struct {
	request core.Request
	// stored takes the outcome; there is room for it, whether or not somebody still waits.
	stored chan error
}

// publish stores r, alone or with others.
func (g *gatherer) publish(ctx context.Context, q *Queue, r core.Request) error {
	one := gathered{r, make(chan error, 1)}
	g.mu.Lock()
	if g.flying < gatherFlights {
		g.flying++
		g.mu.Unlock()
		err := q.publishRequest(ctx, r)
		g.landed(q)
		return err
	}
	g.waiting = append(g.waiting, one)
	g.mu.Unlock()
	select {
	case err := <-one.stored:
		return err
	case <-ctx.Done():
		return fault("publishing the request", ctx.Err())
	}
}

// landed lets what was gathered during a publish take its place.
func (g *gatherer) landed(q *Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), core.MaxBatchRecords)
	if n == 0 {
		g.flying--
		return
	}
	group := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	q.work.Go(func() {
		g.take(q, group)
		g.landed(q)
	})
}

// take publishes a group: those that may travel together in batches, all others one after the other.
func (g *gatherer) take(q *Queue, group []gathered) {
	requests := make([]core.Request, len(group))
	for i, one := range group {
		requests[i] = one.request
	}
	ctx := context.Background() // each call is bounded by itself, and whoever waits may have gone
	for _, members := range batchesOf(requests) {
		if len(members) >= leastBatch && q.batches.admit(ctx, q) {
			err := q.publishTogether(ctx, requests, members)
			for _, i := range members {
				group[i].stored <- err
			}
			continue
		}
		for _, i := range members {
			group[i].stored <- q.publishRequest(ctx, requests[i])
		}
	}
}
