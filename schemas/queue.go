package schemas

import (
	"context"
	"sync"
)

// maxPerHost is how many calls of one host run side by side, whoever's they are.
const maxPerHost = 4 * maxAtOnce

// queues lets the calls of each host wait for their turn.
type queues struct {
	mu    sync.Mutex
	hosts map[string]*queue
}

type queue struct {
	// running has a place for each call.
	running chan struct{}
	// users are those that wait or call; a queue without any is forgotten.
	users int
}

// enter waits for a turn, which ends with leave. false when ctx ended first.
func (q *queues) enter(ctx context.Context, host string) (leave func(), ok bool) {
	q.mu.Lock()
	own := q.hosts[host]
	if own == nil {
		own = &queue{running: make(chan struct{}, maxPerHost)}
		q.hosts[host] = own
	}
	own.users++
	q.mu.Unlock()
	select {
	case own.running <- struct{}{}:
		return func() {
			<-own.running
			q.forsake(host, own)
		}, true
	case <-ctx.Done():
		q.forsake(host, own)
		return nil, false
	}
}

func (q *queues) forsake(host string, own *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(q.hosts, host)
	}
}
