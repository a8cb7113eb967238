package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/response"
)

func (a *aggregationPlanner) cardinality(one *facet, f *ast.Field) (response.Value, *output.Error) {
	args := a.Arguments(f)
	precision, bad := args.Int("precision_threshold", defaultPrecision)
	switch {
	case bad != nil:
		return nil, bad
	case precision < 0:
		return nil, args.Invalid("precision_threshold", "is negative")
	}
	precision = min(max(precision, 1), maxPrecision)
	i := one.findOrAdd(
		func(f *index.Facet) bool { return f.Cardinality == 0 || f.Cardinality == precision },
		func(f *index.Facet) { f.Cardinality = precision },
	)
	return one.at(i).Cardinality, nil
}

// stats plans statistics. Without values, min, max and avg are null.
func (a *aggregationPlanner) stats(one *facet, f *ast.Field) response.Value {
	i := one.findOrAdd(func(*index.Facet) bool { return true }, func(f *index.Facet) { f.Stats = true })
	return a.Object(f, func(f *ast.Field) (response.Value, *output.Error) { return one.at(i).Statistic(f.Name), nil })
}

func (a *aggregationPlanner) histogram(one *facet, f *ast.Field) (response.Value, *output.Error) {
	args := a.Arguments(f)
	interval, bad := args.Number("interval", defaultInterval)
	switch {
	case bad != nil:
		return nil, bad
	case !(interval > 0) || math.IsInf(interval, 0):
		return nil, args.Invalid("interval", "must be greater than 0")
	case interval < index.MinInterval:
		return nil, args.Invalid("interval", "is too small: the smallest is "+output.PlainNumber(index.MinInterval))
	}
	i := one.findOrAdd(
		func(f *index.Facet) bool { return f.Histogram == 0 || f.Histogram == interval },
		func(f *index.Facet) { f.Histogram = interval },
	)
	at := one.at(i)
	return at.Histogram(one.field, interval, f.Position, a.intervals(f, at.HistogramIntervals(response.IsDate(one.field.Type)))), nil
}

func (a *aggregationPlanner) ranges(one *facet, f *ast.Field) (response.Value, *output.Error) {
	args := a.Arguments(f)
	var wanted []response.Range
	for _, item := range args.List("ranges") {
		if item.Type != gjson.Null {
			wanted = append(wanted, response.RangeOf(item, response.IsDate(one.field.Type)))
		}
	}
	if len(wanted) == 0 {
		zero := 0.0
		wanted = []response.Range{{NumberRange: index.NumberRange{From: &zero}, Name: response.RangeName(&zero, nil, response.IsDate(one.field.Type))}}
	}
	if len(wanted) > maxRanges {
		return nil, args.Invalid("ranges", "has more than 1000 ranges")
	}
	slices.SortStableFunc(wanted, byBounds)
	asked := make([]index.NumberRange, len(wanted))
	for i, r := range wanted {
		asked[i] = r.NumberRange
	}
	i := one.findOrAdd(
		func(f *index.Facet) bool { return f.Ranges == nil || slices.EqualFunc(f.Ranges, asked, equalRange) },
		func(f *index.Facet) { f.Ranges = asked },
	)
	return response.Object(a.intervals(f, one.at(i).RangeIntervals(wanted))), nil
}

// intervals plans the buckets of a histogram or of ranges, and their number.
func (a *aggregationPlanner) intervals(f *ast.Field, all response.Intervals) []response.Member {
	return a.members(a.Below(f), func(f *ast.Field) (response.Value, *output.Error) {
		switch f.Name {
		case "bucket_count":
			return all.Count, nil
		case "buckets":
			fields := a.Below(f)
			for _, part := range fields {
				if part.Name == "top_hits" || part.Name == "filter_by_term" {
					return nil, output.InputError(fmt.Sprintf(
						"buckets of histogram and range have only document counts: %s is not available", part.Name,
					)).At(part.Position)
				}
			}
			return all.List(f, fields), nil
		default:
			return response.Null, nil
		}
	})
}

// byBounds orders ranges as the engine returns them.
func byBounds(a, b response.Range) int {
	low := func(f *float64) float64 {
		if f == nil {
			return -1e308
		}
		return *f
	}
	high := func(f *float64) float64 {
		if f == nil {
			return 1e308
		}
		return *f
	}
	return cmp.Or(cmp.Compare(low(a.From), low(b.From)), cmp.Compare(high(a.To), high(b.To)))
}

func equalRange(a, b index.NumberRange) bool {
	same := func(a, b *float64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return same(a.From, b.From) && same(a.To, b.To)
}
