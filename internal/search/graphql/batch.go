package graphql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/view"
)

// batch collects everything that an operation requests from the index, for one call.
type batch struct {
	reqs []index.SearchRequest
	// byKey holds the requests without documents by their filter: an engine computes facets over the same documents together, and
	// caches the result.
	byKey map[string]int
	// byFilter holds the requests of filters that were looked up before.
	byFilter  map[*query.Node]int
	hasHits   bool
	hasFacets bool

	// deduplicated are the requests without duplicate facets, facetIndex maps each facet of reqs to its position there; set by
	// execute.
	deduplicated []index.SearchRequest
	facetIndex   [][]int

	results []index.SearchResult
	err     error
}

// documents adds a request for documents and returns its index.
func (b *batch) documents(req index.SearchRequest) int {
	b.hasHits = true
	b.reqs = append(b.reqs, req)
	return len(b.reqs) - 1
}

// aggregationRequest returns the index of the request without documents for a filter, and adds it if there is none.
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

// execute runs all requests in one search. Without requests, it does not call the index.
func (b *batch) execute(ctx context.Context, v *view.View) {
	if len(b.reqs) == 0 {
		return
	}
	kind := view.KindMixed
	switch {
	case !b.hasFacets:
		kind = view.KindHits
	case !b.hasHits:
		kind = view.KindFacets
	}
	if b.deduplicated == nil {
		b.deduplicated, b.facetIndex = deduplicate(b.reqs)
	}
	b.results, b.err = b.search(ctx, v, kind, b.deduplicated)
	if b.err == nil && len(b.results) != len(b.reqs) {
		b.err = core.NewError(core.CodeInternal, "the index returned an incomplete response")
	}
	if b.err != nil {
		return
	}
	for i := range b.results {
		result := &b.results[i]
		if len(result.Facets) != len(b.deduplicated[i].Facets) {
			b.err = core.NewError(core.CodeInternal, "the index returned an incomplete response")
			return
		}
		facets := make([]index.FacetResult, len(b.reqs[i].Facets))
		for j := range facets {
			facets[j] = result.Facets[b.facetIndex[i][j]]
		}
		result.Facets = facets
	}
}

// deduplicate returns the requests without duplicate facets (the same facet under several aliases), and the position of each
// original facet among the remaining ones.
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

// facetKey encodes what a facet requests, to compare facets.
func facetKey(f *index.Facet) string {
	return fmt.Sprintf("%v %t %d %t %v %s %s", f.Field, f.Missing, f.Cardinality, f.Stats, f.Histogram, appendFilterKey(nil, f.Elements), facetOptionsKey(f))
}

// facetOptionsKey encodes the options of a facet that are behind pointers.
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

// estimateSize estimates the size of the response in bytes.
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
