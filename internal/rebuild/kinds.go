package rebuild

import (
	"context"
	"errors"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
)

// Counts returns the kinds of all records of a repository; core.OverflownKinds if they are not known.
type Counts = func(ctx context.Context) (core.Kinds, error)

// decide returns the types that the values of the records decide for an index of spec.
func (r *Rebuild) decide(ctx context.Context, spec index.Spec, counts Counts) (*mapping.Types, error) {
	fields, err := spec.Fields()
	if core.CodeOf(err) == core.CodeUnsupported { // only the engine knows the fields of the mapping file
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	given := kinds.Given{Fields: fields}
	if r.declared != nil {
		given.Declared = r.declared(ctx)
	}
	raw, err := r.index.Mapping(ctx, r.spec.Alias)
	switch {
	case errors.Is(err, core.ErrIndexMissing): // which Begin reports where it matters
	case core.Retryable(err):
		return nil, err
	case err == nil:
		if given.Live, _, err = mapping.ParseForeign(raw); err != nil {
			given.Live = nil
		}
	}
	counted, err := counts(ctx)
	if err != nil {
		return nil, err
	}
	return kinds.Decide(counted, given), nil
}
