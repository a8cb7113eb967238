package consumers

import (
	"context"
	"sync"
)

// gate is open while a repository's index takes writes.
type gate struct {
	mu     sync.Mutex
	why    string
	opened chan struct{}   // closed while the gate is open
	period context.Context //nolint:containedctx // lives as long as the gate stays open, not as long as a call
	shut   context.CancelFunc
}

func newGate(why string) *gate {
	g := &gate{why: why, opened: make(chan struct{})}
	g.period, g.shut = context.WithCancel(context.Background())
	g.shut()
	return g
}

func (g *gate) reason() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}

// pause shuts the gate and reports whether it was open.
func (g *gate) pause(why string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.why == ""
	if was {
		g.opened = make(chan struct{})
		g.shut()
	}
	g.why = why
	return was
}

func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why == "" {
		return
	}
	g.why = ""
	g.period, g.shut = context.WithCancel(context.Background())
	close(g.opened)
}

// wait returns nil once the gate is open, and ctx's error when that ends first.
func (g *gate) wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		open, opened := g.why == "", g.opened
		g.mu.Unlock()
		if open {
			return ctx.Err()
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// open returns a context that ends when the gate shuts.
func (g *gate) open() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.period
}

// whileOpen returns a context that ends with ctx or when the gate shuts.
func (g *gate) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.open(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// pauseFor shuts the repository's gate and logs it once per pause or change of reason.
func (r *repository) pauseFor(why string, cause error) {
	changed := r.gate.reason() != why
	r.gate.pause(why)
	if changed {
		r.log.Warn("repository paused", "reason", why, "err", cause)
	}
}
