package consumers

import (
	"context"
	"sync"
	"time"

	"tutti/internal/core"
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

// pause shuts the gate and tells whether it was open.
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

// open gives a context that ends when the gate shuts.
func (g *gate) open() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.period
}

// whileOpen gives a context that ends with ctx or when the gate shuts.
func (g *gate) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.open(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// Bounds of the time between two looks at an index that takes no writes.
const (
	probeEvery    = 100 * time.Millisecond
	probeEveryMax = 2 * time.Second
)

// watchIndex prepares the repository's index, then opens the gate whenever the index takes writes again and no pause for
// rejections is left.
func (r *repository) watchIndex() {
	ctx := r.c.draining
	prepared := false
	for {
		select {
		case <-r.gate.open().Done():
		case <-ctx.Done():
			return
		}
		for try := 0; ; try++ {
			err := r.checkIndex(ctx, &prepared)
			pause, why := r.rejections.left(time.Now())
			if err == nil && pause == 0 {
				break
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				pause, why = growing(try, probeEvery, probeEveryMax), displayed(err)
			}
			r.pauseFor(why, err)
			if sleep(ctx, pause) != nil {
				return
			}
		}
		r.gate.resume()
		r.log.Info("index takes writes")
		if pause, why := r.rejections.left(time.Now()); pause > 0 { // it began before the gate was open
			r.pauseFor(why, nil)
		}
	}
}

// checkIndex prepares the index, or, once that was done, checks that it takes writes.
func (r *repository) checkIndex(ctx context.Context, prepared *bool) error {
	if *prepared {
		return r.Probe.Check(ctx)
	}
	err := r.Probe.Prepare(ctx)
	*prepared = err == nil
	return err
}

// displayed puts an error in words for whoever has to mend it.
func displayed(err error) string {
	if hint := core.HintOf(err); hint != "" {
		return core.MessageOf(err) + "; " + hint
	}
	return core.MessageOf(err)
}

// pauseFor shuts the repository's gate and logs it once per pause or change of reason.
func (r *repository) pauseFor(why string, cause error) {
	changed := r.gate.reason() != why
	r.gate.pause(why)
	if changed {
		r.log.Warn("repository paused", "reason", why, "err", cause)
	}
}
