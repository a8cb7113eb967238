// Package pace slows runs down while they make searches slower: backfills, rebuilds and comparisons, not requests for single records. It
// measures how long a small search takes while no run of this process writes and while they do, and adapts the rows a second that they may
// pass on. Without searches by readers in this process there is nothing to protect, and no limit.
package pace

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tutti/internal/base/retry"
)

// Times of the measurement.
const (
	// readersFor is how long after a search there are still readers.
	readersFor = 10 * time.Second
	// idleFor is how long after its last page a run may go on: pages follow each other.
	idleFor = 5 * time.Second
	// probes is the number of searches of a window, probeEvery the time between two of them.
	probes, probeEvery = 16, 30 * time.Millisecond
	// settle is how long runs rest before the probes without them: their last writes end.
	settle = 300 * time.Millisecond
	// baseFor is how long what was measured without runs counts. All processes measure at the start of the same interval of the clock, so
	// that none measures what another one does.
	baseFor = time.Minute
	// probeTimeout bounds one probe, and the time after which a window has no further one. A probe that fails counts as that long.
	probeTimeout = 2 * time.Second
	// limitedPages is how many pages are read at the same time while there is a limit: the rows of each other one would grow old.
	limitedPages = 2
)

// Config configures a Pace.
type Config struct {
	// Probe makes one small search of an alias. Required.
	Probe func(ctx context.Context, alias string) error
	// Logger receives begin and end of a limit; nil is silent.
	Logger *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
}

// lead is how far ahead of its time a row may pass: timers are not exact.
const lead = 5 * time.Millisecond

// Pace limits the rows a second that the runs of this process pass on. A nil Pace has no limit.
type Pace struct {
	cfg Config
	// stopping ends the measurement.
	stopping context.Context //nolint:containedctx // the Pace owns the goroutine that measures, and ends it in Stop
	stop     context.CancelFunc
	owned    sync.WaitGroup

	// limited is set while there is a limit.
	limited atomic.Bool

	mu sync.Mutex
	// pages counts the pages being read, rows the rows of the window.
	pages, rows int
	// paged is when the last page began or ended.
	paged     time.Time
	measuring bool
	control   control
	// resting is set while runs rest for the probes without them.
	resting bool
	// next is when the next row may pass.
	next time.Time
	// changed is closed when a page ends, or the control changes.
	changed chan struct{}
	// searched is when an alias was last searched, alias which.
	searched time.Time
	alias    string
}

// New returns a Pace.
func New(cfg Config) *Pace {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Pace{cfg: cfg, changed: make(chan struct{})}
	p.stopping, p.stop = context.WithCancel(context.Background())
	return p
}

// Stop ends the measurement and every limit.
func (p *Pace) Stop(context.Context) error {
	if p == nil {
		return nil
	}
	p.stop()
	p.owned.Wait()
	return nil
}

// Searched records that a reader searches an alias.
func (p *Pace) Searched(alias string) {
	if p == nil {
		return
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.searched, p.alias = now, alias
}

// Page waits until a page may be read, and returns what to call at its end. The error is that of ctx.
func (p *Pace) Page(ctx context.Context) (end func(), err error) {
	if p == nil {
		return func() {}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.measuring && p.read() && p.stopping.Err() == nil {
		p.measuring, p.resting = true, true
		p.owned.Go(p.measure)
	}
	for p.resting || p.control.rate > 0 && p.pages >= limitedPages {
		if err := p.wait(ctx); err != nil {
			return nil, err
		}
	}
	p.pages++
	p.paged = time.Now()
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pages--
		p.paged = time.Now()
		p.change()
	}), nil
}

// Row waits until one row of a page may be passed on. The error is that of ctx.
func (p *Pace) Row(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.resting {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	p.rows++
	if p.control.rate == 0 {
		return nil
	}
	now := time.Now()
	due := p.next
	p.next = later(due, now).Add(time.Duration(float64(time.Second) / p.control.rate))
	if due.Sub(now) < lead {
		return nil
	}
	p.cfg.Metrics.wait(due.Sub(now))
	p.mu.Unlock()
	defer p.mu.Lock()
	return retry.Sleep(ctx, due.Sub(now))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Limited reports whether there is a limit: then writes are to be small too.
func (p *Pace) Limited() bool { return p != nil && p.limited.Load() }

// wait waits for a change. It is called with p locked, and unlocks it while waiting.
func (p *Pace) wait(ctx context.Context) error {
	changed := p.changed
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// change wakes those who wait. p is locked.
func (p *Pace) change() {
	p.limited.Store(p.control.rate > 0)
	close(p.changed)
	p.changed = make(chan struct{})
}

// read reports whether there are readers. p is locked.
func (p *Pace) read() bool { return p.alias != "" && time.Since(p.searched) < readersFor }

// running reports whether a run goes on. p is locked.
func (p *Pace) running() bool { return p.pages > 0 || time.Since(p.paged) < idleFor }

// measure adapts the limit while pages are read and there are readers. It ends by itself.
func (p *Pace) measure() {
	var alias string
	for based, more := (time.Time{}), true; more; {
		began := time.Now()
		if based.IsZero() || !based.Truncate(baseFor).Equal(began.Truncate(baseFor)) {
			alias = p.rest()
			based = time.Now()
			continue
		}
		times := p.probe(alias)
		more = p.adapt(times, time.Since(began))
	}
}

// rest measures the probes of the alias that was searched last while no run of this process passes rows on.
func (p *Pace) rest() (alias string) {
	p.mu.Lock()
	p.resting, alias = true, p.alias
	p.mu.Unlock()
	_ = retry.Sleep(p.stopping, settle)
	times := p.probe(alias)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.control.rest(times)
	p.resting, p.rows = false, 0
	p.cfg.Metrics.show("resting", p.control.base, p.control.rate)
	p.change()
	return alias
}

// probe returns the times of a window's probes, of one at least.
func (p *Pace) probe(alias string) []time.Duration {
	times := make([]time.Duration, 0, probes)
	for began := time.Now(); len(times) < probes && (len(times) == 0 || time.Since(began) < probeTimeout); {
		asked := time.Now()
		within, cancel := context.WithTimeout(p.stopping, probeTimeout)
		err := p.cfg.Probe(within, alias)
		cancel()
		took := time.Since(asked)
		if err != nil {
			took = probeTimeout
		}
		times = append(times, took)
		_ = retry.Sleep(p.stopping, probeEvery)
	}
	return times
}

// adapt adapts the limit to a window, and reports whether there will be another one.
func (p *Pace) adapt(times []time.Duration, took time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	used := float64(p.rows) / took.Seconds()
	p.rows = 0
	if p.measuring = p.running() && p.read() && p.stopping.Err() == nil; p.measuring {
		p.control.window(times, used)
	} else {
		p.control = control{}
	}
	p.cfg.Metrics.show("writing", high(times), p.control.rate)
	p.change()
	return p.measuring
}
