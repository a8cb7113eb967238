package store

import (
	"context"
	"sync"
)

// drainGroup counts active users and admits no new ones once it drains.
type drainGroup struct {
	mu      sync.Mutex
	active  int
	closed  bool
	drained chan struct{} // created by drain; closed when no user is active
}

// add registers a user, who must call done; it reports false when the group drains.
func (g *drainGroup) add() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.active++
	return true
}

func (g *drainGroup) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	if g.closed && g.active == 0 {
		close(g.drained)
	}
}

// drain admits no further users and reports whether all finished before ctx ended.
func (g *drainGroup) drain(ctx context.Context) bool {
	g.mu.Lock()
	if !g.closed {
		g.closed, g.drained = true, make(chan struct{})
		if g.active == 0 {
			close(g.drained)
		}
	}
	g.mu.Unlock()
	select {
	case <-g.drained:
		return true
	default:
	}
	select {
	case <-g.drained:
		return true
	case <-ctx.Done():
		return false
	}
}
