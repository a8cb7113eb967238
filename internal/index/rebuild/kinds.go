package rebuild

import (
	"context"
	"errors"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
)

// Counts returns the kinds of all records of a repository; core.OverflownKinds if they are not known. They may have some of records that have
// changed since, unless uncertain returns a path for them.
type Counts = func(ctx context.Context, uncertain func(counts core.Kinds, gone int64) (path string)) (core.Kinds, error)

// decide sets what the values of the records decide for an index of spec.
func (r *Rebuild) decide(ctx context.Context, spec *index.Spec, counts Counts) error {
	fields, err := spec.Fields()
	if core.CodeOf(err) == core.CodeUnsupported { // only the engine knows the fields of the mapping file
		return nil
	}
	if err != nil {
		return err
	}
	given := kinds.Given{Fields: fields}
	raw, err := r.index.Mapping(ctx, r.spec.Alias)
	switch {
	case errors.Is(err, core.ErrIndexMissing): // which Begin reports where it matters
	case core.Retryable(err):
		return err
	case err == nil:
		if given.Live, _, err = mapping.ParseForeign(raw); err != nil {
			given.Live = nil
		}
	}
	counted, err := counts(ctx, func(counts core.Kinds, gone int64) string {
		given.Declared = r.declared() // which is read before the values are counted
		return kinds.Uncertain(counts, gone, given)
	})
	if err != nil {
		return err
	}
	given.Declared = r.declared()
	spec.Kinds = kinds.Decide(counted, given)
	lists := kinds.Lists(spec.Kinds)
	if lists == nil {
		return nil
	}
	whole, err := mapping.Merge(fields, lists)
	if err != nil || r.limits.With(spec.Mapping).Exceeded(whole) != "" { // documents add them, up to the limit
		return nil
	}
	spec.Known, err = mapping.Merge(spec.Known, lists)
	return err
}
