package testkit

import "sync"

// drainGroup counts the running handlers, and admits none once it drains.
type drainGroup struct {
	mu       sync.Mutex
	draining bool
	active   sync.WaitGroup
}

// add reports whether a handler may start, which must then call done.
func (g *drainGroup) add() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining {
		return false
	}
	g.active.Add(1)
	return true
}

func (g *drainGroup) done() { g.active.Done() }

// drain admits no further handlers and waits for the running ones.
func (g *drainGroup) drain() {
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	g.active.Wait()
}
