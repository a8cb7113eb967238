package catalogue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tutti/internal/catalogue/definition"
	"tutti/internal/core"
)

// Registry holds the catalogues of a process and keeps their state true in the background. All methods may be called
// concurrently; what it gives is read without waiting for anything.
type Registry struct {
	cfg      Config
	mappings Mappings
	entries  []*entry // in the order of their ids
	view     atomic.Pointer[view]

	wake chan struct{}
	// answered is closed when every index has answered once, stopped when the background work has ended.
	answered, stopped chan struct{}

	mu        sync.Mutex
	refreshes map[string]struct{} // the indices to look at at once
	cancel    context.CancelFunc  // nil before Start
}

// view is all catalogues at one moment.
type view struct {
	set    *core.CatalogueSet
	models map[string]*Model
}

// New makes the Registry of definitions whose ids are unique. All catalogues are listed from the beginning, as failed until
// Start has heard of their indices.
func New(defs []definition.Definition, m Mappings, cfg Config) *Registry {
	r := &Registry{
		cfg: cfg.withDefaults(), mappings: m, refreshes: map[string]struct{}{},
		wake: make(chan struct{}, 1), answered: make(chan struct{}), stopped: make(chan struct{}),
	}
	for _, d := range defs {
		r.entries = append(r.entries, newEntry(d))
	}
	slices.SortFunc(r.entries, func(a, b *entry) int { return cmp.Compare(a.definition.ID, b.definition.ID) })
	r.publish()
	return r
}

// Start begins to look at all indices, a few dozen side by side, and waits for their first answers, not longer than Config.StartWait. It
// never fails because of a catalogue. CodeConflict when it was called before, CodeUnavailable when ctx ends first; the
// background work goes on until Stop then too.
func (r *Registry) Start(ctx context.Context) error {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.mu.Lock()
	if r.cancel != nil {
		r.mu.Unlock()
		cancel()
		return core.NewError(core.CodeConflict, "the catalogues have been started before")
	}
	r.cancel = cancel
	r.mu.Unlock()
	go newWatch(r).run(background)
	timer := time.NewTimer(max(0, r.cfg.StartWait))
	defer timer.Stop()
	select {
	case <-r.answered:
	case <-timer.C:
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "starting the catalogues", ctx.Err())
	}
	return nil
}

// Stop ends the background work, calls in progress included, and waits for its end, not beyond that of ctx. What is known of
// the catalogues stays as it is. It may be called again; a Registry that was not started is stopped already.
func (r *Registry) Stop(ctx context.Context) error {
	r.mu.Lock()
	cancel := r.cancel
	r.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	select {
	case <-r.stopped:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "stopping the catalogues", ctx.Err())
	}
}

// Catalogues returns all catalogues as they are now. It is the same pointer as long as nothing changed, and a new set has the
// same pointers for the catalogues that did not.
func (r *Registry) Catalogues() *core.CatalogueSet { return r.view.Load().set }

// Model returns the Model of an available catalogue; nil when it failed and when there is none of that id.
func (r *Registry) Model(id string) *Model { return r.view.Load().models[id] }

// Refresh has the catalogues of an index looked at at once, after its mapping has changed or the alias stands for another
// one. It does not wait for that.
func (r *Registry) Refresh(alias string) {
	r.mu.Lock()
	r.refreshes[alias] = struct{}{}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// takeRefreshes returns the indices that Refresh was called for since the last time.
func (r *Registry) takeRefreshes() map[string]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.refreshes
	r.refreshes = map[string]struct{}{}
	return asked
}

// publish shows the entries as they are, when one of them is not as it was shown.
func (r *Registry) publish() {
	old := r.view.Load()
	next := &view{set: &core.CatalogueSet{}, models: map[string]*Model{}}
	for _, e := range r.entries {
		next.set.Catalogues = append(next.set.Catalogues, e.catalogue)
		if e.model != nil {
			next.models[e.definition.ID] = e.model
		}
		r.cfg.Metrics.show(e.definition.ID, e.model != nil)
	}
	if old == nil || !slices.Equal(old.set.Catalogues, next.set.Catalogues) {
		r.view.Store(next)
	}
}
