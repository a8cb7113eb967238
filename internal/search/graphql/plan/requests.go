package plan

import (
	"strconv"

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
	byFilter map[*query.Node]int
	// facets are the requested facets, each shared by all aliases of a field.
	facets  map[facetKey]*facet
	hasHits bool
}

// facetKey is what the facets of a field depend on.
type facetKey struct {
	request         int
	path, fieldType string
	elements        string
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

// facet returns the facet of a field with these filters, and adds it if there is none.
func (r *requests) facet(n facetFilters, field query.Field) *facet {
	i := r.aggregation(n.documents)
	key := facetKey{i, field.Path, field.Type, string(appendFilterKey(nil, n.elements))}
	one := r.facets[key]
	if one == nil {
		if r.facets == nil {
			r.facets = map[facetKey]*facet{}
		}
		one = &facet{requests: r, request: i, field: field, elements: n.elements}
		r.facets[key] = one
	}
	return one
}

// kind returns the purpose of the requests.
func (r *requests) kind() view.Kind {
	switch {
	case len(r.facets) == 0:
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
