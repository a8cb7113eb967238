package index

import (
	"fmt"
	"math"
	"strconv"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
)

// Check returns CodeInvalid for a key that no engine can sort by. It excludes sums, averages and medians of unsigned integers, and
// medians of values in nested elements, which engines compute differently.
func (s Sort) Check() error {
	if query.Analyzed(s.Field.Type) {
		return analyzed(s.Field)
	}
	switch s.Mode {
	case "", "min", "max":
		return nil
	case "sum", "avg", "median":
	default:
		return core.NewError(core.CodeInvalid, "the sort mode of the field "+strconv.Quote(s.Field.Path)+" must be min, max, sum, avg or median")
	}
	switch {
	case !query.Keyed(s.Field.Type):
		return core.NewError(core.CodeInvalid, "the field "+strconv.Quote(s.Field.Path)+" has text values, which sort only by min or max")
	case fieldtype.Of(s.Field.Type).Group == fieldtype.Unsigned:
		return core.NewError(core.CodeInvalid, "the field "+strconv.Quote(s.Field.Path)+" has unsigned integers, which sort only by min or max")
	case s.Mode == "median" && s.Field.Row() != "":
		return core.NewError(core.CodeInvalid, "the field "+strconv.Quote(s.Field.Path)+" is nested, and nested fields do not sort by median")
	default:
		return nil
	}
}

// Check returns CodeInvalid for a facet that no engine can compute.
func (f *Facet) Check() error {
	counts := f.Buckets != nil || f.Cardinality > 0 || f.Stats || f.Histogram != 0 || len(f.Ranges) > 0
	if counts && query.Analyzed(f.Field.Type) {
		return analyzed(f.Field)
	}
	if f.Histogram != 0 && !(f.Histogram >= MinInterval && f.Histogram <= math.MaxFloat64) { // also false for NaN
		return core.NewError(core.CodeInvalid, "the histogram interval of the field "+strconv.Quote(f.Field.Path)+" must be at least "+jsontext.Number(MinInterval)+" and finite")
	}
	b := f.Buckets
	switch {
	case b == nil:
		return nil
	case b.Max < 1 || b.Max > MaxBuckets:
		return core.NewError(core.CodeInvalid, fmt.Sprintf("the number of buckets of the field %q must be between 1 and %d", f.Field.Path, MaxBuckets))
	case b.TopHits < 0 || b.TopHits > MaxTopHits:
		return core.NewError(core.CodeInvalid, fmt.Sprintf("the number of top hits per bucket of the field %q must be between 0 and %d", f.Field.Path, MaxTopHits))
	default:
		return nil
	}
}

// TooManyIntervals returns the error of a histogram with more than MaxIntervals.
func (f *Facet) TooManyIntervals() error {
	return &core.Error{
		Code: core.CodeInvalid,
		Message: fmt.Sprintf("a histogram of the field %q with an interval of %s would have more than %d intervals",
			f.Field.Path, jsontext.Number(f.Histogram), MaxIntervals),
		Hint: "use a larger interval or a more specific filter",
	}
}

// analyzed returns the error of a facet or a sort on a field of which engines store only terms.
func analyzed(f query.Field) error {
	return &core.Error{
		Code:    core.CodeInvalid,
		Message: "the field " + strconv.Quote(f.Path) + " is analyzed text, which supports neither facets nor sorting",
		Hint:    "use a sub-field of type keyword",
	}
}
