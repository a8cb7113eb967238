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
	"tutti/internal/search/graphql/response"
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
func (p *Planner) aggregations(ctx context.Context, f *ast.Field) (response.Value, *output.Error) {
	args := p.Arguments(f)
	a := aggregationPlanner{Planner: p, facets: map[string]*facet{}}
	var bad *output.Error
	if a.filter, bad = p.Filter(f, "filters"); bad != nil {
		return nil, bad
	}
	if a.filterThemselves, bad = args.Bool("aggregations_filter_themselves", false); bad != nil {
		return nil, bad
	}
	if a.missing, bad = args.Bool("include_missing", true); bad != nil {
		return nil, bad
	}
	found := &response.Aggregations{Field: f}
	found.Members = p.members(p.Below(f), func(f *ast.Field) (response.Value, *output.Error) { return a.field(ctx, f) })
	found.Requested = len(a.facets) > 0
	return found.Write, nil
}

// aggregationPlanner plans one field aggregations.
type aggregationPlanner struct {
	*Planner

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

// facet is the aggregation of one field. Combinations that do not fit into one facet of the index use several.
type facet struct {
	requests *requests
	request  int
	field    query.Field
	elements *query.Node
	// indices are the positions of this field's facets in the request.
	indices []int
}

// field plans the aggregation of one field.
func (a *aggregationPlanner) field(ctx context.Context, f *ast.Field) (response.Value, *output.Error) {
	name, known := a.catalogue.schema.Aggregated(f.Name)
	if !known {
		return response.Null, nil
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
		one = &facet{requests: &a.requests, request: a.requests.aggregation(n.documents), field: field, elements: n.elements}
		a.requests.hasFacets = true
		a.facets[name] = one
	}
	fields := a.Below(f)
	// bucket_count counts the buckets selected beside it.
	var beside *response.Buckets
	for _, part := range fields {
		if part.Name == "buckets" && beside == nil {
			b, bad := a.buckets(ctx, one, part)
			if bad != nil {
				break // reported when the field is planned
			}
			beside = b
		}
	}
	members := a.members(fields, func(part *ast.Field) (response.Value, *output.Error) { return a.part(ctx, one, beside, part) })
	return response.Object(members), nil
}

// part plans one field of an aggregation.
func (a *aggregationPlanner) part(ctx context.Context, one *facet, beside *response.Buckets, f *ast.Field) (response.Value, *output.Error) {
	switch f.Name {
	case "buckets":
		b := beside
		if b == nil || b.Field != f {
			var bad *output.Error
			if b, bad = a.buckets(ctx, one, f); bad != nil {
				return nil, bad
			}
		}
		return b.Write, nil
	case "bucket_count":
		if beside == nil {
			beside = &response.Buckets{Facet: one.at(one.buckets(index.MaxBuckets, a.missing)), Missing: a.missing}
		}
		return beside.Count, nil
	case "cardinality":
		return a.cardinality(one, f)
	case "stats":
		return a.stats(one, f), nil
	case "histogram":
		return a.histogram(one, f)
	case "range":
		return a.ranges(one, f)
	default:
		return response.Null, nil
	}
}

// findOrAdd returns the index of the first facet that fits, or of a new one, after ask has changed it.
func (o *facet) findOrAdd(fits func(*index.Facet) bool, ask func(*index.Facet)) int {
	facets := &o.requests.all[o.request].Facets
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

// at returns the reference to a facet of the request.
func (o *facet) at(i int) response.Facet { return response.Facet{Request: o.request, Index: i} }

// buckets requests the values of the field.
func (o *facet) buckets(most int, missing bool) int {
	return o.findOrAdd(func(f *index.Facet) bool { return f.Buckets == nil || f.Buckets.Max == most }, func(f *index.Facet) {
		if f.Buckets == nil {
			f.Buckets = &index.Buckets{Max: most}
		}
		f.Missing = f.Missing || missing
	})
}
