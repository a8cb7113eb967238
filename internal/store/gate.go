package store

import (
	"context"
	"sync"
)

// gate counts who is inside, and lets nobody in once it is shut.
type gate struct {
	mu     sync.Mutex
	inside int
	shut   bool
	empty  chan struct{} // made by close; closed when the last one has left
}

// enter reports whether the gate let the caller in, who leaves then.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.shut && g.inside == 0 {
		close(g.empty)
	}
}

// close shuts the gate and reports whether everybody has left before ctx ended.
func (g *gate) close(ctx context.Context) bool {
	g.mu.Lock()
	if !g.shut {
		g.shut, g.empty = true, make(chan struct{})
		if g.inside == 0 {
			close(g.empty)
		}
	}
	g.mu.Unlock()
	select {
	case <-g.empty:
		return true
	default:
	}
	select {
	case <-g.empty:
		return true
	case <-ctx.Done():
		return false
	}
}
