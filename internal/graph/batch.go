package graph

import (
	"context"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/query"
	"tutti/internal/search"
)

// batch is all that an operation asks of the index, in one call.
type batch struct {
	reqs []index.SearchRequest
	// counting are the requests without documents, by what they filter: an engine answers several questions about the same
	// documents together, and keeps the answer.
	counting map[string]int
	// known are the filters that were looked up already.
	known  map[*query.Node]int
	hits   bool
	facets bool

	results []index.SearchResult
	err     error
}

// documents adds a request for documents.
func (b *batch) documents(req index.SearchRequest) int {
	b.hits = true
	b.reqs = append(b.reqs, req)
	return len(b.reqs) - 1
}

// about gives the request, without documents, about what matches a filter.
func (b *batch) about(filter *query.Node) int {
	if i, known := b.known[filter]; known {
		return i
	}
	if b.counting == nil {
		b.counting, b.known = map[string]int{}, map[*query.Node]int{}
	}
	key := string(appendNode(nil, filter))
	i, known := b.counting[key]
	if !known {
		i = len(b.reqs)
		b.reqs = append(b.reqs, index.SearchRequest{Filter: filter})
		b.counting[key] = i
	}
	b.known[filter] = i
	return i
}

// ask asks everything. Without anything to ask, nobody is asked.
func (b *batch) ask(ctx context.Context, view *search.View) {
	if len(b.reqs) == 0 {
		return
	}
	kind := search.KindMixed
	switch {
	case !b.facets:
		kind = search.KindHits
	case !b.hits:
		kind = search.KindFacets
	}
	b.results, b.err = view.Search(ctx, kind, b.reqs)
	if b.err == nil && len(b.results) != len(b.reqs) {
		b.err = core.NewError(core.CodeInternal, "the index did not answer everything it was asked")
	}
	if b.err != nil {
		return
	}
	for i, result := range b.results {
		if len(result.Facets) != len(b.reqs[i].Facets) {
			b.err = core.NewError(core.CodeInternal, "the index did not answer everything it was asked")
		}
	}
}

// size guesses how long the answer is.
func (b *batch) size() int {
	n := 1 << 10
	for _, result := range b.results {
		for _, hit := range result.Hits {
			n += len(hit.Source)/2 + 64
		}
		for _, facet := range result.Facets {
			n += 64 * len(facet.Buckets)
		}
	}
	return n
}
