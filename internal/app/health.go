package app

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"tutti/consumers"
	"tutti/http/system"
	"tutti/internal/core"
)

const (
	// healthTimeout bounds one check of queue, index or store: few monitoring probes wait longer.
	healthTimeout = 2 * time.Second
	// checkTTL is how long the outcome of a check is reused: any client may call /ready.
	checkTTL = 2 * time.Second
	// checkTimeout is the longest that a check may take.
	checkTimeout = 5 * time.Second
)

// Health returns the state of the parts of the process, and sets the metrics to it. Queue, index and store are up when they
// took a durable write within the last seconds. They are checked concurrently, and one that does not answer
// within healthTimeout is down.
func (a *App) Health(ctx context.Context) system.Health {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	var queue, index, store error
	var checks sync.WaitGroup
	checks.Go(func() { queue = a.data.Queue.Ready(ctx) })
	checks.Go(func() { index = a.indexCheck.result(ctx) })
	checks.Go(func() { store = a.storeCheck.result(ctx) })
	checks.Go(func() {
		if err := a.fillCheck.result(ctx); err != nil {
			a.log.Debug("checking which repositories were indexed", "err", err)
		}
	})
	checks.Wait()
	h := system.Health{Components: make(map[string]system.ComponentState), Paused: a.Paused(), Stopping: a.stopping.Load()}
	note := func(component string, err error) {
		h.Components[component] = componentState(component, err)
		if err != nil {
			h.Reasons = append(h.Reasons, component+": "+core.DisplayOf(err))
		}
	}
	note("queue", queue)
	note("index", index)
	note("store", store)
	if known, err := a.indexer.brokers(); known {
		note("kafka", err)
	}
	if a.indexer.relay != nil {
		note(componentOutbox, a.indexer.relay.Health())
	}
	if index == nil {
		a.noteDegraded(&h)
	}
	if slices.ContainsFunc(a.indexer.consumers.Paused(), func(p consumers.Pause) bool { return p.Upstream }) {
		h.Components["upstream"] = system.ComponentDegraded // paused says which and why
	}
	if queue == nil {
		a.noteDegradedQueue(&h)
	}
	h.Reasons = append(h.Reasons, a.contents.Reasons(ctx)...)
	h.Reasons = append(append(h.Reasons, a.data.DamageReasons()...), a.search.catalogues.Rejected()...)
	h.Reasons = append(h.Reasons, a.indexer.declared.reasons()...)
	h.Reasons = append(h.Reasons, a.connections.Reasons()...)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_ = a.connectionCheck.result(ended) // does not wait: the next answer has its outcome
	for _, t := range a.builtIn.analysisTypes.Quarantined() {
		h.Reasons = append(h.Reasons, fmt.Sprintf("schemas: validation by version %d of %q took longer than %s; register a later version",
			t.Version, t.Name, a.cfg.Schemas.ValidationTimeout))
	}
	for _, r := range a.cfg.Repositories {
		if reason := a.indexer.contradicts(ctx, r); reason != "" {
			h.Reasons = append(h.Reasons, reason)
		}
		if failure := a.indexer.failure(r.Code); failure != "" {
			h.Reasons = append(h.Reasons, "repository "+r.Code+" did not answer the last call: "+failure)
		}
	}
	for component, state := range h.Components {
		up := 1.0
		if state == system.ComponentDown {
			up = 0
		}
		a.metrics.components.WithLabelValues(component).Set(up)
	}
	for _, r := range a.cfg.Repositories {
		paused := 0.0
		if slices.ContainsFunc(h.Paused, func(p core.Pause) bool { return p.Repository == r.Code }) {
			paused = 1
		}
		a.metrics.paused.WithLabelValues(r.Code).Set(paused)
	}
	return h
}

const componentOutbox = "outbox"

// componentState returns the state of a component whose check returned err. An outbox that cannot publish is degraded: it keeps the
// changes and publishes them later.
func componentState(component string, err error) system.ComponentState {
	switch {
	case err == nil:
		return system.ComponentUp
	case component == componentOutbox:
		return system.ComponentDegraded
	default:
		return system.ComponentDown
	}
}

// noteDegradedQueue marks a queue that is up as degraded while it is full, refuses calls, or is a server that should not be used.
func (a *App) noteDegradedQueue(h *system.Health) {
	var reasons []string
	if full := a.contents.Full(); full != "" {
		reasons = append(reasons, full)
	}
	for _, err := range []error{a.data.Queue.Denied(), a.data.Queue.Unfit()} {
		if err != nil {
			reasons = append(reasons, "queue: "+core.DisplayOf(err))
		}
	}
	if len(reasons) > 0 {
		h.Components["queue"] = system.ComponentDegraded
		h.Reasons = append(h.Reasons, reasons...)
	}
}

// noteDegraded marks an index that is up as degraded while documents cannot be written or found.
func (a *App) noteDegraded(h *system.Health) {
	degraded := slices.ContainsFunc(a.indexer.consumers.Paused(), func(p consumers.Pause) bool { return p.Index }) // paused says why
	if a.indexer.consumers.ClockAlarm() {
		degraded = true
		h.Reasons = append(h.Reasons, "index: a stored version lies ahead of this machine's clock; check the clock")
	}
	if stillLoading(a.data.Engine) {
		degraded = true
		h.Reasons = append(h.Reasons, "index: documents are still being loaded after the start")
	}
	if defect := a.indexDefect.Load(); defect != nil {
		degraded = true
		h.Reasons = append(h.Reasons, "index: "+*defect)
	}
	if degraded {
		h.Components["index"] = system.ComponentDegraded
	}
}

// checkIndex reports whether the index answers, and sets indexDefect.
func (a *App) checkIndex(ctx context.Context) error {
	err := a.data.Index.Ping(ctx)
	known, is := a.data.Engine.(interface {
		Defect(ctx context.Context) string
	})
	if !is || err != nil {
		return err
	}
	var noted *string
	if defect := known.Defect(ctx); defect != "" {
		noted = &defect
	}
	a.indexDefect.Store(noted)
	return nil
}

// Paused lists the repositories whose consumers are paused.
func (a *App) Paused() []core.Pause {
	var all []core.Pause
	for _, p := range a.indexer.consumers.Paused() {
		all = append(all, core.Pause{Repository: p.Repository, Reason: p.Reason})
	}
	return all
}

// stillLoading reports whether some aliases of an index cannot be searched yet after a start.
func stillLoading(index any) bool {
	loader, loads := index.(interface{ Loading() []string })
	return loads && len(loader.Loading()) > 0
}

// cachedCheck runs a check, such as a durable write, at most once every checkTTL, however often its result is read.
type cachedCheck struct {
	// life ends when no check may begin or continue.
	life  context.Context //nolint:containedctx // the process's: a check outlives the call that began it
	check func(ctx context.Context) error
	work  sync.WaitGroup

	mu  sync.Mutex
	err error
	at  time.Time
	// began is when the check in flight began.
	began time.Time
	// ended is closed at the end of the check in flight; nil without one.
	ended chan struct{}
}

// result returns the outcome of a check that ended less than checkTTL ago, or of the next one. When ctx ends first, it returns nil if
// the last check succeeded and the one in flight began less than checkTimeout ago, else CodeUnavailable.
func (p *cachedCheck) result(ctx context.Context) error {
	p.mu.Lock()
	if p.ended == nil && time.Since(p.at) < checkTTL {
		defer p.mu.Unlock()
		return p.err
	}
	if p.ended == nil {
		p.ended, p.began = make(chan struct{}), time.Now()
		p.work.Go(p.run)
	}
	ended, proven := p.ended, !p.at.IsZero() && p.err == nil
	began := p.began
	p.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
		if proven && time.Since(began) < checkTimeout {
			return nil
		}
		return core.WrapError(core.CodeUnavailable, "did not answer within "+healthTimeout.String(), ctx.Err())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *cachedCheck) run() {
	ctx, cancel := context.WithTimeout(p.life, checkTimeout)
	defer cancel()
	err := p.check(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.at = err, time.Now()
	close(p.ended)
	p.ended = nil
}

// wait blocks until no check is in flight. result must not be called afterwards.
func (p *cachedCheck) wait() { p.work.Wait() }
