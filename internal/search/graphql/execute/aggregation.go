package execute

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/base/spelling"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
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
	byRow        map[string]query.FacetFilters
	// filterClauses is the number of clauses of the filter, clausesRead the number translated for all facets.
	filterClauses, clausesRead int
}

// filtersFor returns the filters of the facet of a field. For fields outside of the filter they depend only on the row, so that
// the filter is translated once per row.
func (a *aggregationPlanner) filtersFor(ctx context.Context, name string, field query.Field) (query.FacetFilters, error) {
	if err := ctx.Err(); err != nil {
		return query.FacetFilters{}, err
	}
	if a.filterFields == nil {
		a.filterFields, a.byRow = map[string]bool{}, map[string]query.FacetFilters{}
		a.collectFields(a.filter.Root)
	}
	named := a.filterFields[name] || a.filterFields[field.Path]
	if known, is := a.byRow[field.Row()]; is && !named {
		return known, nil
	}
	if a.clausesRead += a.filterClauses; a.clausesRead > maxRead {
		return query.FacetFilters{}, core.NewError(core.CodeInvalid, fmt.Sprintf(
			"the filter has %d clauses, which is too many for this number of aggregations of fields in the filter", a.filterClauses,
		))
	}
	n, err := a.view.Facet(ctx, a.filter, name, a.filterThemselves)
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
	name, known := a.catalogue.schema.Aggregated[f.Name]
	if !known {
		return Null, nil
	}
	one := a.facets[name]
	if one == nil {
		field, known := a.view.Field(name)
		if !known {
			return nil, (&output.Error{Message: "the field " + f.Name + " has no values in the index", Code: output.CodeInternal}).At(f.Position)
		}
		if why := a.view.Uncounted(field); why != "" {
			return nil, (&output.Error{Message: "the field " + name + " has no facet: " + why, Code: output.CodeRequest}).At(f.Position)
		}
		n, err := a.filtersFor(ctx, name, field)
		if err != nil {
			return nil, output.ErrorOf(err).At(f.Position)
		}
		one = a.requests.facet(n, name, field)
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
	// name is the field's in the catalogue.
	name     string
	field    query.Field
	elements *query.Node
	// missingInPivot selects the documents without a value below a pivot, nil for a filter without one (query.FacetFilters); missing is the
	// request that counts them, -1 before it is needed.
	missingInPivot *query.Node
	missing        int
	// indices are the positions of this field's facets in the request.
	indices []int
}

// facetResult refers to the result of a facet: its request, and its position there.
type facetResult struct{ request, facet int }

// facet returns the result of a facet.
func (w *Writer) facet(f facetResult) *index.FacetResult {
	return &w.results.searches[f.request].Facets[f.facet]
}

// findOrAdd returns the first facet that fits, or a new one, after change was applied to it.
func (o *facet) findOrAdd(fits func(*index.Facet) bool, change func(*index.Facet)) facetResult {
	facets := &o.requests.all[o.request].Facets
	for _, i := range o.indices {
		if fits(&(*facets)[i]) {
			change(&(*facets)[i])
			return facetResult{o.request, i}
		}
	}
	*facets = append(*facets, index.Facet{Field: o.field, Elements: o.elements})
	i := len(*facets) - 1
	o.indices = append(o.indices, i)
	change(&(*facets)[i])
	return facetResult{o.request, i}
}

// buckets requests the values of the field.
func (o *facet) buckets(most int, missing bool) facetResult {
	return o.findOrAdd(func(f *index.Facet) bool { return f.Buckets == nil || f.Buckets.Max == most }, func(f *index.Facet) {
		if f.Buckets == nil {
			f.Buckets = &index.Buckets{Max: most}
		}
		f.Missing = f.Missing || missing && o.missingInPivot == nil
	})
}

// countMissing returns the request whose total is the number of documents without a value below a pivot; -1 if the facet itself counts
// those without a value.
func (o *facet) countMissing() int {
	if o.missing < 0 && o.missingInPivot != nil {
		o.missing = o.requests.aggregation(o.missingFilter())
		o.requests.all[o.missing].Total = true
	}
	return o.missing
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

// missingKey is the key of the bucket of documents without a value.
const missingKey = "__missing__"

// buckets writes the buckets of a facet.
type buckets struct {
	facetResult

	// name is the name of the facet's field.
	name string
	// fieldType is the type of the facet's field.
	fieldType string
	// missing adds the bucket of documents without a value.
	missing bool
	// missingTotal is the request whose total is their number, -1 if it is in the facet's result.
	missingTotal int
	fields       []bucketField
	// prefix is the path of the objects that contain the catalogue's fields in a document.
	prefix []string
}

// bucketField is one selected field of a bucket.
type bucketField struct {
	field      *ast.Field
	encodedKey []byte
	// facet has the result, filter is the position of the filter within it.
	facet  facetResult
	filter int
	// limit is the maximum number of documents, paths are their selected fields; nil for all.
	limit int
	paths [][]string
	// missingRequest is the request for the documents without a value; -1 for none.
	missingRequest int
}

// most returns the requested maximum number of buckets.
func (a *aggregationPlanner) most(args *request.Arguments, f *ast.Field) int {
	most := args.Int("max", index.MaxBuckets)
	if most < 1 {
		args.Reject("max", "is less than 1")
	}
	if f.Arguments.ForName("max") == nil && slices.ContainsFunc(a.Below(f), func(part *ast.Field) bool { return part.Name == "top_hits" }) {
		return defaultTopBuckets
	}
	return min(most, index.MaxBuckets)
}

// bucketCount plans the number of buckets: of those selected beside it, otherwise of all.
func (a *aggregationPlanner) bucketCount(one *facet, beside []*ast.Field) Value {
	most := index.MaxBuckets
	if i := slices.IndexFunc(beside, func(f *ast.Field) bool { return f.Name == "buckets" }); i >= 0 {
		args := a.Arguments(beside[i])
		if given := a.most(args, beside[i]); args.Err() == nil { // an error is reported at that field
			most = given
		}
	}
	return a.bucketsOf(one, most).count
}

// bucketsOf requests at most most buckets of a field.
func (a *aggregationPlanner) bucketsOf(one *facet, most int) *buckets {
	b := &buckets{facetResult: one.buckets(most, a.missing), name: one.name, fieldType: one.field.Type, missing: a.missing, missingTotal: -1, prefix: a.catalogue.prefix}
	if a.missing {
		b.missingTotal = one.countMissing()
	}
	return b
}

// buckets plans the buckets of a field.
func (a *aggregationPlanner) buckets(ctx context.Context, one *facet, f *ast.Field) (Value, *output.Error) {
	args := a.Arguments(f)
	most := a.most(args, f)
	if bad := args.Err(); bad != nil {
		return nil, bad
	}
	b := a.bucketsOf(one, most)
	for _, part := range a.Below(f) {
		w := bucketField{field: part, missingRequest: -1, encodedKey: output.Key(part)}
		args := a.Arguments(part)
		switch part.Name {
		case "top_hits":
			a.topHits(one, most, args, &w)
		case "filter_by_term":
			a.filterByTerm(ctx, one, most, args, &w)
		}
		if bad := args.Err(); bad != nil {
			return nil, bad
		}
		b.fields = append(b.fields, w)
	}
	return b.write, nil
}

// topHits plans the documents of a bucket.
func (a *aggregationPlanner) topHits(one *facet, most int, args *request.Arguments, w *bucketField) {
	size := args.Int("size", 1)
	if size < 1 || size > index.MaxTopHits {
		args.Reject("size", fmt.Sprintf("is not between 1 and %d", index.MaxTopHits))
	}
	var source index.Source
	for _, name := range args.Texts("_source") {
		path, known := a.catalogue.model.Path(name)
		if !known {
			near := ""
			if meant := spelling.Suggest(name, a.catalogue.model.Names()); meant != "" {
				near = ", did you mean " + meant + "?"
			}
			args.Reject("_source", "names an unknown field"+near)
			return
		}
		source.Paths = append(source.Paths, path)
		w.paths = append(w.paths, selection.Segments(path, a.catalogue.prefix))
	}
	if most*size > maxTopHitsInAll {
		args.Reject("size", fmt.Sprintf("times the argument max of buckets is more than %d: use a smaller max", maxTopHitsInAll))
	}
	if args.Err() != nil {
		return
	}
	w.limit = size
	w.facet = one.findOrAdd(func(f *index.Facet) bool {
		return f.Buckets == nil || f.Buckets.Max == most &&
			(f.Buckets.TopHits == 0 || f.Buckets.TopHits == size && slices.Equal(f.Buckets.TopSource.Paths, source.Paths))
	}, func(f *index.Facet) {
		if f.Buckets == nil {
			f.Buckets = &index.Buckets{Max: most}
		}
		f.Buckets.TopHits, f.Buckets.TopSource = size, source
	})
	if a.missing {
		w.missingRequest = a.requests.documents(index.SearchRequest{Filter: one.missingFilter(), Hits: &index.HitsRequest{
			Sort: []index.Sort{a.identity}, Size: size, Source: source,
		}})
	}
}

// missingFilter returns the filter for the facet's documents without a value of the field.
func (o *facet) missingFilter() *query.Node {
	if o.missingInPivot != nil {
		return query.Both(o.requests.all[o.request].Filter, o.missingInPivot)
	}
	some := &query.Node{Op: query.Exists, Field: o.field}
	if row := o.field.Row(); row != "" {
		some = &query.Node{Op: query.Some, Path: row, Children: []*query.Node{some}}
	}
	return query.Both(o.requests.all[o.request].Filter, &query.Node{Op: query.Not, Children: []*query.Node{some}})
}

// filterByTerm plans the number of a bucket's documents that match an additional filter.
func (a *aggregationPlanner) filterByTerm(ctx context.Context, one *facet, most int, args *request.Arguments, w *bucketField) {
	node := a.LowerFilter(ctx, args, "filter")
	if args.Err() != nil {
		return
	}
	if node == nil {
		node = &query.Node{Op: query.Everything}
	}
	w.facet = one.buckets(most, false)
	counted := a.requests.all[one.request].Facets[w.facet.facet].Buckets
	key := string(appendFilterKey(nil, node))
	w.filter = slices.IndexFunc(counted.Filters, func(known *query.Node) bool { return string(appendFilterKey(nil, known)) == key })
	if w.filter < 0 {
		w.filter, counted.Filters = len(counted.Filters), append(counted.Filters, node)
	}
	if a.missing {
		w.missingRequest = a.requests.aggregation(query.Both(one.missingFilter(), node))
		a.requests.all[w.missingRequest].Total = true
	}
}

// found returns the buckets and the number of documents without a value, 0 if that was not requested.
func (b *buckets) found(w *Writer) ([]index.Bucket, int64) {
	result := w.facet(b.facetResult)
	if !b.missing {
		return result.Buckets, 0
	}
	if b.missingTotal >= 0 {
		return result.Buckets, w.results.searches[b.missingTotal].Total
	}
	return result.Buckets, result.Missing
}

func (b *buckets) number(found []index.Bucket, missing int64) int {
	if missing > 0 {
		return len(found) + 1
	}
	return len(found)
}

// count writes the number of buckets, with those that a response has no room for.
func (b *buckets) count(w *Writer) {
	w.Int(int64(b.number(b.found(w))) + w.facet(b.facetResult).Omitted)
}

// write writes the buckets; the bucket of documents without a value is last.
func (b *buckets) write(w *Writer) {
	found, missing := b.found(w)
	if omitted := w.facet(b.facetResult).Omitted; omitted > 0 {
		w.Warn(output.BucketsClamped(b.name, len(found), int64(len(found))+omitted))
	}
	w.List(b.number(found, missing), func(i int) {
		w.Buf = append(w.Buf, '{')
		for k := range b.fields {
			one := &b.fields[k]
			if k > 0 {
				w.Buf = append(w.Buf, ',')
			}
			w.Buf = append(w.Buf, one.encodedKey...)
			if i == len(found) {
				b.missingBucket(w, one, missing)
			} else {
				b.bucket(w, one, i, &found[i])
			}
		}
		w.Buf = append(w.Buf, '}')
	})
}

// missingBucket writes one field of the bucket of documents without a value.
func (b *buckets) missingBucket(w *Writer, one *bucketField, n int64) {
	switch one.field.Name {
	case "key":
		w.Text(missingKey)
	case "doc_count":
		w.Int(n)
	case "top_hits":
		b.topHits(w, one, w.results.searches[one.missingRequest].Hits)
	case "filter_by_term":
		w.documentCount(w.results.searches[one.missingRequest].Total)
	case "__typename":
		w.Text(one.field.ObjectDefinition.Name)
	default: // key_as_string
		w.Null()
	}
}

// documentCount writes the object of filter_by_term.
func (w *Writer) documentCount(n int64) {
	w.Buf = append(w.Buf, `{"doc_count":`...)
	w.Int(n)
	w.Buf = append(w.Buf, '}')
}

// bucket writes one field of the i-th bucket.
func (b *buckets) bucket(w *Writer, one *bucketField, i int, bucket *index.Bucket) {
	switch one.field.Name {
	case "key":
		w.Text(bucketKey(b.fieldType, bucket.Key))
	case "key_as_string":
		if text := keyText(b.fieldType, bucket.Key); text != "" {
			w.Text(text)
			return
		}
		w.Null()
	case "doc_count":
		w.Int(bucket.Count)
	case "top_hits":
		b.topHits(w, one, b.sibling(w, one, i, bucket.Key).TopHits)
	case "filter_by_term":
		counts := b.sibling(w, one, i, bucket.Key).Filters
		if one.filter >= len(counts) {
			w.Null()
			return
		}
		w.documentCount(counts[one.filter])
	case "__typename":
		w.Text(one.field.ObjectDefinition.Name)
	default:
		w.Null()
	}
}

// sibling returns the i-th bucket of the facet that has the result of a field. Facets of the same Max have the same buckets in
// the same order.
func (b *buckets) sibling(w *Writer, one *bucketField, i int, key string) *index.Bucket {
	found := w.facet(one.facet).Buckets
	if i < len(found) && found[i].Key == key {
		return &found[i]
	}
	return &index.Bucket{}
}

// topHits writes the documents of a bucket: for size 1 an object, {} without a document; otherwise a list.
func (b *buckets) topHits(w *Writer, one *bucketField, hits []index.Hit) {
	if one.limit == 1 {
		if len(hits) == 0 {
			w.Buf = append(w.Buf, "{}"...)
			return
		}
		w.Buf = selection.AppendPaths(w.Buf, hits[0].Source, selection.OffsetOf(hits[0].Source, b.prefix), one.paths)
		return
	}
	w.Buf = append(w.Buf, '[')
	for i, hit := range hits {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = selection.AppendPaths(w.Buf, hit.Source, selection.OffsetOf(hit.Source, b.prefix), one.paths)
	}
	w.Buf = append(w.Buf, ']')
}

// bucketKey returns a key as Arranger's clients expect it: booleans as 1 and 0.
func bucketKey(fieldType, key string) string {
	if fieldType != "boolean" {
		return key
	}
	if key == "true" {
		return "1"
	}
	return "0"
}

// keyText returns key_as_string of a key, "" for none.
func keyText(fieldType, key string) string {
	switch {
	case fieldType == "boolean":
		return key
	case fieldtype.Of(fieldType).Date():
		millis, err := strconv.ParseFloat(key, 64)
		if err != nil {
			return ""
		}
		return dateText(millis)
	default:
		return ""
	}
}
