package search

import (
	"context"
	"slices"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
)

// filterGroup is a filter of documents, and the filters that are evaluated within those documents.
type filterGroup struct {
	documents *query.Node
	within    []*query.Node
}

// filtersOf returns all filters of reqs.
func filtersOf(reqs []index.SearchRequest) []filterGroup {
	groups := make([]filterGroup, len(reqs))
	for i := range reqs {
		groups[i].documents = reqs[i].Filter
		for j := range reqs[i].Facets {
			f := &reqs[i].Facets[j]
			groups[i].within = append(groups[i].within, f.Elements)
			if f.Buckets != nil {
				groups[i].within = append(groups[i].within, f.Buckets.Filters...)
			}
		}
	}
	return groups
}

// patternValues returns the values that patterns of groups are matched with, where the cluster cannot match them (dsl.PatternNodes). They
// are only those of the documents that the other conditions of the filter select: documents that are hidden from the caller do not
// count for limits either.
func (x *Searcher) patternValues(ctx context.Context, alias string, groups []filterGroup) (map[*query.Node][]string, error) {
	r := patternReader{x: x, alias: alias, values: map[*query.Node][]string{}, read: map[string][]string{}, resolved: map[resolvedPattern]bool{}}
	for _, g := range groups {
		var selected, patterned []*query.Node
		for _, n := range conjuncts(g.documents) {
			if len(dsl.PatternNodes(nil, n)) == 0 {
				selected = append(selected, n)
			} else {
				patterned = append(patterned, n)
			}
		}
		for _, n := range patterned { // an access filter is before the caller's
			if err := r.resolve(ctx, n, selected); err != nil {
				return nil, err
			}
			selected = append(selected, n)
		}
		for _, n := range g.within {
			if err := r.resolve(ctx, n, selected); err != nil {
				return nil, err
			}
		}
	}
	return r.values, nil
}

// conjuncts returns the nodes whose conjunction n is.
func conjuncts(n *query.Node) []*query.Node {
	switch {
	case n == nil:
		return nil
	case n.Op == query.And:
		return n.Children
	default:
		return []*query.Node{n}
	}
}

// union returns the texts of a and of b: filters may share a pattern.
func union(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// patternReader reads the values of fields for patterns.
type patternReader struct {
	x      *Searcher
	alias  string
	values map[*query.Node][]string
	// read are the values by query and path, resolved the patterns that have them.
	read     map[string][]string
	resolved map[resolvedPattern]bool
}

type resolvedPattern struct {
	pattern *query.Node
	key     string
}

// resolve reads the values for the patterns in n, in the documents that match all of selected.
func (r *patternReader) resolve(ctx context.Context, n *query.Node, selected []*query.Node) error {
	for _, pattern := range dsl.PatternNodes(nil, n) {
		p := searchPlan{client: r.x.client, alias: r.alias, filter: dsl.FilterWriter{Values: r.values}, memory: &memory{}}
		documents := &query.Node{Op: query.Everything}
		for _, one := range selected {
			documents = query.Both(documents, one)
		}
		key := string(p.filter.Write(nil, documents)) + pattern.Field.Path
		if p.filter.Err != nil {
			return p.filter.Err
		}
		found, known := r.read[key]
		if !known {
			f := index.Facet{Field: pattern.Field, Buckets: &index.Buckets{Max: index.MaxBuckets}}
			err := p.eachBucketPage(ctx, documents, &f, func(page []index.Bucket) error {
				for i := range page {
					found = append(found, page[i].Key)
				}
				return nil
			})
			if err != nil {
				return err
			}
			r.read[key] = found
		}
		if at := (resolvedPattern{pattern, key}); !r.resolved[at] {
			r.resolved[at] = true
			r.values[pattern] = union(r.values[pattern], found)
		}
	}
	return nil
}
