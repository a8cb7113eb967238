package exclusion

import (
	"context"
	"slices"

	"tutti/internal/core"
)

// Apply returns an Upstream whose excluded records are not Indexable and have their Exclusion, and that lists no excluded
// organizations. The pages of an excluded organization still have its records. With nil rules it returns u itself.
func Apply(rules *Rules, u core.Upstream) core.Upstream {
	if rules == nil {
		return u
	}
	return &filtered{Upstream: u, rules: rules}
}

// filtered is an Upstream whose records the rules were applied to.
type filtered struct {
	core.Upstream
	rules *Rules
}

// Organizations returns the organizations that are not excluded.
func (f *filtered) Organizations(ctx context.Context) ([]string, error) {
	organizations, err := f.Upstream.Organizations(ctx)
	return slices.DeleteFunc(slices.Clone(organizations), func(o string) bool {
		_, excluded := f.rules.excluded[o]
		return excluded
	}), err
}

// Page calls each for the records of a page.
func (f *filtered) Page(
	ctx context.Context, organization string, offset, limit int, each func(core.Record) error,
) (core.PageInfo, error) {
	return f.Upstream.Page(ctx, organization, offset, limit, func(rec core.Record) error {
		f.apply(&rec)
		return each(rec)
	})
}

// Record returns one record.
func (f *filtered) Record(ctx context.Context, organization, id string) (core.Record, error) {
	rec, err := f.Upstream.Record(ctx, organization, id)
	if err == nil {
		f.apply(&rec)
	}
	return rec, err
}

// apply applies the rules to a record that is to be indexed.
func (f *filtered) apply(rec *core.Record) {
	if !rec.Indexable {
		return
	}
	if rec.Excluded = f.rules.Of(*rec); rec.Excluded != nil {
		rec.Indexable = false
	}
}
