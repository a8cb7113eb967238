package testkit

import "sync"

// gate counts the handlers at work, and lets none in once it is shut.
type gate struct {
	mu   sync.Mutex
	shut bool
	in   sync.WaitGroup
}

// enter reports whether a handler may begin; then it must leave.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.in.Add(1)
	return true
}

func (g *gate) leave() { g.in.Done() }

// close shuts the gate and waits until everyone has left.
func (g *gate) close() {
	g.mu.Lock()
	g.shut = true
	g.mu.Unlock()
	g.in.Wait()
}
