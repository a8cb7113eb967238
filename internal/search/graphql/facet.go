package graphql

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
)

// Defaults and limits of aggregations.
const (
	defaultInterval  = 1000
	defaultPrecision = 40_000
	maxPrecision     = 40_000
	// maxTopHitsInAll limits the documents in all buckets of a facet, defaultTopBuckets is the default number of buckets with
	// documents.
	maxTopHitsInAll   = 10_000
	defaultTopBuckets = 100
	maxRanges         = 1000
	// maxRead limits the clauses that are translated for one field aggregations. For each facet of a field in the filter, the
	// whole filter is translated again without the clauses of that field.
	maxRead = 100_000
)

// aggregations plans the facets of a catalogue.
func (x *execution) aggregations(ctx context.Context, f *ast.Field) (writeFunc, *gqlError) {
	args := x.args(f)
	a := aggregationPlanner{x: x, facets: map[string]*facet{}}
	var bad *gqlError
	if a.filter, bad = x.filter(f, "filters"); bad != nil {
		return nil, bad
	}
	if a.filterThemselves, bad = args.flag("aggregations_filter_themselves", false); bad != nil {
		return nil, bad
	}
	if a.missing, bad = args.flag("include_missing", true); bad != nil {
		return nil, bad
	}
	members := x.plan(x.below(f), func(f *ast.Field) (writeFunc, *gqlError) { return a.field(ctx, f) })
	return func(w *responseWriter) bool {
		if len(a.facets) > 0 && x.batch.err != nil {
			return w.nullWithError(errorOf(x.batch.err).at(f.Position))
		}
		return w.object(members)
	}, nil
}

// aggregationPlanner plans one field aggregations.
type aggregationPlanner struct {
	x                *execution
	filter           sqon.Filter
	filterThemselves bool
	missing          bool
	// facets are by field name: aliases of one field share their facets where possible.
	facets map[string]*facet
	// filterFields are the fields of the filter, by name and by path; byRow caches the filters of fields outside of it.
	filterFields map[string]bool
	byRow        map[string]facetFilters
	// filterClauses is the number of clauses of the filter, clausesRead the number translated for all facets.
	filterClauses, clausesRead int
}

// facetFilters are the filters of a facet: for documents, and for nested elements.
type facetFilters struct {
	documents, elements *query.Node
}

// filtersFor returns the filters of the facet of a field. For fields outside of the filter they depend only on the row, so that
// the filter is translated once per row.
func (a *aggregationPlanner) filtersFor(ctx context.Context, name string, field query.Field) (facetFilters, error) {
	if err := ctx.Err(); err != nil {
		return facetFilters{}, err
	}
	if a.filterFields == nil {
		a.filterFields, a.byRow = map[string]bool{}, map[string]facetFilters{}
		a.collectFields(a.filter.Root)
	}
	named := a.filterFields[name] || a.filterFields[field.Path]
	if known, is := a.byRow[field.Row()]; is && !named {
		return known, nil
	}
	if a.clausesRead += a.filterClauses; a.clausesRead > maxRead {
		return facetFilters{}, core.NewError(core.CodeInvalid, fmt.Sprintf(
			"the filter has %d clauses, which is too many for this number of aggregations of fields in the filter", a.filterClauses,
		))
	}
	documents, elements, err := a.x.view.Facet(ctx, a.filter, name, a.filterThemselves)
	n := facetFilters{documents, elements}
	if err == nil && !named {
		a.byRow[field.Row()] = n
	}
	return n, err
}

// collectFields records the fields of a filter.
func (a *aggregationPlanner) collectFields(n *sqon.Node) {
	if n == nil {
		return
	}
	a.filterClauses++
	for _, name := range n.Fields {
		a.filterFields[name] = true
		if field, known := a.x.view.Field(name); known {
			a.filterFields[field.Path] = true
		}
	}
	for _, child := range n.Content {
		a.collectFields(child)
	}
}

// facet is the aggregation of one field. Combinations that do not fit into one facet of the index use several.
type facet struct {
	batch    *batch
	request  int
	field    query.Field
	elements *query.Node
	// indices are the positions of this field's facets in the request.
	indices []int
}

// field plans the aggregation of one field.
func (a *aggregationPlanner) field(ctx context.Context, f *ast.Field) (writeFunc, *gqlError) {
	name, known := a.x.served.schema.Aggregated(f.Name)
	if !known {
		return writeNull, nil
	}
	one := a.facets[name]
	if one == nil {
		field, known := a.x.view.Field(name)
		if !known {
			return nil, (&gqlError{message: "the field " + f.Name + " has no values in the index", code: codeInternal}).at(f.Position)
		}
		n, err := a.filtersFor(ctx, name, field)
		if err != nil {
			return nil, errorOf(err).at(f.Position)
		}
		one = &facet{batch: &a.x.batch, request: a.x.batch.aggregationRequest(n.documents), field: field, elements: n.elements}
		a.x.batch.hasFacets = true
		a.facets[name] = one
	}
	fields := a.x.below(f)
	// bucket_count counts the buckets selected beside it.
	var beside *bucketPlan
	for _, part := range fields {
		if part.Name == "buckets" && beside == nil {
			b, bad := a.buckets(ctx, one, part)
			if bad != nil {
				break // reported when the field is planned
			}
			beside = b
		}
	}
	members := a.x.plan(fields, func(part *ast.Field) (writeFunc, *gqlError) { return a.part(ctx, one, beside, part) })
	return func(w *responseWriter) bool { return w.object(members) }, nil
}

// part plans one field of an aggregation.
func (a *aggregationPlanner) part(ctx context.Context, one *facet, beside *bucketPlan, f *ast.Field) (writeFunc, *gqlError) {
	switch f.Name {
	case "buckets":
		b := beside
		if b == nil || b.field != f {
			var bad *gqlError
			if b, bad = a.buckets(ctx, one, f); bad != nil {
				return nil, bad
			}
		}
		return b.write, nil
	case "bucket_count":
		if beside == nil {
			beside = &bucketPlan{of: one, missing: a.missing, at: one.buckets(index.MaxBuckets, a.missing)}
		}
		return beside.count, nil
	case "cardinality":
		return a.cardinality(one, f)
	case "stats":
		return a.stats(one, f), nil
	case "histogram":
		return a.histogram(one, f)
	case "range":
		return a.ranges(one, f)
	default:
		return writeNull, nil
	}
}

// findOrAdd returns the index of the first facet that fits, or of a new one, after ask has changed it.
func (o *facet) findOrAdd(fits func(*index.Facet) bool, ask func(*index.Facet)) int {
	facets := &o.batch.reqs[o.request].Facets
	for _, i := range o.indices {
		if fits(&(*facets)[i]) {
			ask(&(*facets)[i])
			return i
		}
	}
	*facets = append(*facets, index.Facet{Field: o.field, Elements: o.elements})
	i := len(*facets) - 1
	o.indices = append(o.indices, i)
	ask(&(*facets)[i])
	return i
}

// result returns the index result of one facet.
func (o *facet) result(i int) *index.FacetResult { return &o.batch.results[o.request].Facets[i] }

// buckets requests the values of the field.
func (o *facet) buckets(most int, missing bool) int {
	return o.findOrAdd(func(f *index.Facet) bool { return f.Buckets == nil || f.Buckets.Max == most }, func(f *index.Facet) {
		if f.Buckets == nil {
			f.Buckets = &index.Buckets{Max: most}
		}
		f.Missing = f.Missing || missing
	})
}

func (a *aggregationPlanner) cardinality(one *facet, f *ast.Field) (writeFunc, *gqlError) {
	args := a.x.args(f)
	precision, bad := args.int("precision_threshold", defaultPrecision)
	switch {
	case bad != nil:
		return nil, bad
	case precision < 0:
		return nil, args.invalid("precision_threshold", "is negative")
	}
	precision = min(max(precision, 1), maxPrecision)
	i := one.findOrAdd(
		func(f *index.Facet) bool { return f.Cardinality == 0 || f.Cardinality == precision },
		func(f *index.Facet) { f.Cardinality = precision },
	)
	return func(w *responseWriter) bool { return w.int(one.result(i).Cardinality) }, nil
}

// stats plans statistics. Without values, min, max and avg are null.
func (a *aggregationPlanner) stats(one *facet, f *ast.Field) writeFunc {
	i := one.findOrAdd(func(*index.Facet) bool { return true }, func(f *index.Facet) { f.Stats = true })
	return a.x.objectOf(f, func(f *ast.Field) (writeFunc, *gqlError) {
		return func(w *responseWriter) bool {
			s := one.result(i).Stats
			switch {
			case f.Name == "count":
				return w.int(s.Count)
			case f.Name == "sum":
				return w.number(s.Sum)
			case s.Count == 0:
				return w.null()
			case f.Name == "min":
				return w.number(s.Min)
			case f.Name == "max":
				return w.number(s.Max)
			default:
				return w.number(s.Avg)
			}
		}, nil
	})
}

func (a *aggregationPlanner) histogram(one *facet, f *ast.Field) (writeFunc, *gqlError) {
	args := a.x.args(f)
	interval, bad := args.number("interval", defaultInterval)
	switch {
	case bad != nil:
		return nil, bad
	case !(interval > 0) || math.IsInf(interval, 0):
		return nil, args.invalid("interval", "must be greater than 0")
	case interval < index.MinInterval:
		return nil, args.invalid("interval", "is too small: the smallest is "+plainNumber(index.MinInterval))
	}
	i := one.findOrAdd(
		func(f *index.Facet) bool { return f.Histogram == 0 || f.Histogram == interval },
		func(f *index.Facet) { f.Histogram = interval },
	)
	date := isDate(one.field.Type)
	whole := a.intervals(f, func() []countInterval {
		found := one.result(i).Histogram
		out := make([]countInterval, len(found))
		for i, h := range found {
			out[i] = countInterval{key: plainNumber(h.Key), count: h.Count}
			if date {
				out[i].text = dateText(h.Key)
			}
		}
		return out
	})
	return func(w *responseWriter) bool {
		if bad := one.tooManyIntervals(one.result(i), interval); bad != nil {
			return w.nullWithError(bad.at(f.Position))
		}
		return whole(w)
	}, nil
}

func (a *aggregationPlanner) ranges(one *facet, f *ast.Field) (writeFunc, *gqlError) {
	args := a.x.args(f)
	var wanted []namedRange
	for _, item := range args.list("ranges") {
		if item.Type != gjson.Null {
			wanted = append(wanted, rangeOf(item, isDate(one.field.Type)))
		}
	}
	if len(wanted) == 0 {
		zero := 0.0
		wanted = []namedRange{{NumberRange: index.NumberRange{From: &zero}, name: rangeName(&zero, nil, isDate(one.field.Type))}}
	}
	if len(wanted) > maxRanges {
		return nil, args.invalid("ranges", "has more than 1000 ranges")
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
	return a.intervals(f, func() []countInterval {
		counts := one.result(i).Ranges
		out := make([]countInterval, 0, len(wanted))
		for i, r := range wanted {
			if i < len(counts) {
				out = append(out, countInterval{key: r.name, count: counts[i]})
			}
		}
		return out
	}), nil
}
