package schemas

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/cache"
	"tutti/internal/core"
	"tutti/schemas/external"
	"tutti/schemas/validation"
)

// Store keeps the analysis types.
type Store interface {
	// AddAnalysisType stores the version that next returns for the latest one, nil if there is none, and returns it as stored.
	// next may be called several times; its error is returned and nothing is stored.
	AddAnalysisType(ctx context.Context, name string,
		next func(previous *core.AnalysisType) (core.AnalysisType, error)) (core.AnalysisType, error)
	// AnalysisType returns one version, 0 for the latest. CodeNotFound if there is none.
	AnalysisType(ctx context.Context, name string, version int) (core.AnalysisType, error)
	// ListAnalysisTypes returns a page, and the number of all matching types.
	ListAnalysisTypes(ctx context.Context, query core.AnalysisTypeQuery) ([]core.AnalysisType, int, error)
}

const (
	// freshFor is how long the latest version counts as known where other processes register too.
	freshFor = time.Second
	// storeTimeout bounds a load that several callers share.
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
	// shared is set if the latest version in the store may be another than the one that this process knows.
	shared atomic.Bool

	calls sharedCalls
	// bodies caches the body of each version, latestBodies those of GET without a version, latest the numbers of the latest
	// versions, rules the compiled schemas. A registration changes only latestBodies and latest.
	bodies       *cache.LRU[bodyKey, []byte]
	latestBodies *cache.LRU[bodyKey, latestBody]
	latest       *cache.LRU[string, int]
	rules        *cache.LRU[core.AnalysisTypeRef, *compiled]

	quarantine quarantine
	inFlight   *semaphore.Weighted
}

// bodyKey names a body; version 0 is the latest with all versions beside it.
type bodyKey struct {
	name       string
	version    int
	unrendered bool
}

// latestBody is the body of the latest version together with all versions; nil if it is too large to be cached.
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
		bodies:       cache.NewLRU[bodyKey, []byte](cfg.CacheBytes / 2),
		latestBodies: cache.NewLRU[bodyKey, latestBody](cfg.CacheBytes / 2),
		latest:       cache.NewLRU[string, int](currentLimit),
		rules:        cache.NewLRU[core.AnalysisTypeRef, *compiled](rulesBytes),

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

// MetaSchema returns the JSON Schema of the body of a registration.
func (s *Service) MetaSchema() []byte { return []byte(registrationSchema) }

// Close closes idle connections to external services, and waits for the loads in flight. The Service must not be used afterwards.
func (s *Service) Close() {
	s.external.Close()
	s.calls.waiters.Wait()
}

// forget drops what a registration of name changes.
func (s *Service) forget(name string) {
	s.latestBodies.Invalidate(bodyKey{name: name}, bodyKey{name: name, unrendered: true})
	s.latest.Invalidate(name)
}
