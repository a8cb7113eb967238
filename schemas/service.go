package schemas

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/base/cache"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas/external"
	"tutti/schemas/validation"
)

// Store keeps the analysis types.
type Store interface {
	// AddAnalysisType stores the version that next returns for the latest one, nil if there is none, and returns it as stored.
	// next may be called several times; its error is returned and nothing is stored.
	AddAnalysisType(ctx context.Context, name string,
		next func(previous *datamodel.AnalysisType) (datamodel.AnalysisType, error)) (datamodel.AnalysisType, error)
	// AddFirstAnalysisTypes stores types, all version 1, in their order if there is no analysis type yet, and reports whether it did.
	AddFirstAnalysisTypes(ctx context.Context, types []datamodel.AnalysisType) (bool, error)
	// AnalysisType returns one version, 0 for the latest. CodeNotFound if there is none.
	AnalysisType(ctx context.Context, name string, version int) (datamodel.AnalysisType, error)
	// ListAnalysisTypes returns a page, and the number of all matching types.
	ListAnalysisTypes(ctx context.Context, query datamodel.AnalysisTypeQuery) ([]datamodel.AnalysisType, int, error)
}

const (
	// freshFor is how long the latest version is cached if other processes register types too.
	freshFor = time.Second
	// storeTimeout bounds a load that several callers share.
	storeTimeout = 30 * time.Second
	// rulesBytes bounds the memory of the cached compiled schemas.
	rulesBytes = 128 << 20
	// currentLimit bounds the number of names whose latest version is remembered.
	currentLimit = 100_000
)

// Service registers, renders and applies analysis types. Its methods may be called from several goroutines at once.
type Service struct {
	*bodies

	store        Store
	cfg          Config
	registration *validation.Schema
	base         *validation.Schema
	external     *external.Client
	versions     *versions
	calls        *sharedCalls
}

// New returns a Service on a store. CodeInvalid for a bad Config.
func New(store Store, cfg Config) (*Service, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := external.NewClient(external.Settings{
		AllowedHosts: cfg.AllowedHosts, Timeout: cfg.Timeout, TotalTimeout: cfg.TimeoutInAll, RetryWait: cfg.RetryWait,
		UserAgent: cfg.UserAgent, Observe: cfg.Metrics.called, TLS: cfg.TLS, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	calls, shared := &sharedCalls{}, &atomic.Bool{}
	shared.Store(cfg.Shared)
	s := &Service{
		store: store, cfg: cfg, external: client, calls: calls,
		bodies: &bodies{
			store: store, cfg: cfg, calls: calls, shared: shared,
			cached: cache.NewLRU[bodyKey, []byte](cfg.CacheBytes / 2), latest: cache.NewLRU[bodyKey, latestBody](cfg.CacheBytes / 2),
		},
		versions: &versions{
			store: store, cfg: cfg, calls: calls, shared: shared,
			latest: cache.NewLRU[string, int](currentLimit), rules: cache.NewLRU[datamodel.AnalysisTypeRef, *compiled](rulesBytes),
			quarantine: quarantine{versions: map[datamodel.AnalysisTypeRef]struct{}{}, metrics: cfg.Metrics},
			inFlight:   semaphore.NewWeighted(maxInFlight),
		},
	}
	if s.registration, err = ownRules(strings.Replace(registrationSchema, draftCheck, "", 1)); err != nil {
		return nil, err
	}
	if s.base, err = ownRules(baseSchema); err != nil {
		return nil, err
	}
	return s, nil
}

// ownRules compiles a schema that is part of this package.
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

// Quarantined returns the versions that accept no analyses because validating one took too long, sorted by name and version.
func (s *Service) Quarantined() []datamodel.AnalysisTypeRef { return s.versions.quarantine.list() }
