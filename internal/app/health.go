package app

import (
	"context"
	"sync"
	"time"

	tuttihttp "tutti/http"
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

// Health returns the state of the parts of the process, and sets the metric to it. Queue, index and store are up when they
// took a durable write within the last seconds. They are checked concurrently, and one that does not answer
// within healthWait is down.
func (a *App) Health(ctx context.Context) tuttihttp.Health {
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	var queue, index, store tuttihttp.ComponentState
	var asked sync.WaitGroup
	asked.Go(func() { queue = state(a.queue.Ready(ctx)) })
	asked.Go(func() { index = state(a.indexProof.result(ctx)) })
	asked.Go(func() { store = state(a.storeProof.result(ctx)) })
	asked.Wait()
	h := tuttihttp.Health{Components: map[string]tuttihttp.ComponentState{"queue": queue, "index": index, "store": store}}
	if known, err := a.brokers(); known {
		h.Components["kafka"] = state(err)
	}
	if a.relay != nil {
		h.Components["outbox"] = tuttihttp.ComponentUp
		if a.relay.Health() != nil { // changes are kept and told later
			h.Components["outbox"] = tuttihttp.ComponentDegraded
		}
	}
	degraded := a.consumers.ClockAlarm() || stillLoading(a.index)
	for _, p := range a.consumers.Paused() {
		degraded = degraded || p.Index
	}
	h.Paused = a.Paused()
	if h.Components["index"] == tuttihttp.ComponentUp && degraded {
		h.Components["index"] = tuttihttp.ComponentDegraded
	}
	for component, state := range h.Components {
		up := 1.0
		if state == tuttihttp.ComponentDown {
			up = 0
		}
		a.metrics.components.WithLabelValues(component).Set(up)
	}
	return h
}

// Paused lists the repositories whose consumers wait for something.
func (a *App) Paused() []tuttihttp.Pause {
	var all []tuttihttp.Pause
	for _, p := range a.consumers.Paused() {
		all = append(all, tuttihttp.Pause{Repository: p.Repository, Reason: p.Reason})
	}
	return all
}

// stillLoading tells that an index takes writes, and has aliases that cannot be searched yet after a start.
func stillLoading(index any) bool {
	loader, loads := index.(interface{ Loading() []string })
	return loads && len(loader.Loading()) > 0
}

func state(err error) tuttihttp.ComponentState {
	if err != nil {
		return tuttihttp.ComponentDown
	}
	return tuttihttp.ComponentUp
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
	// ended is closed at the end of the write in flight; nil when none is.
	ended chan struct{}
}

// result returns the outcome of a write that ended less than provenFor ago, or of the next one. CodeUnavailable when ctx ends
// before that does.
func (p *proof) result(ctx context.Context) error {
	p.mu.Lock()
	if p.ended == nil && time.Since(p.at) < provenFor {
		defer p.mu.Unlock()
		return p.err
	}
	if p.ended == nil {
		p.ended = make(chan struct{})
		p.work.Go(p.run)
	}
	ended := p.ended
	p.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "waiting for a durable write", ctx.Err())
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
