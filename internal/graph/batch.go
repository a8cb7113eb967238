package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/query"
	"tutti/internal/search"
)

// batch is all that an operation asks of the index, in one call.
type batch struct {
	reqs []index.SearchRequest
	// byKey are the requests without documents, by what they filter: an engine answers several questions about the same
	// documents together, and keeps the answer.
	byKey map[string]int
	// byFilter are the filters that were looked up already.
	byFilter  map[*query.Node]int
	hasHits   bool
	hasFacets bool

	// deduplicated are the requests without what stands twice, places where the facets of each are in them; made when they are asked.
	deduplicated []index.SearchRequest
	facetIndex   [][]int

	results []index.SearchResult
	err     error
}

// documents adds a request for documents.
func (b *batch) documents(req index.SearchRequest) int {
	b.hasHits = true
	b.reqs = append(b.reqs, req)
	return len(b.reqs) - 1
}

// aggregationRequest returns the request, without documents, about what matches a filter.
func (b *batch) aggregationRequest(filter *query.Node) int {
	if i, known := b.byFilter[filter]; known {
		return i
	}
	if b.byKey == nil {
		b.byKey, b.byFilter = map[string]int{}, map[*query.Node]int{}
	}
	key := string(appendFilterKey(nil, filter))
	i, known := b.byKey[key]
	if !known {
		i = len(b.reqs)
		b.reqs = append(b.reqs, index.SearchRequest{Filter: filter})
		b.byKey[key] = i
	}
	b.byFilter[filter] = i
	return i
}

// execute asks everything. Without anything to ask, nobody is asked.
func (b *batch) execute(ctx context.Context, view *search.View) {
	if len(b.reqs) == 0 {
		return
	}
	kind := search.KindMixed
	switch {
	case !b.hasFacets:
		kind = search.KindHits
	case !b.hasHits:
		kind = search.KindFacets
	}
	if b.deduplicated == nil {
		b.deduplicated, b.facetIndex = deduplicate(b.reqs)
	}
	b.results, b.err = b.search(ctx, view, kind, b.deduplicated)
	if b.err == nil && len(b.results) != len(b.reqs) {
		b.err = core.NewError(core.CodeInternal, "the index did not answer everything it was asked")
	}
	if b.err != nil {
		return
	}
	for i := range b.results {
		result := &b.results[i]
		if len(result.Facets) != len(b.deduplicated[i].Facets) {
			b.err = core.NewError(core.CodeInternal, "the index did not answer everything it was asked")
			return
		}
		facets := make([]index.FacetResult, len(b.reqs[i].Facets))
		for j := range facets {
			facets[j] = result.Facets[b.facetIndex[i][j]]
		}
		result.Facets = facets
	}
}

// deduplicate returns requests in which no facet stands twice, as it does under several names, and where those of the original ones
// are in them.
func deduplicate(reqs []index.SearchRequest) ([]index.SearchRequest, [][]int) {
	once, places := make([]index.SearchRequest, len(reqs)), make([][]int, len(reqs))
	for i, req := range reqs {
		facets := req.Facets
		if len(facets) == 0 {
			once[i] = req
			continue
		}
		req.Facets = make([]index.Facet, 0, len(facets))
		of := make(map[string][]int, len(facets))
		places[i] = make([]int, len(facets))
		for j := range facets {
			f := &facets[j]
			at := slices.IndexFunc(of[f.Field.Path], func(k int) bool { return facetKey(f) == facetKey(&req.Facets[k]) })
			if at >= 0 {
				places[i][j] = of[f.Field.Path][at]
				continue
			}
			places[i][j] = len(req.Facets)
			of[f.Field.Path] = append(of[f.Field.Path], len(req.Facets))
			req.Facets = append(req.Facets, *f)
		}
		once[i] = req
	}
	return once, places
}

// facetKey writes what a facet asks for.
func facetKey(f *index.Facet) string {
	return fmt.Sprintf("%v %t %d %t %v %s %s", f.Field, f.Missing, f.Cardinality, f.Stats, f.Histogram, appendFilterKey(nil, f.Elements), facetOptionsKey(f))
}

// facetOptionsKey writes what a facet asks for behind pointers.
func facetOptionsKey(f *index.Facet) string {
	var b strings.Builder
	for _, r := range f.Ranges {
		for _, end := range []*float64{r.From, r.To} {
			if end == nil {
				b.WriteString("- ")
				continue
			}
			fmt.Fprint(&b, *end, " ")
		}
	}
	if f.Buckets != nil {
		fmt.Fprint(&b, " buckets ", f.Buckets.Max, f.Buckets.TopHits, f.Buckets.TopSource)
		for _, filter := range f.Buckets.Filters {
			b.WriteString(" " + string(appendFilterKey(nil, filter)))
		}
	}
	return b.String()
}

// estimateSize guesses how long the answer is.
func (b *batch) estimateSize() int {
	n := 1 << 10
	for _, result := range b.results {
		for _, hit := range result.Hits {
			if hit.Read {
				n += len(hit.Source)
			} else {
				n += len(hit.Source) / 2
			}
			n += 64
		}
		for _, facet := range result.Facets {
			n += 64 * len(facet.Buckets)
		}
	}
	return n
}
