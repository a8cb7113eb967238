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
	// healthWait bounds one check of queue, index or store: a probe from outside seldom waits longer.
	healthWait = 2 * time.Second
	// provenFor is how long one durable write counts as proof: any client may call /ready.
	provenFor = 2 * time.Second
	// proofTime is the longest that a durable write may take.
	proofTime = 5 * time.Second
)

// Health returns the state of the parts of the process, and sets the metrics to it. Queue, index and store are up when they
// took a durable write within the last seconds. They are checked concurrently, and one that does not answer
// within healthWait is down.
func (a *App) Health(ctx context.Context) system.Health {
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	var queue, index, store error
	var asked sync.WaitGroup
	asked.Go(func() { queue = a.queue.Ready(ctx) })
	asked.Go(func() { index = a.indexProof.result(ctx) })
	asked.Go(func() { store = a.storeProof.result(ctx) })
	asked.Go(func() {
		if err := a.indexCheck.result(ctx); err != nil {
			a.log.Debug("checking which repositories were indexed", "err", err)
		}
	})
	asked.Wait()
	h := system.Health{Components: make(map[string]system.ComponentState), Paused: a.Paused()}
	note := func(component string, err error) {
		h.Components[component] = componentState(component, err)
		if err != nil {
			h.Reasons = append(h.Reasons, component+": "+core.DisplayOf(err))
		}
	}
	note("queue", queue)
	note("index", index)
	note("store", store)
	if known, err := a.brokers(); known {
		note("kafka", err)
	}
	if a.relay != nil {
		note(componentOutbox, a.relay.Health())
	}
	if index == nil {
		a.noteDegraded(&h)
	}
	if never := a.neverIndexed.Load(); never != nil {
		h.Reasons = append(h.Reasons, *never...)
	}
	for _, t := range a.analysisTypes.Quarantined() {
		h.Reasons = append(h.Reasons, fmt.Sprintf("schemas: validation by version %d of %q took longer than %s; register a later version",
			t.Version, t.Name, a.cfg.Schemas.ValidationTimeout))
	}
	for _, r := range a.cfg.Repositories {
		if u := a.upstreams[r.Code]; u != nil && u.reason() != "" {
			h.Reasons = append(h.Reasons, "repository "+r.Code+" did not answer the last call: "+u.reason())
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

// noteDegraded marks an index that takes writes as degraded while something keeps documents from being written or found.
func (a *App) noteDegraded(h *system.Health) {
	degraded := slices.ContainsFunc(a.consumers.Paused(), func(p consumers.Pause) bool { return p.Index }) // paused says why
	if a.consumers.ClockAlarm() {
		degraded = true
		h.Reasons = append(h.Reasons, "index: a stored version lies ahead of this machine's clock; check the clock")
	}
	if stillLoading(a.index) {
		degraded = true
		h.Reasons = append(h.Reasons, "index: documents are still being loaded after the start")
	}
	if degraded {
		h.Components["index"] = system.ComponentDegraded
	}
}

// Paused lists the repositories whose consumers wait for something.
func (a *App) Paused() []core.Pause {
	var all []core.Pause
	for _, p := range a.consumers.Paused() {
		all = append(all, core.Pause{Repository: p.Repository, Reason: p.Reason})
	}
	return all
}

// stillLoading tells that an index takes writes, and has aliases that cannot be searched yet after a start.
func stillLoading(index any) bool {
	loader, loads := index.(interface{ Loading() []string })
	return loads && len(loader.Loading()) > 0
}

// proof proves by a durable write that a part of the process can store, at most every provenFor however often its result is read.
type proof struct {
	// life ends when no write may begin or continue.
	life  context.Context //nolint:containedctx // the process's: a write outlives the call that began it
	write func(ctx context.Context) error
	work  sync.WaitGroup

	mu  sync.Mutex
	err error
	at  time.Time
	// began is when the write in flight began.
	began time.Time
	// ended is closed at the end of the write in flight; nil when none is.
	ended chan struct{}
}

// result returns the outcome of a write that ended less than provenFor ago, or of the next one. When ctx ends before that does,
// a write before it that succeeded counts for proofTime; CodeUnavailable after that, or where there is none.
func (p *proof) result(ctx context.Context) error {
	p.mu.Lock()
	if p.ended == nil && time.Since(p.at) < provenFor {
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
		if proven && time.Since(began) < proofTime {
			return nil
		}
		return core.WrapError(core.CodeUnavailable, "did not answer within "+healthWait.String(), ctx.Err())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *proof) run() {
	ctx, cancel := context.WithTimeout(p.life, proofTime)
	defer cancel()
	err := p.write(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.at = err, time.Now()
	close(p.ended)
	p.ended = nil
}

// wait returns when no write is in flight. result must not be called afterwards.
func (p *proof) wait() { p.work.Wait() }
