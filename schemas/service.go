package schemas

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
	"tutti/schemas/external"
	"tutti/schemas/validation"
)

// Store keeps the analysis types.
type Store interface {
	// AddAnalysisType adds the version that next makes of the latest one, nil when there is none, and gives it as it is
	// stored. next may be called several times; an error of it is returned and adds nothing.
	AddAnalysisType(ctx context.Context, name string,
		next func(previous *core.AnalysisType) (core.AnalysisType, error)) (core.AnalysisType, error)
	// AnalysisType gives one version, 0 for the latest. CodeNotFound when there is none.
	AnalysisType(ctx context.Context, name string, version int) (core.AnalysisType, error)
	// ListAnalysisTypes gives a page, and how many match in all.
	ListAnalysisTypes(ctx context.Context, query core.AnalysisTypeQuery) ([]core.AnalysisType, int, error)
}

const (
	// freshFor is how long the latest version counts as known where other processes register too.
	freshFor = time.Second
	// storeTimeout bounds what is loaded for several callers at once, whose own time does not count then.
	storeTimeout = 30 * time.Second
	// rulesBytes bounds the memory of the compiled schemas that are cached.
	rulesBytes = 128 << 20
	// currentLimit bounds the number of names whose latest version is remembered.
	currentLimit = 100_000
)

// Service registers, renders and applies analysis types. Its methods may be called from several goroutines at once.
type Service struct {
	store        Store
	cfg          Config
	registration *validation.Schema
	base         *validation.Schema
	external     *external.Client
	// shared is true where the store's latest version may not be the one that this process knows.
	shared atomic.Bool

	calls sharedCalls
	// bodies holds the AnalysisType of each version, wholes what GET without a version gives, latest the number of the
	// latest version, rules the compiled schemas. Only wholes and latest change, at a registration.
	bodies       *cache[bodyKey, []byte]
	latestBodies *cache[bodyKey, latestBody]
	latest       *cache[string, int]
	rules        *cache[core.AnalysisTypeRef, *compiled]

	quarantine quarantine
	inFlight   *semaphore.Weighted
}

// bodyKey names a body; version 0 is the latest with all versions beside it.
type bodyKey struct {
	name       string
	version    int
	unrendered bool
}

// latestBody is the body of the latest version with all versions beside it; it is nil where it is too large to be kept.
type latestBody struct {
	body    []byte
	version int
	// at is when the version was the latest for certain.
	at time.Time
}

// New makes a Service on a store. CodeInvalid for a bad Config.
func New(store Store, cfg Config) (*Service, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	asker, err := external.NewClient(external.Settings{
		AllowedHosts: cfg.AllowedHosts, Timeout: cfg.Timeout, TotalTimeout: cfg.TimeoutInAll, RetryWait: cfg.RetryWait,
		UserAgent: cfg.UserAgent, Observe: cfg.Metrics.called,
	})
	if err != nil {
		return nil, err
	}
	s := &Service{
		store: store, cfg: cfg, external: asker,
		bodies:       newCache[bodyKey, []byte](cfg.CacheBytes / 2),
		latestBodies: newCache[bodyKey, latestBody](cfg.CacheBytes / 2),
		latest:       newCache[string, int](currentLimit),
		rules:        newCache[core.AnalysisTypeRef, *compiled](rulesBytes),

		quarantine: quarantine{versions: map[core.AnalysisTypeRef]struct{}{}, metrics: cfg.Metrics},
		inFlight:   semaphore.NewWeighted(maxInFlight),
	}
	s.shared.Store(cfg.Shared)
	if s.registration, err = ownRules(strings.Replace(registrationSchema, draftCheck, "", 1)); err != nil {
		return nil, err
	}
	if s.base, err = ownRules(baseSchema); err != nil {
		return nil, err
	}
	return s, nil
}

// ownRules compiles a schema of this package.
func ownRules(text string) (*validation.Schema, error) {
	r, found, err := validation.Compile(text)
	if err == nil && found != nil {
		err = found.Invalid("", "a schema of tutti")
	}
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "compiling a schema of tutti", err)
	}
	return r, nil
}

// MetaSchema gives the JSON Schema of the body of a registration.
func (s *Service) MetaSchema() []byte { return []byte(registrationSchema) }

// Close closes the idle connections to external services, and waits for the end of what is loaded for nobody any more. No
// other method may be called from then on.
func (s *Service) Close() {
	s.external.Close()
	s.calls.waiters.Wait()
}

// forget drops what a registration of name changes.
func (s *Service) forget(name string) {
	s.latestBodies.forget(bodyKey{name: name}, bodyKey{name: name, unrendered: true})
	s.latest.forget(name)
}
