package catalogue

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
)

// Defaults of Config.
const (
	DefaultStartWait  = 500 * time.Millisecond
	DefaultCheckEvery = 30 * time.Second
	DefaultTimeout    = 10 * time.Second
	DefaultSettle     = 5 * time.Second
	// DefaultSampleEvery is the pause after a sample of documents, DefaultSampleSoon the pause after one that failed or had too few
	// documents.
	DefaultSampleEvery = 10 * time.Minute
	DefaultSampleSoon  = time.Minute
)

// maxLoggedWarnings is how many warnings of a catalogue one log line has.
const maxLoggedWarnings = 5

// Config is the configuration of a Registry. The zero value is the default.
type Config struct {
	// StartWait is how long Start waits for the first responses. Default 500 ms; negative means not at all.
	StartWait time.Duration
	// CheckEvery is the interval for reading the mapping of an available catalogue. Default 30 s.
	CheckEvery time.Duration
	// Timeout limits one reading of a mapping. Default 10 s.
	Timeout time.Duration
	// Accept validates every new Model before it is published, and returns the GraphQL names of the fields where they do not follow from their
	// names. If it returns an error, the catalogue fails with a schema_build_error that has the error's message. It must be safe for
	// concurrent use. Nil accepts all.
	Accept func(*Model) (names map[string]core.GraphQLNames, err error)
	// Reload reads the definitions again and returns them, none if they cannot be read. Only definitions that have or had an Err
	// are replaced; the others stay as they were passed to New. Reload is called periodically, never concurrently, while there is
	// a definition to replace. Nil disables reloading.
	Reload func() []definition.Definition
	// ReloadEvery is how often Reload is called at least. Then the sound definitions follow their folders too: a changed one replaces
	// the previous when it is sound, else Rejected says why not; catalogues of new folders are added. 0 disables that.
	ReloadEvery time.Duration
	// Settle is how long the result of Reload must be unchanged before it is applied. Default 5 s; negative means not at all.
	Settle time.Duration
	// Documents reads samples of documents, which show which fields hold several values. The first sample is read as soon as the
	// catalogue is available. Nil disables samples.
	Documents Documents
	// SampleEvery is the pause after a sample, default 10 min. SampleSoon, default 1 min, is the pause after a sample that failed
	// or had fewer than SampleFew documents, default 1, and the maximum pause after a change of the mapping.
	SampleEvery, SampleSoon time.Duration
	SampleFew               int
	// Logger logs state changes and warnings. Nil disables logging.
	Logger *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
	// Random returns the jitter of the pauses, in [0, 1). Nil means rand.Float64.
	Random func() float64
}

func (c Config) withDefaults() Config {
	c.StartWait = cmp.Or(c.StartWait, DefaultStartWait)
	c.CheckEvery = cmp.Or(max(c.CheckEvery, 0), DefaultCheckEvery)
	c.Timeout = cmp.Or(max(c.Timeout, 0), DefaultTimeout)
	c.Settle = cmp.Or(c.Settle, DefaultSettle)
	c.SampleEvery = cmp.Or(max(c.SampleEvery, 0), DefaultSampleEvery)
	c.SampleSoon = cmp.Or(max(c.SampleSoon, 0), DefaultSampleSoon)
	c.SampleFew = max(c.SampleFew, 1)
	if c.Accept == nil {
		c.Accept = func(*Model) (map[string]core.GraphQLNames, error) { return nil, nil }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	return c
}

// Registry holds the catalogues of a process and updates their state in the background. It is safe for concurrent use; reading
// never blocks.
type Registry struct {
	cfg      Config
	mappings Mappings
	entries  []*entry // sorted by ID
	view     atomic.Pointer[view]
	rejected atomic.Pointer[[]string]

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

// Rejected returns why changes of folders were not taken up, one reason for each catalogue that stays as it was.
func (r *Registry) Rejected() []string {
	if reasons := r.rejected.Load(); reasons != nil {
		return *reasons
	}
	return nil
}

// Model returns the Model of an available catalogue; nil if it failed or the ID is unknown.
func (r *Registry) Model(id string) *Model { return r.view.Load().models[id] }

// Refresh requests an immediate probe of the catalogues of an index, after its mapping has changed. It does not wait for the result.
func (r *Registry) Refresh(alias string) {
	r.mu.Lock()
	r.refreshes[alias] = struct{}{}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// RefreshAll requests an immediate probe of all catalogues, after an alias has moved.
func (r *Registry) RefreshAll() { r.Refresh(allIndices) }

// allIndices is the alias that stands for every index in Registry.refreshes.
const allIndices = ""

// takeRefreshes returns the indices of the Refresh calls since the last time.
func (r *Registry) takeRefreshes() map[string]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.refreshes
	r.refreshes = map[string]struct{}{}
	return asked
}

// publish publishes a new snapshot if an entry has changed, and sets the metric.
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

// entry is one catalogue and its state; only the watch changes it.
type entry struct {
	definition definition.Definition
	// catalogue is the published state; model is nil if it shows a problem.
	catalogue *core.Catalogue
	model     *Model
	// logged is set once a state was logged; warned are the model's warnings that were logged.
	logged bool
	warned []string
	// hadError is set if an earlier definition of the catalogue had an Err. replaced is set once another entry has replaced this one.
	hadError, replaced bool
}

// reloadable reports whether a reload may replace the definition: it has an Err now, or had one, so that its files may still be
// edited. Other definitions stay as they were at the start.
func (e *entry) reloadable() bool { return e.hadError || e.definition.Err != nil }

// differs reports whether a reloaded definition differs from that of e. If both have an Err, it compares only what clients see.
func (e *entry) differs(d definition.Definition) bool {
	was := e.definition
	if d.Err == nil || was.Err == nil {
		return !reflect.DeepEqual(d, was)
	}
	return d.Err.Message != was.Err.Message || d.ID != was.ID || d.DocumentType != was.DocumentType || d.Description != was.Description
}

func newEntry(d definition.Definition) *entry {
	why := pendingProblem()
	if d.Err != nil {
		why = definitionProblem(d)
	}
	return &entry{definition: d, catalogue: failedCatalogue(d, why)}
}

// logWarnings logs the warnings of the definition. If the definition has an Err, it logs it and marks the catalogue as failed.
func (e *entry) logWarnings(log *slog.Logger) {
	for _, warning := range e.definition.Warnings {
		log.Warn("the configuration of a catalogue has a warning", "catalogue", e.definition.ID, "warning", warning)
	}
	if e.definition.Err != nil {
		e.update(log, built{problem: definitionProblem(e.definition)}, e.definition.Err)
	}
}

// update sets the state to a new Model, or to the problem that prevented it. Unchanged parts keep their pointers. err is the cause
// of the problem, for the log.
func (e *entry) update(log *slog.Logger, b built, err error) {
	if e.replaced {
		return
	}
	was := e.catalogue.Problem
	if b.problem == nil {
		e.available(log, b.model)
		return
	}
	if was != nil && *was == *b.problem && e.logged {
		return
	}
	if !e.logged || was == nil || was.Code != b.problem.Code {
		why := []any{
			"catalogue", e.definition.ID, "index", e.definition.Index, "code", string(b.problem.Code), "reason", b.problem.Message,
		}
		if err != nil {
			why = append(why, "err", err)
		}
		log.Warn("a catalogue has failed", why...)
	}
	if was == nil || *was != *b.problem {
		e.catalogue = failedCatalogue(e.definition, b.problem)
	}
	e.model, e.logged = nil, true
}

func (e *entry) available(log *slog.Logger, m *Model) {
	if e.model == m {
		return
	}
	state := []any{"catalogue", e.definition.ID, "index", e.definition.Index, "fields", len(m.catalogue.Fields)}
	switch {
	case e.model == nil:
		log.Info("a catalogue is available", state...)
	case !slices.Equal(e.catalogue.Fields, m.catalogue.Fields) && slices.EqualFunc(e.catalogue.Fields, m.catalogue.Fields, equalExceptValues):
		log.Info("the fields of a catalogue that hold several values have changed", state...)
	default:
		log.Info("the mapping of a catalogue has changed", state...)
	}
	fresh := slices.DeleteFunc(slices.Clone(m.warnings), func(w string) bool { return slices.Contains(e.warned, w) })
	if n := len(fresh); n > 0 {
		text := strings.Join(fresh[:min(n, maxLoggedWarnings)], "; ")
		if n > maxLoggedWarnings {
			text += fmt.Sprintf("; and %d more, which tutti check lists", n-maxLoggedWarnings)
		}
		log.Warn("a catalogue does not fit its mapping", "catalogue", e.definition.ID, "warnings", text)
	}
	e.catalogue, e.model, e.logged, e.warned = m.catalogue, m, true, m.warnings
}

// equalExceptValues reports whether two fields are equal except for MultiValued, which samples determine.
func equalExceptValues(a, b core.CatalogueField) bool {
	a.MultiValued = b.MultiValued
	return a == b
}

// Metrics is the state of the catalogues (CONTRACT section 9); nil disables it. The label catalogue is a configured ID.
type Metrics struct {
	available *prometheus.GaugeVec
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	return &Metrics{available: promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{
		Name: "tutti_catalogue_available", Help: "Whether a catalogue can be searched: 1 when it can, 0 when it failed.",
	}, []string{"catalogue"})}
}

// forget deletes the series of an ID that no catalogue has any more.
func (m *Metrics) forget(id string) {
	if m != nil {
		m.available.DeleteLabelValues(id)
	}
}

func (m *Metrics) show(id string, available bool) {
	if m == nil {
		return
	}
	value := 0.0
	if available {
		value = 1
	}
	m.available.WithLabelValues(id).Set(value)
}
