package metadata

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"tutti/internal/base/keylock"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/store"
)

// Defaults of Config.
const (
	// DefaultSystemScope is the default of Config.SystemScope.
	DefaultSystemScope = "tutti"
	// DefaultMaxBytes is the default of Config.MaxBytes.
	DefaultMaxBytes = 64 << 20
	// DefaultStorageTimeout is the default of Config.StorageTimeout.
	DefaultStorageTimeout = 30 * time.Second
)

// Validator validates analyses against their type.
type Validator interface {
	// Validate validates an analysis of a study, one JSON object without the members that the repository adds, and returns its
	// type. Errors are *core.Error and are returned to the client unchanged.
	Validate(ctx context.Context, study, analysis string) (datamodel.AnalysisTypeRef, error)
	// CheckVersion checks that an analysis of a version may be published. Errors are *core.Error and are returned to the client
	// unchanged.
	CheckVersion(ctx context.Context, ref datamodel.AnalysisTypeRef) error
}

// Storage is the storage of the files' objects. It is safe for concurrent use.
type Storage interface {
	// Object returns an object, core.ErrObjectAbsent when the storage does not have it. Other errors are *core.Error and are
	// returned to the client unchanged.
	Object(ctx context.Context, id string) (datamodel.StoredObject, error)
}

// Config configures a Repository. The zero value is the default.
type Config struct {
	// IndexedStates are the states whose analyses are indexed: a change writes an event when the state before or after it is one of
	// them. Default PUBLISHED.
	IndexedStates []datamodel.AnalysisState
	// DisableOutbox writes no events, for processes that do not relay them.
	DisableOutbox bool
	// KeepVersion validates a merged analysis against the version of its type, unless the patch names one, instead of the latest
	// version.
	KeepVersion bool
	// SystemScope is the system's scope, which no new study may have as its id. Default DefaultSystemScope.
	SystemScope string
	// MaxBytes bounds a stored analysis in bytes, not counting its state history. Default DefaultMaxBytes.
	MaxBytes int
	// Storage is asked for the objects of an analysis before it is published. Default: no check.
	Storage Storage
	// StorageTimeout bounds the check of one analysis. Default DefaultStorageTimeout.
	StorageTimeout time.Duration
	// CheckDocument reports why the index would reject an analysis, "" when it would not. Default: no check.
	CheckDocument func(ctx context.Context, a datamodel.Analysis) string
	// Logger logs each change of an analysis at level debug. Default: no logging.
	Logger *slog.Logger
	// Metrics counts changes; nil counts nothing.
	Metrics *Metrics
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c Config) validate() error {
	for _, s := range c.IndexedStates {
		if !s.Valid() {
			return core.NewError(core.CodeInvalid, "an indexed state must be UNPUBLISHED, PUBLISHED or SUPPRESSED")
		}
	}
	if c.MaxBytes < 0 {
		return core.NewError(core.CodeInvalid, "the maximum size of an analysis must not be negative")
	}
	if c.StorageTimeout < 0 {
		return core.NewError(core.CodeInvalid, "the timeout of the storage check must not be negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if len(c.IndexedStates) == 0 {
		c.IndexedStates = []datamodel.AnalysisState{datamodel.StatePublished}
	}
	c.SystemScope = cmp.Or(c.SystemScope, DefaultSystemScope)
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	c.StorageTimeout = cmp.Or(c.StorageTimeout, DefaultStorageTimeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Repository is the built-in metadata repository. It is safe for concurrent use, and several processes may share one PostgreSQL.
type Repository struct {
	*studies
	*lists
	*outbox
	*reader
	*entities

	cfg       Config
	store     *store.Store
	validator Validator
	// locks serialize the rewrites of an analysis in this process, so that they are not repeated because of each other.
	locks keylock.Locks
}

// New returns a Repository on a store. CodeInvalid for a bad Config.
func New(s *store.Store, v Validator, cfg Config) (*Repository, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	r := &Repository{cfg: cfg, store: s, validator: v, studies: newStudies(s, cfg), outbox: newOutbox(s, cfg.Now)}
	r.lists = newLists(s, r.studies, cfg)
	r.reader = &reader{store: s, studies: r.studies}
	r.entities = &entities{store: s, log: cfg.Logger}
	return r, nil
}

// action names a change of an analysis in metrics and logs.
type action string

const (
	actionSubmit    action = "submit"
	actionReplace   action = "replace"
	actionMerge     action = "merge"
	actionPublish   action = "publish"
	actionUnpublish action = "unpublish"
	actionSuppress  action = "suppress"
	// actionChangeFile changes or removes files of an analysis.
	actionChangeFile action = "change_file"
)

// recordChange counts and logs a committed change and signals Changed when it wrote an event.
func (r *Repository) recordChange(ctx context.Context, did action, study, id string, event bool) {
	r.generation.Add(1)
	r.cfg.Metrics.changed(did)
	r.cfg.Logger.DebugContext(ctx, "analysis changed", "action", string(did), "organization", study, "record_id", id)
	if event {
		r.signalChanged()
	}
}

func (r *Repository) indexed(s datamodel.AnalysisState) bool {
	return !r.cfg.DisableOutbox && slices.Contains(r.cfg.IndexedStates, s)
}
