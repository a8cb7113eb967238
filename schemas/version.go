package schemas

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"tutti/internal/base/cache"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas/external"
	"tutti/schemas/validation"
	"tutti/schemas/violation"
)

// compiled is the compiled form of one version of an analysis type, which validates analyses.
type compiled struct {
	rules     *validation.Schema
	fileTypes []string
	externals []external.Validation
	// overdue is closed, once, when a validation took too long.
	overdue chan struct{}
	once    sync.Once
}

// versions finds the version of an analysis type that an analysis is validated against, compiles it and applies it.
type versions struct {
	store Store
	cfg   Config
	calls *sharedCalls
	// shared is set if the store may have a later version than this process knows.
	shared *atomic.Bool
	// latest caches the numbers of the latest versions, rules the compiled schemas. A registration changes only latest.
	latest *cache.LRU[string, int]
	rules  *cache.LRU[datamodel.AnalysisTypeRef, *compiled]

	quarantine quarantine
	inFlight   *semaphore.Weighted
}

// find returns the version that an analysis is validated against.
func (v *versions) find(ctx context.Context, named datamodel.AnalysisTypeRef) (datamodel.AnalysisTypeRef, *compiled, error) {
	if named.Version == 0 || !v.cfg.AllowOlder {
		latest, err := v.latestOf(ctx, named)
		if err != nil {
			return named, nil, err
		}
		named.Version = latest
		if !v.cfg.AllowOlder {
			v.quarantine.release(named.Name, latest) // another process may have registered it
		}
	}
	types, err := v.compiled(ctx, named)
	return named, types, err
}

// latestOf returns the number of the latest version of a type, with CodeConflict when an older version is named. CodeNotFound for a later
// one.
func (v *versions) latestOf(ctx context.Context, named datamodel.AnalysisTypeRef) (int, error) {
	latest, err := v.latestVersion(ctx, named.Name)
	switch {
	case err != nil:
		return 0, err
	case named.Version > latest:
		return 0, notFound(named.Name, named.Version, nil)
	case named.Version > 0 && named.Version < latest:
		return latest, &core.Error{
			Code: core.CodeConflict, ErrorID: errorIDIncorrectVersion,
			Message: "version " + strconv.Itoa(named.Version) + " of the analysis type " + violation.Quoted(named.Name) +
				" is not its latest, which is " + strconv.Itoa(latest),
			Hint: "leave analysisType.version out, or set it to " + strconv.Itoa(latest),
		}
	}
	return latest, nil
}

// latestVersion returns the number of the latest version of a name.
func (v *versions) latestVersion(ctx context.Context, name string) (int, error) {
	if v.shared.Load() {
		t, err := v.store.AnalysisType(ctx, name, 0)
		if err != nil {
			return 0, notFound(name, 0, err)
		}
		return t.Version, nil
	}
	if version, ok := v.latest.Get(name); ok {
		return version, nil
	}
	generation := v.latest.Generation()
	return share(ctx, v.calls, callKey("latest", generation, bodyKey{name: name}), func(ctx context.Context) (int, error) {
		t, err := v.store.AnalysisType(ctx, name, 0)
		if err != nil {
			return 0, notFound(name, 0, err)
		}
		v.latest.PutIn(generation, name, t.Version, 1)
		return t.Version, nil
	})
}

// compiled returns the compiled form of a version, which is compiled once.
func (v *versions) compiled(ctx context.Context, ref datamodel.AnalysisTypeRef) (*compiled, error) {
	if v.quarantine.has(ref) {
		return nil, errOverdue
	}
	if types, ok := v.rules.Get(ref); ok {
		return types, nil
	}
	key := callKey("rules", v.latest.Generation(), bodyKey{name: ref.Name, version: ref.Version})
	return share(ctx, v.calls, key, func(ctx context.Context) (*compiled, error) {
		t, err := v.store.AnalysisType(ctx, ref.Name, ref.Version)
		if err != nil {
			return nil, notFound(ref.Name, ref.Version, err)
		}
		types, err := v.compile(t)
		if err != nil {
			return nil, core.WrapError(core.CodeInternal, "the stored schema of "+violation.Quoted(ref.Name)+" cannot be applied", err)
		}
		v.rules.Put(ref, types, int64(len(t.Schema))+types.rules.Bytes())
		return types, nil
	})
}

func (v *versions) compile(t datamodel.AnalysisType) (*compiled, error) {
	rendered, err := render(string(t.Schema))
	if err != nil {
		return nil, err
	}
	r, found, err := validation.CompileStored(string(rendered))
	if err != nil {
		return nil, err
	}
	if found != nil {
		return nil, found.Invalid(errorIDMalformedSchema, "the schema")
	}
	options := v.cfg.effective(t.Options)
	externals, found := external.ParseValidations(options.ExternalValidations)
	if len(found.Violations) > 0 {
		return nil, found.Invalid(errorIDParameter, "the external validations")
	}
	return &compiled{rules: r, fileTypes: slices.Clone(options.FileTypes), externals: externals, overdue: make(chan struct{})}, nil
}
