package catalogue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
)

// Registry holds the catalogues of a process and updates their state in the background. It is safe for concurrent use; reading
// never blocks.
type Registry struct {
	cfg      Config
	mappings Mappings
	entries  []*entry // sorted by ID
	view     atomic.Pointer[view]

	wake chan struct{}
	// answered is closed when every index has responded once, stopped when the background work has ended.
	answered, stopped chan struct{}

	mu        sync.Mutex
	refreshes map[string]struct{} // the indices to probe immediately
	cancel    context.CancelFunc  // nil before Start
}

// view is a snapshot of all catalogues.
type view struct {
	set    *core.CatalogueSet
	models map[string]*Model
}

// New returns the Registry of definitions with unique IDs. All catalogues are listed from the beginning, as failed until Start
// has read their indices.
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

// Start starts probing all indices concurrently, and waits for the first responses for at most Config.StartWait. It never fails
// because of a catalogue. CodeConflict if it was called before, CodeUnavailable if ctx ends first; even then the background work
// continues until Stop.
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

// Stop stops the background work, including calls in flight, and waits for its end or for that of ctx. The state of the
// catalogues remains readable. It may be called again; on a Registry that was not started it returns immediately.
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

// Catalogues returns a snapshot of all catalogues. It is the same pointer while nothing changes; in a new snapshot, unchanged
// catalogues keep their pointers.
func (r *Registry) Catalogues() *core.CatalogueSet { return r.view.Load().set }

// Model returns the Model of an available catalogue; nil if it failed or the ID is unknown.
func (r *Registry) Model(id string) *Model { return r.view.Load().models[id] }

// Refresh requests an immediate probe of the catalogues of an index, after its mapping or alias has changed. It does not wait for
// the result.
func (r *Registry) Refresh(alias string) {
	r.mu.Lock()
	r.refreshes[alias] = struct{}{}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// takeRefreshes returns the indices of the Refresh calls since the last time.
func (r *Registry) takeRefreshes() map[string]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.refreshes
	r.refreshes = map[string]struct{}{}
	return asked
}

// publish publishes the entries if one of them has changed.
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
