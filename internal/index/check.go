package index

import (
	"fmt"
	"math"

	"tutti/internal/core"
	"tutti/internal/index/query"
)

// Check returns what no engine can sort by, CodeInvalid. Engines calculate sums, averages and medians in ways of their own where
// integers have no sign, and medians where values are in nested elements, so that none is given.
func (s Sort) Check() error {
	if query.Analyzed(s.Field.Type) {
		return analyzed(s.Field)
	}
	switch s.Mode {
	case "", "min", "max":
		return nil
	case "sum", "avg", "median":
	default:
		return core.NewError(core.CodeInvalid, "the mode of sorting by "+s.Field.Path+" is none of min, max, sum, avg and median")
	}
	switch {
	case !query.Keyed(s.Field.Type):
		return core.NewError(core.CodeInvalid, "the field "+s.Field.Path+" holds texts, which have a min and a max alone to sort by")
	case s.Field.Type == "unsigned_long":
		return core.NewError(core.CodeInvalid, "the field "+s.Field.Path+" holds unsigned integers, which have a min and a max alone to sort by")
	case s.Mode == "median" && s.Field.Row() != "":
		return core.NewError(core.CodeInvalid, "the values of "+s.Field.Path+" are in nested elements, whose median cannot be sorted by")
	default:
		return nil
	}
}

// Check returns what no engine can count, CodeInvalid.
func (f *Facet) Check() error {
	counts := f.Buckets != nil || f.Cardinality > 0 || f.Stats || f.Histogram != 0 || len(f.Ranges) > 0
	if counts && query.Analyzed(f.Field.Type) {
		return analyzed(f.Field)
	}
	if f.Histogram != 0 && !(f.Histogram >= MinInterval && f.Histogram <= math.MaxFloat64) { // also when it is no number
		return core.NewError(core.CodeInvalid, "the interval of the histogram of "+f.Field.Path+" is not above 0, or too small")
	}
	b := f.Buckets
	switch {
	case b == nil:
		return nil
	case b.Max < 1 || b.Max > MaxBuckets:
		return core.NewError(core.CodeInvalid, fmt.Sprintf("between 1 and %d buckets of %s can be given", MaxBuckets, f.Field.Path))
	case b.TopHits < 0 || b.TopHits > MaxTopHits:
		return core.NewError(core.CodeInvalid, fmt.Sprintf("at most %d documents of each bucket of %s can be given", MaxTopHits, f.Field.Path))
	default:
		return nil
	}
}

// TooManyIntervals is the error of a histogram that would have more than MaxIntervals.
func (f *Facet) TooManyIntervals() error {
	return &core.Error{
		Code: core.CodeInvalid,
		Message: fmt.Sprintf("a histogram of %s with intervals of %s would have more than %d of them",
			f.Field.Path, query.Literal(f.Histogram), MaxIntervals),
		Hint: "ask for a wider interval, or narrow the filter",
	}
}

// analyzed is the error of asking a field for its values of which engines keep but the terms.
func analyzed(f query.Field) error {
	return &core.Error{
		Code:    core.CodeInvalid,
		Message: "the field " + f.Path + " is analyzed text, whose values can be searched but neither counted nor sorted by",
		Hint:    "use a sub-field of the type keyword",
	}
}
