package loop

import (
	"context"
	"log/slog"
	"sync"
)

// NotChecked is the reason of the pause of a new Loop.
const NotChecked = "the first check of the index has not ended"

// Pause is in effect while a repository's index takes no writes. It is safe for concurrent use.
type Pause struct {
	log       *slog.Logger
	mu        sync.Mutex
	cause     string
	cleared   chan struct{}   // closed while no pause is in effect
	period    context.Context //nolint:containedctx // lives from the end of one pause to the start of the next, not as long as a call
	endPeriod context.CancelFunc
}

func newPause(log *slog.Logger, why string) *Pause {
	g := &Pause{log: log, cause: why, cleared: make(chan struct{})}
	g.period, g.endPeriod = context.WithCancel(context.Background())
	g.endPeriod()
	return g
}

// Reason returns why the repository is paused, "" when it is not.
func (g *Pause) Reason() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cause
}

// Set starts the pause, or changes its reason, and logs either once.
func (g *Pause) Set(reason string, cause error) {
	g.mu.Lock()
	before := g.cause
	if before == "" {
		g.cleared = make(chan struct{})
		g.endPeriod()
	}
	g.cause = reason
	g.mu.Unlock()
	if before != reason {
		g.log.Warn("repository paused", "reason", reason, "err", cause)
	}
}

// Clear ends the pause.
func (g *Pause) Clear() {
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
func (g *Pause) wait(ctx context.Context) error {
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

// Running returns a context that ends when the next pause starts.
func (g *Pause) Running() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.period
}

// whileRunning returns a context that ends with ctx or when a pause starts.
func (g *Pause) whileRunning(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.Running(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
