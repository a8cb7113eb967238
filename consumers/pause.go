package consumers

import (
	"context"
	"sync"
)

// indexPause is in effect while a repository's index takes no writes.
type indexPause struct {
	mu        sync.Mutex
	cause     string
	cleared   chan struct{}   // closed while no pause is in effect
	period    context.Context // lives from the end of one pause to the start of the next, not as long as a call
	endPeriod context.CancelFunc
}

func newIndexPause(why string) *indexPause {
	g := &indexPause{cause: why, cleared: make(chan struct{})}
	g.period, g.endPeriod = context.WithCancel(context.Background())
	g.endPeriod()
	return g
}

func (g *indexPause) reason() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cause
}

// set starts the pause, or changes its reason.
func (g *indexPause) set(why string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.cause == ""
	if was {
		g.cleared = make(chan struct{})
		g.endPeriod()
	}
	g.cause = why
	return was
}

func (g *indexPause) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause == "" {
		return
	}
	g.cause = ""
	g.period, g.endPeriod = context.WithCancel(context.Background())
	close(g.cleared)
}

// wait returns nil once no pause is in effect, and ctx's error when that ends first.
func (g *indexPause) wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		open, opened := g.cause == "", g.cleared
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

// running returns a context that ends when the next pause starts.
func (g *indexPause) running() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.period
}

// whileRunning returns a context that ends with ctx or when a pause starts.
func (g *indexPause) whileRunning(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.running(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// pauseFor pauses the repository and logs it once per pause or change of reason.
func (r *repository) pauseFor(why string, cause error) {
	changed := r.pause.reason() != why
	r.pause.set(why)
	if changed {
		r.log.Warn("repository paused", "reason", why, "err", cause)
	}
}
