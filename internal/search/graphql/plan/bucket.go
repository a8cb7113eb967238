package plan

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
	"tutti/internal/search/graphql/selection"
)

// missingKey is the key of the bucket of documents without a value.
const missingKey = "__missing__"

// buckets writes the buckets of a facet.
type buckets struct {
	facetResult

	// fieldType is the type of the facet's field.
	fieldType string
	// missing adds the bucket of documents without a value.
	missing bool
	fields  []bucketField
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
	return (&buckets{facetResult: one.buckets(most, a.missing), missing: a.missing}).count
}

// buckets plans the buckets of a field.
func (a *aggregationPlanner) buckets(ctx context.Context, one *facet, f *ast.Field) (Value, *output.Error) {
	args := a.Arguments(f)
	most := a.most(args, f)
	if bad := args.Err(); bad != nil {
		return nil, bad
	}
	b := &buckets{facetResult: one.buckets(most, a.missing), fieldType: one.field.Type, missing: a.missing, prefix: a.catalogue.prefix}
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
			if meant := core.Suggest(name, a.catalogue.model.Names()); meant != "" {
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
	return result.Buckets, result.Missing
}

func (b *buckets) number(found []index.Bucket, missing int64) int {
	if missing > 0 {
		return len(found) + 1
	}
	return len(found)
}

// count writes the number of buckets.
func (b *buckets) count(w *Writer) { w.Int(int64(b.number(b.found(w)))) }

// write writes the buckets; the bucket of documents without a value is last.
func (b *buckets) write(w *Writer) {
	found, missing := b.found(w)
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
		w.Buf = selection.AppendPaths(w.Buf, hits[0].Source, selection.Inside(hits[0].Source, b.prefix), one.paths)
		return
	}
	w.Buf = append(w.Buf, '[')
	for i, hit := range hits {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = selection.AppendPaths(w.Buf, hit.Source, selection.Inside(hit.Source, b.prefix), one.paths)
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
	case isDate(fieldType):
		millis, err := strconv.ParseFloat(key, 64)
		if err != nil {
			return ""
		}
		return dateText(millis)
	default:
		return ""
	}
}
