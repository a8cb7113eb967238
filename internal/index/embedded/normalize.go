package embedded

import (
	"slices"
	"strings"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/embedded/segment/fieldvalue"
	"tutti/internal/index/mapping"
)

// normalizer applies the normalizers of fields to the values of filters, as they were applied to those of documents. Of nodes and
// requests without such fields it returns the same.
type normalizer struct{ tree *mapping.Field }

// normalized returns requests with the values of their filters normalized.
func normalized(tree *mapping.Field, reqs []index.SearchRequest) []index.SearchRequest {
	z := &normalizer{tree}
	out := slices.Clone(reqs)
	for i := range out {
		out[i].Filter = z.node(out[i].Filter)
		out[i].Facets = slices.Clone(out[i].Facets)
		for j := range out[i].Facets {
			f := &out[i].Facets[j]
			f.Elements = z.node(f.Elements)
			if f.Buckets != nil && len(f.Buckets.Filters) > 0 {
				buckets := *f.Buckets
				buckets.Filters = z.nodes(buckets.Filters)
				f.Buckets = &buckets
			}
		}
	}
	return out
}

// node returns n with its values normalized; nil for nil.
func (z *normalizer) node(n *query.Node) *query.Node {
	switch {
	case n == nil:
		return nil
	case len(n.Children) > 0:
		children := z.nodes(n.Children)
		if slices.Equal(children, n.Children) {
			return n
		}
		out := *n
		out.Children = children
		return &out
	case len(n.Terms) == 0 && len(n.Patterns) == 0:
		return n
	}
	if f := z.tree.Lookup(n.Field.Path); f == nil || !fieldvalue.Lowercased(f) {
		return n
	}
	out := *n
	out.Terms, out.Patterns = nil, nil
	for _, term := range n.Terms {
		out.Terms = append(out.Terms, strings.ToLower(term))
	}
	for _, p := range n.Patterns {
		out.Patterns = append(out.Patterns, sqon.Pattern(strings.ToLower(string(p))))
	}
	slices.Sort(out.Terms)
	out.Terms = slices.Compact(out.Terms)
	return &out
}

func (z *normalizer) nodes(list []*query.Node) []*query.Node {
	out := make([]*query.Node, len(list))
	for i, n := range list {
		out[i] = z.node(n)
	}
	return out
}
