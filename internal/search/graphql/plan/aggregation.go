package plan

import (
	"context"
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
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
func (p *Planner) aggregations(ctx context.Context, f *ast.Field) (Value, *output.Error) {
	args := p.Arguments(f)
	a := aggregationPlanner{
		Planner: p, facets: map[string]*facet{}, filter: p.Filter(args, "filters"),
		filterThemselves: args.Bool("aggregations_filter_themselves", false), missing: args.Bool("include_missing", true),
	}
	if bad := args.Err(); bad != nil {
		return nil, bad
	}
	members := p.members(p.Below(f), func(f *ast.Field) (Value, *output.Error) { return a.field(ctx, f) })
	requested := len(a.facets) > 0
	return func(w *Writer) {
		if requested && w.results.err != nil {
			w.NullWithError(output.ErrorOf(w.results.err).At(f.Position))
			return
		}
		w.object(members)
	}, nil
}

// aggregationPlanner plans one field aggregations.
type aggregationPlanner struct {
	*Planner

	filter           sqon.Filter
	filterThemselves bool
	missing          bool
	// facets are by field name.
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
	documents, elements, err := a.view.Facet(ctx, a.filter, name, a.filterThemselves)
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
		if field, known := a.view.Field(name); known {
			a.filterFields[field.Path] = true
		}
	}
	for _, child := range n.Content {
		a.collectFields(child)
	}
}

// field plans the aggregation of one field.
func (a *aggregationPlanner) field(ctx context.Context, f *ast.Field) (Value, *output.Error) {
	name, known := a.catalogue.schema.Aggregated(f.Name)
	if !known {
		return Null, nil
	}
	one := a.facets[name]
	if one == nil {
		field, known := a.view.Field(name)
		if !known {
			return nil, (&output.Error{Message: "the field " + f.Name + " has no values in the index", Code: output.CodeInternal}).At(f.Position)
		}
		n, err := a.filtersFor(ctx, name, field)
		if err != nil {
			return nil, output.ErrorOf(err).At(f.Position)
		}
		one = a.requests.facet(n, field)
		a.facets[name] = one
	}
	fields := a.Below(f)
	return object(a.members(fields, func(part *ast.Field) (Value, *output.Error) { return a.part(ctx, one, fields, part) })), nil
}

// part plans one field of an aggregation; beside are all its fields.
func (a *aggregationPlanner) part(ctx context.Context, one *facet, beside []*ast.Field, f *ast.Field) (Value, *output.Error) {
	switch f.Name {
	case "buckets":
		return a.buckets(ctx, one, f)
	case "bucket_count":
		return a.bucketCount(one, beside), nil
	case "cardinality":
		return a.cardinality(one, f)
	case "stats":
		return a.stats(one, f), nil
	case "histogram":
		return a.histogram(one, f)
	case "range":
		return a.ranges(one, f)
	default:
		return Null, nil
	}
}

// facet is the aggregation of one field, for all its aliases. Combinations that do not fit into one facet of the index use several.
type facet struct {
	requests *requests
	request  int
	field    query.Field
	elements *query.Node
	// indices are the positions of this field's facets in the request.
	indices []int
}

// facetResult refers to the result of a facet: its request, and its position there.
type facetResult struct{ request, facet int }

// facet returns the result of a facet.
func (w *Writer) facet(f facetResult) *index.FacetResult {
	return &w.results.searches[f.request].Facets[f.facet]
}

// findOrAdd returns the first facet that fits, or a new one, after ask has changed it.
func (o *facet) findOrAdd(fits func(*index.Facet) bool, ask func(*index.Facet)) facetResult {
	facets := &o.requests.all[o.request].Facets
	for _, i := range o.indices {
		if fits(&(*facets)[i]) {
			ask(&(*facets)[i])
			return facetResult{o.request, i}
		}
	}
	*facets = append(*facets, index.Facet{Field: o.field, Elements: o.elements})
	i := len(*facets) - 1
	o.indices = append(o.indices, i)
	ask(&(*facets)[i])
	return facetResult{o.request, i}
}

// buckets requests the values of the field.
func (o *facet) buckets(most int, missing bool) facetResult {
	return o.findOrAdd(func(f *index.Facet) bool { return f.Buckets == nil || f.Buckets.Max == most }, func(f *index.Facet) {
		if f.Buckets == nil {
			f.Buckets = &index.Buckets{Max: most}
		}
		f.Missing = f.Missing || missing
	})
}

// cardinality plans the number of distinct values.
func (a *aggregationPlanner) cardinality(one *facet, f *ast.Field) (Value, *output.Error) {
	args := a.Arguments(f)
	precision := args.Int("precision_threshold", defaultPrecision)
	if precision < 0 {
		args.Reject("precision_threshold", "is negative")
	}
	precision = min(max(precision, 1), maxPrecision)
	at := one.findOrAdd(
		func(f *index.Facet) bool { return f.Cardinality == 0 || f.Cardinality == precision },
		func(f *index.Facet) { f.Cardinality = precision },
	)
	return func(w *Writer) { w.Int(w.facet(at).Cardinality) }, args.Err()
}

// stats plans statistics. Without values, min, max and avg are null.
func (a *aggregationPlanner) stats(one *facet, f *ast.Field) Value {
	at := one.findOrAdd(func(*index.Facet) bool { return true }, func(f *index.Facet) { f.Stats = true })
	return a.Object(f, func(f *ast.Field) (Value, *output.Error) {
		return func(w *Writer) { w.statistic(&w.facet(at).Stats, f.Name) }, nil
	})
}

func (w *Writer) statistic(s *index.Stats, name string) {
	switch {
	case name == "count":
		w.Int(s.Count)
	case name == "sum":
		w.Number(s.Sum)
	case s.Count == 0:
		w.Null()
	case name == "min":
		w.Number(s.Min)
	case name == "max":
		w.Number(s.Max)
	default:
		w.Number(s.Avg)
	}
}
