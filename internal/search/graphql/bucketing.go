package graphql

import (
	"context"
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// missingKey is the key of the bucket of documents without a value.
const missingKey = "__missing__"

// bucketPlan is the planned field buckets of an aggregation.
type bucketPlan struct {
	of      *facet
	field   *ast.Field
	missing bool
	at      int
	fields  []bucketField
	// prefix is the path of the objects that contain the catalogue's fields in a document.
	prefix []string
}

// bucketField is one selected field of a bucket.
type bucketField struct {
	encodedKey []byte
	name       string
	// at is the index of the facet that has the result, nth the index of the filter within it.
	at, nth int
	// limit is the maximum number of documents, paths are their selected fields; nil for all.
	limit int
	paths [][]string
	// missingRequest is the request for the documents without a value; -1 for none.
	missingRequest int
	key            string
	field          *ast.Field
}

// buckets plans the buckets of a field.
func (a *aggregationPlanner) buckets(ctx context.Context, one *facet, f *ast.Field) (*bucketPlan, *gqlError) {
	args := a.x.args(f)
	most, bad := args.int("max", index.MaxBuckets)
	switch {
	case bad != nil:
		return nil, bad
	case most < 1:
		return nil, args.invalid("max", "is less than 1")
	}
	most = min(most, index.MaxBuckets)
	if f.Arguments.ForName("max") == nil && slices.ContainsFunc(a.x.below(f), func(part *ast.Field) bool { return part.Name == "top_hits" }) {
		most = defaultTopBuckets
	}
	b := &bucketPlan{of: one, field: f, missing: a.missing, at: one.buckets(most, a.missing), prefix: a.x.served.prefix}
	for _, part := range a.x.below(f) {
		w := bucketField{encodedKey: headOf(part), name: part.Name, key: part.Alias, field: part, missingRequest: -1}
		switch part.Name {
		case "top_hits":
			bad = a.topHits(one, most, part, &w)
		case "filter_by_term":
			bad = a.filterByTerm(ctx, one, most, part, &w)
		case "__typename":
			w.name = "__typename"
		}
		if bad != nil {
			return nil, bad
		}
		b.fields = append(b.fields, w)
	}
	return b, nil
}

// topHits plans the documents of a bucket.
func (a *aggregationPlanner) topHits(one *facet, most int, f *ast.Field, w *bucketField) *gqlError {
	args := a.x.args(f)
	names, bad := args.texts("_source")
	if bad != nil {
		return bad
	}
	size, bad := args.int("size", 1)
	switch {
	case bad != nil:
		return bad
	case size < 1 || size > index.MaxTopHits:
		return args.invalid("size", fmt.Sprintf("is not between 1 and %d", index.MaxTopHits))
	}
	var source index.Source
	for _, name := range names {
		path, known := a.x.served.model.Path(name)
		if !known {
			near := ""
			if meant := core.Suggest(name, a.x.served.model.Names()); meant != "" {
				near = ", did you mean " + meant + "?"
			}
			return args.invalid("_source", "names an unknown field"+near)
		}
		source.Paths = append(source.Paths, path)
		w.paths = append(w.paths, segments(path, a.x.served.prefix))
	}
	if most*size > maxTopHitsInAll {
		return args.invalid("size", fmt.Sprintf("times the argument max of buckets is more than %d: use a smaller max", maxTopHitsInAll))
	}
	w.limit = size
	w.at = one.findOrAdd(func(f *index.Facet) bool {
		return f.Buckets == nil || f.Buckets.Max == most &&
			(f.Buckets.TopHits == 0 || f.Buckets.TopHits == size && slices.Equal(f.Buckets.TopSource.Paths, source.Paths))
	}, func(f *index.Facet) {
		if f.Buckets == nil {
			f.Buckets = &index.Buckets{Max: most}
		}
		f.Buckets.TopHits, f.Buckets.TopSource = size, source
	})
	if a.missing {
		w.missingRequest = a.x.batch.documents(index.SearchRequest{Filter: one.missingFilter(), Hits: &index.HitsRequest{
			Sort: []index.Sort{a.x.identity}, Size: size, Source: source,
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
	return query.Both(o.batch.reqs[o.request].Filter, &query.Node{Op: query.Not, Children: []*query.Node{some}})
}

// filterByTerm plans the number of a bucket's documents that match an additional filter.
func (a *aggregationPlanner) filterByTerm(ctx context.Context, one *facet, most int, f *ast.Field, w *bucketField) *gqlError {
	node, bad := a.x.lowerFilter(ctx, f, "filter")
	if bad != nil {
		return bad
	}
	if node == nil {
		node = &query.Node{Op: query.Everything}
	}
	w.at = one.buckets(most, false)
	buckets := a.x.batch.reqs[one.request].Facets[w.at].Buckets
	buckets.Filters = append(buckets.Filters, node)
	w.nth = len(buckets.Filters) - 1
	if a.missing {
		w.missingRequest = a.x.batch.aggregationRequest(query.Both(one.missingFilter(), node))
		a.x.batch.reqs[w.missingRequest].Total = true
	}
	return nil
}
