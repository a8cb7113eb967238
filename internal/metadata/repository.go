package metadata

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"tutti/internal/core"
	"tutti/internal/store"
)

// Defaults of Config.
const (
	// DefaultSystemScope is the system's scope unless Config says otherwise.
	DefaultSystemScope = "tutti"
	// DefaultMaxBytes is the size of the largest stored analysis unless Config says otherwise.
	DefaultMaxBytes = 64 << 20
)

// Validator reports whether an analysis is what its type wants.
type Validator interface {
	// Validate checks an analysis of a study, one JSON object without the members that the repository adds, and returns its
	// type. Errors are *core.Error and are given to the client as they are.
	Validate(ctx context.Context, study, analysis string) (core.AnalysisTypeRef, error)
}

// Config configures a Repository. The zero value is the default.
type Config struct {
	// IndexedStates are the states of analyses that belong into the index: a change writes an event when the state before
	// or after it is one of them. Default PUBLISHED.
	IndexedStates []core.AnalysisState
	// Untold writes no events at all: nothing relays them.
	Untold bool
	// KeepVersion checks what is merged against the version of the type that the analysis has, where the patch names none,
	// instead of the latest.
	KeepVersion bool
	// SystemScope is the system's scope, which no new study may be called. Default DefaultSystemScope.
	SystemScope string
	// MaxBytes is the size of the largest analysis that is stored, in bytes, the history of its states not counted. Default
	// DefaultMaxBytes.
	MaxBytes int
	// Logger takes, at level debug, what was done to which analysis. Default: nothing is logged.
	Logger *slog.Logger
	// Metrics counts what is done; nil counts nothing.
	Metrics *Metrics
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c Config) validate() error {
	for _, s := range c.IndexedStates {
		if !s.Valid() {
			return core.NewError(core.CodeInvalid, "an indexed state is none of UNPUBLISHED, PUBLISHED and SUPPRESSED")
		}
	}
	if c.MaxBytes < 0 {
		return core.NewError(core.CodeInvalid, "the largest analysis' size must not be negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if len(c.IndexedStates) == 0 {
		c.IndexedStates = []core.AnalysisState{core.StatePublished}
	}
	if c.SystemScope == "" {
		c.SystemScope = DefaultSystemScope
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Repository is the built-in metadata repository. Its methods may be called from several goroutines at once, and several
// processes may use one PostgreSQL.
type Repository struct {
	cfg       Config
	store     *store.Store
	validator Validator
	studies   *studies
	turns     *turns
	places    *places
	texts     texts
	// generation grows with each change of an analysis in this process.
	generation atomic.Uint64
	changed    chan struct{}
	relaying   chan struct{} // holds a token while nobody relays
}

// New makes a Repository on a store. CodeInvalid for a bad Config.
func New(s *store.Store, v Validator, cfg Config) (*Repository, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	r := &Repository{
		cfg: cfg, store: s, validator: v, studies: newStudies(), turns: newTurns(), places: newPlaces(cfg.Now),
		texts: newTexts(), changed: make(chan struct{}, 1), relaying: make(chan struct{}, 1),
	}
	r.relaying <- struct{}{}
	return r, nil
}

// Changed is signalled after this process has committed a change that wrote an event. One signal may stand for several.
func (r *Repository) Changed() <-chan struct{} { return r.changed }

// action names what was done to an analysis, in metrics and logs.
type action string

const (
	actionSubmit    action = "submit"
	actionReplace   action = "replace"
	actionMerge     action = "merge"
	actionPublish   action = "publish"
	actionUnpublish action = "unpublish"
	actionSuppress  action = "suppress"
)

// done tells of a change that is durable.
func (r *Repository) done(ctx context.Context, did action, study, id string, event bool) {
	r.generation.Add(1)
	r.cfg.Metrics.changed(did)
	r.cfg.Logger.DebugContext(ctx, "analysis changed", "action", string(did), "organization", study, "record_id", id)
	if !event {
		return
	}
	select {
	case r.changed <- struct{}{}:
	default: // a signal waits already
	}
}

func (r *Repository) indexed(s core.AnalysisState) bool {
	return !r.cfg.Untold && slices.Contains(r.cfg.IndexedStates, s)
}
