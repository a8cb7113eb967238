package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/response"
	"tutti/internal/search/graphql/selection"
)

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
