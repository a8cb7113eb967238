package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/view"
)

// requests collects everything that an operation requests from the index, for one call.
type requests struct {
	all []index.SearchRequest
	// byKey holds the requests without documents by their filter: an engine computes facets over the same documents together, and
	// caches the result.
	byKey map[string]int
	// byFilter holds the requests of filters that were looked up before.
	byFilter           map[*query.Node]int
	hasHits, hasFacets bool
}

// documents adds a request for documents and returns its index.
func (r *requests) documents(req index.SearchRequest) int {
	r.hasHits = true
	r.all = append(r.all, req)
	return len(r.all) - 1
}

// aggregation returns the index of the request without documents for a filter, and adds it if there is none.
func (r *requests) aggregation(filter *query.Node) int {
	if i, known := r.byFilter[filter]; known {
		return i
	}
	if r.byKey == nil {
		r.byKey, r.byFilter = map[string]int{}, map[*query.Node]int{}
	}
	key := string(appendFilterKey(nil, filter))
	i, known := r.byKey[key]
	if !known {
		i = len(r.all)
		r.all = append(r.all, index.SearchRequest{Filter: filter})
		r.byKey[key] = i
	}
	r.byFilter[filter] = i
	return i
}

// kind returns the purpose of the requests.
func (r *requests) kind() view.Kind {
	switch {
	case !r.hasFacets:
		return view.KindHits
	case !r.hasHits:
		return view.KindFacets
	default:
		return view.KindMixed
	}
}

// weight returns the size of the requests.
func (r *requests) weight() int {
	n := 0
	for _, req := range r.all {
		n += 8 + clauses(req.Filter)
		for _, f := range req.Facets {
			n += 4 + clauses(f.Elements) + len(f.Ranges)
			if f.Buckets != nil {
				for _, filter := range f.Buckets.Filters {
					n += clauses(filter)
				}
			}
		}
	}
	return n
}

// clauses counts the nodes and values of a filter.
func clauses(n *query.Node) int {
	if n == nil {
		return 0
	}
	count := 1 + len(n.Terms)
	for _, child := range n.Children {
		count += clauses(child)
	}
	return count
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

// appendFilterKey encodes a filter so that two filters have the same encoding if and only if they are equal. Nil, which matches
// everything, is empty.
func appendFilterKey(dst []byte, n *query.Node) []byte {
	if n == nil {
		return dst
	}
	dst = strconv.AppendUint(append(dst, '('), uint64(n.Op), 10)
	dst = appendKeyPart(dst, n.Path)
	dst = appendKeyPart(dst, n.Field.Path)
	dst = appendKeyPart(dst, n.Field.Type)
	for _, term := range n.Terms {
		dst = appendKeyPart(dst, term)
	}
	dst = appendBoundKey(append(dst, '<'), n.From)
	dst = appendBoundKey(append(dst, '>'), n.To)
	for _, p := range n.Patterns {
		dst = appendKeyPart(dst, string(p))
	}
	if n.Fold {
		dst = append(dst, '~')
	}
	for _, child := range n.Children {
		dst = appendFilterKey(dst, child)
	}
	return append(dst, ')')
}

func appendKeyPart(dst []byte, s string) []byte {
	return append(append(strconv.AppendInt(append(dst, ':'), int64(len(s)), 10), ':'), s...)
}

func appendBoundKey(dst []byte, b query.Bound) []byte {
	if !b.Set {
		return dst
	}
	dst = strconv.AppendBool(dst, b.Inclusive)
	dst = appendKeyPart(dst, b.Number)
	return appendKeyPart(dst, strconv.FormatInt(b.Time.Unix(), 10)+"."+strconv.Itoa(b.Time.Nanosecond()))
}
