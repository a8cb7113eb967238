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
	// counting are the requests without documents, by what they filter: an engine answers several questions about the same
	// documents together, and keeps the answer.
	counting map[string]int
	// known are the filters that were looked up already.
	known  map[*query.Node]int
	hits   bool
	facets bool

	// once are the requests without what stands twice, places where the facets of each are in them; made when they are asked.
	once   []index.SearchRequest
	places [][]int

	results []index.SearchResult
	err     error
}

// documents adds a request for documents.
func (b *batch) documents(req index.SearchRequest) int {
	b.hits = true
	b.reqs = append(b.reqs, req)
	return len(b.reqs) - 1
}

// about returns the request, without documents, about what matches a filter.
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
	if b.once == nil {
		b.once, b.places = distinct(b.reqs)
	}
	b.results, b.err = b.search(ctx, view, kind, b.once)
	if b.err == nil && len(b.results) != len(b.reqs) {
		b.err = core.NewError(core.CodeInternal, "the index did not answer everything it was asked")
	}
	if b.err != nil {
		return
	}
	for i := range b.results {
		result := &b.results[i]
		if len(result.Facets) != len(b.once[i].Facets) {
			b.err = core.NewError(core.CodeInternal, "the index did not answer everything it was asked")
			return
		}
		facets := make([]index.FacetResult, len(b.reqs[i].Facets))
		for j := range facets {
			facets[j] = result.Facets[b.places[i][j]]
		}
		result.Facets = facets
	}
}

// distinct returns requests in which no facet stands twice, as it does under several names, and where those of the original ones
// are in them.
func distinct(reqs []index.SearchRequest) ([]index.SearchRequest, [][]int) {
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
			at := slices.IndexFunc(of[f.Field.Path], func(k int) bool { return asked(f) == asked(&req.Facets[k]) })
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

// asked writes what a facet asks for.
func asked(f *index.Facet) string {
	return fmt.Sprintf("%v %t %d %t %v %s %s", f.Field, f.Missing, f.Cardinality, f.Stats, f.Histogram, appendNode(nil, f.Elements), extras(f))
}

// extras writes what a facet asks for behind pointers.
func extras(f *index.Facet) string {
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
			b.WriteString(" " + string(appendNode(nil, filter)))
		}
	}
	return b.String()
}

// size guesses how long the answer is.
func (b *batch) size() int {
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
