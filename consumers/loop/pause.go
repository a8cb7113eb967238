package loop

import (
	"context"
	"log/slog"
	"sync"
)

// NotChecked is the reason of the pause of a new Loop.
const NotChecked = "the first check of the index has not ended"

const messagePaused = "repository paused"

// Pause is in effect while a repository's index takes no writes. It is safe for concurrent use.
type Pause struct {
	log       *slog.Logger
	mu        sync.Mutex
	cause     string
	logged    bool            // the pause in effect was logged
	cleared   chan struct{}   // closed while no pause is in effect
	period    context.Context //nolint:containedctx // lives from the end of one pause to the start of the next, not as long as a call
	endPeriod context.CancelFunc
}

func newPause(log *slog.Logger, why string) *Pause {
	g := &Pause{log: log, cause: why, logged: true, cleared: make(chan struct{})}
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

// Start starts the pause unless one is in effect, whose reason says more. It logs it if known is set; else the next Set or Clear does, because a
// check that follows at once knows the reason better.
func (g *Pause) Start(reason string, known bool) {
	g.mu.Lock()
	started := g.cause == ""
	if started {
		g.start(reason)
		g.logged = known
	}
	g.mu.Unlock()
	if started && known {
		g.log.Warn(messagePaused, "reason", reason)
	}
}

// start starts the pause; the caller holds the lock.
func (g *Pause) start(reason string) {
	g.cause, g.cleared = reason, make(chan struct{})
	g.endPeriod()
}

// Set starts the pause, or changes its reason, and logs either once.
func (g *Pause) Set(reason string, cause error) {
	g.mu.Lock()
	news := g.cause != reason || !g.logged
	if g.cause == "" {
		g.start(reason)
	}
	g.cause, g.logged = reason, true
	g.mu.Unlock()
	if news {
		g.log.Warn(messagePaused, "reason", reason, "err", cause)
	}
}

// Clear ends the pause.
func (g *Pause) Clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause == "" {
		return
	}
	if !g.logged {
		g.log.Warn(messagePaused, "reason", g.cause)
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
