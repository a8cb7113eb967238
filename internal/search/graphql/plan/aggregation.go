package plan

import (
	"cmp"
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
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/response"
	"tutti/internal/search/graphql/selection"
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

// buckets plans the buckets of a field.
func (a *aggregationPlanner) buckets(ctx context.Context, one *facet, f *ast.Field) (*response.Buckets, *output.Error) {
	args := a.Arguments(f)
	most, bad := args.Int("max", index.MaxBuckets)
	switch {
	case bad != nil:
		return nil, bad
	case most < 1:
		return nil, args.Invalid("max", "is less than 1")
	}
	most = min(most, index.MaxBuckets)
	if f.Arguments.ForName("max") == nil && slices.ContainsFunc(a.Below(f), func(part *ast.Field) bool { return part.Name == "top_hits" }) {
		most = defaultTopBuckets
	}
	at := one.at(one.buckets(most, a.missing))
	b := &response.Buckets{Facet: at, Type: one.field.Type, Field: f, Missing: a.missing, Prefix: a.catalogue.prefix}
	for _, part := range a.Below(f) {
		w := response.NewBucketField(part)
		switch part.Name {
		case "top_hits":
			bad = a.topHits(one, most, part, &w)
		case "filter_by_term":
			bad = a.filterByTerm(ctx, one, most, part, &w)
		}
		if bad != nil {
			return nil, bad
		}
		b.Fields = append(b.Fields, w)
	}
	return b, nil
}

// topHits plans the documents of a bucket.
func (a *aggregationPlanner) topHits(one *facet, most int, f *ast.Field, w *response.BucketField) *output.Error {
	args := a.Arguments(f)
	names, bad := args.Texts("_source")
	if bad != nil {
		return bad
	}
	size, bad := args.Int("size", 1)
	switch {
	case bad != nil:
		return bad
	case size < 1 || size > index.MaxTopHits:
		return args.Invalid("size", fmt.Sprintf("is not between 1 and %d", index.MaxTopHits))
	}
	var source index.Source
	for _, name := range names {
		path, known := a.catalogue.model.Path(name)
		if !known {
			near := ""
			if meant := core.Suggest(name, a.catalogue.model.Names()); meant != "" {
				near = ", did you mean " + meant + "?"
			}
			return args.Invalid("_source", "names an unknown field"+near)
		}
		source.Paths = append(source.Paths, path)
		w.Paths = append(w.Paths, selection.Segments(path, a.catalogue.prefix))
	}
	if most*size > maxTopHitsInAll {
		return args.Invalid("size", fmt.Sprintf("times the argument max of buckets is more than %d: use a smaller max", maxTopHitsInAll))
	}
	w.Limit = size
	i := one.findOrAdd(func(f *index.Facet) bool {
		return f.Buckets == nil || f.Buckets.Max == most &&
			(f.Buckets.TopHits == 0 || f.Buckets.TopHits == size && slices.Equal(f.Buckets.TopSource.Paths, source.Paths))
	}, func(f *index.Facet) {
		if f.Buckets == nil {
			f.Buckets = &index.Buckets{Max: most}
		}
		f.Buckets.TopHits, f.Buckets.TopSource = size, source
	})
	w.Facet = one.at(i)
	if a.missing {
		w.MissingRequest = a.requests.documents(index.SearchRequest{Filter: one.missingFilter(), Hits: &index.HitsRequest{
			Sort: []index.Sort{a.identity}, Size: size, Source: source,
		}})
	}
	return nil
}

// missingFilter returns the filter for the facet's documents without a value of the field.
func (o *facet) missingFilter() *query.Node {
	some := &query.Node{Op: query.Exists, Field: o.field}
	if row := o.field.Row(); row != "" {
		some = &query.Node{Op: query.Some, Path: row, Children: []*query.Node{some}}
	}
	return query.Both(o.requests.all[o.request].Filter, &query.Node{Op: query.Not, Children: []*query.Node{some}})
}

// filterByTerm plans the number of a bucket's documents that match an additional filter.
func (a *aggregationPlanner) filterByTerm(ctx context.Context, one *facet, most int, f *ast.Field, w *response.BucketField) *output.Error {
	node, bad := a.LowerFilter(ctx, f, "filter")
	if bad != nil {
		return bad
	}
	if node == nil {
		node = &query.Node{Op: query.Everything}
	}
	w.Facet = one.at(one.buckets(most, false))
	buckets := a.requests.all[one.request].Facets[w.Facet.Index].Buckets
	buckets.Filters = append(buckets.Filters, node)
	w.Filter = len(buckets.Filters) - 1
	if a.missing {
		w.MissingRequest = a.requests.aggregation(query.Both(one.missingFilter(), node))
		a.requests.all[w.MissingRequest].Total = true
	}
	return nil
}

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
