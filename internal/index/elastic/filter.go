package elastic

import (
	"encoding/base64"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
)

const (
	// maxQueryDepth is the depth from which on a query that holds others is wrapped. The cluster takes 30 queries inside of each
	// other (indices.query.bool.max_nested_depth), and what stands in a wrapper is counted from one again.
	maxQueryDepth = 28
	// maxTermsCount is how many terms one query may have (index.max_terms_count).
	maxTermsCount = 65_536
	// maxPatternMatches bounds the values that stand for the patterns of a type which the cluster has no patterns for.
	maxPatternMatches = 10_000
)

const (
	matchAll  = `{"match_all":{}}`
	matchNone = `{"match_none":{}}`
)

// filterWriter writes filters as queries. The same tree gives the same bytes, which is what the cluster's cache of answers
// goes by.
type filterWriter struct {
	// values are those that the index has of the fields that the cluster cannot match patterns with, by path.
	values map[string][]string
	err    error
}

// write appends the query of n, nil for everything, to dst.
func (w *filterWriter) write(dst []byte, n *query.Node) []byte {
	if n == nil {
		return append(dst, matchAll...)
	}
	return w.node(dst, n, 1)
}

// node appends the query of n, which stands as the depth-th inside of others.
func (w *filterWriter) node(dst []byte, n *query.Node, depth int) []byte {
	switch n.Op {
	case query.Everything:
		return append(dst, matchAll...)
	case query.And, query.Or, query.Not, query.Some:
		if depth >= maxQueryDepth {
			return w.wrapped(dst, n)
		}
		return w.compound(dst, n, depth)
	case query.Terms:
		return w.terms(dst, n.Field, n.Terms)
	case query.Range:
		return appendRange(dst, n)
	case query.Patterns:
		return w.patterns(dst, n)
	case query.Exists:
		return appendExists(dst, n.Field)
	default:
		return append(dst, matchNone...)
	}
}

// wrapped appends the query of n as a text of its own, for which the cluster counts depth anew.
func (w *filterWriter) wrapped(dst []byte, n *query.Node) []byte {
	dst = append(dst, `{"wrapper":{"query":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, w.compound(nil, n, 1))
	return append(dst, `"}}`...)
}

func (w *filterWriter) compound(dst []byte, n *query.Node, depth int) []byte {
	switch n.Op {
	case query.Some:
		dst = append(dst, `{"nested":{"path":`...)
		dst = appendString(dst, n.Path)
		dst = append(dst, `,"score_mode":"none","query":`...)
		return append(w.node(dst, n.Children[0], depth+1), "}}"...)
	case query.Or:
		should := flattenOp(nil, query.Or, n)
		if len(should) == 1 {
			return w.node(dst, should[0], depth)
		}
		dst = append(dst, `{"bool":{`...)
		return append(w.clauses(dst, "should", should, depth), "}}"...)
	default:
		var filter, mustNot []*query.Node
		filter, mustNot = splitBool(filter, mustNot, n)
		if len(filter) == 1 && len(mustNot) == 0 {
			return w.node(dst, filter[0], depth)
		}
		dst = append(dst, `{"bool":{`...)
		if len(filter) > 0 {
			dst = w.clauses(dst, "filter", filter, depth)
		}
		if len(filter) > 0 && len(mustNot) > 0 {
			dst = append(dst, ',')
		}
		if len(mustNot) > 0 {
			dst = w.clauses(dst, "must_not", mustNot, depth)
		}
		return append(dst, "}}"...)
	}
}

// clauses appends one list of a bool query.
func (w *filterWriter) clauses(dst []byte, name string, nodes []*query.Node, depth int) []byte {
	dst = append(dst, '"')
	dst = append(dst, name...)
	dst = append(dst, `":[`...)
	for i, n := range nodes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.node(dst, n, depth+1)
	}
	return append(dst, ']')
}

// flattenOp appends n, or what it joins by op at whatever depth, to dst.
func flattenOp(dst []*query.Node, op query.Op, n *query.Node) []*query.Node {
	if n.Op != op {
		return append(dst, n)
	}
	for _, child := range n.Children {
		dst = flattenOp(dst, op, child)
	}
	return dst
}

// splitBool appends what must hold, and what must not, so that n does.
func splitBool(filter, mustNot []*query.Node, n *query.Node) (with, without []*query.Node) {
	switch n.Op {
	case query.And:
		for _, child := range n.Children {
			filter, mustNot = splitBool(filter, mustNot, child)
		}
	case query.Not:
		if inner := n.Children[0]; inner.Op == query.Not {
			return splitBool(filter, mustNot, inner.Children[0])
		}
		mustNot = flattenOp(mustNot, query.Or, n.Children[0])
	default:
		filter = append(filter, n)
	}
	return filter, mustNot
}

// terms appends the query of rows of which a value is one of terms.
func (w *filterWriter) terms(dst []byte, f query.Field, terms []string) []byte {
	switch {
	case len(terms) == 0 || !searchable(f):
		return append(dst, matchNone...)
	case f.Path == idPath:
		dst = append(dst, `{"ids":{"values":`...)
		return append(appendStrings(dst, terms), "}}"...)
	case len(terms) == 1:
		dst = append(dst, `{"term":{`...)
		dst = appendString(dst, f.Path)
		dst = append(dst, ':')
		return append(appendString(dst, terms[0]), "}}"...)
	case len(terms) <= maxTermsCount:
		dst = append(dst, `{"terms":{`...)
		dst = appendString(dst, f.Path)
		dst = append(dst, ':')
		return append(appendStrings(dst, terms), "}}"...)
	}
	dst = append(dst, `{"bool":{"should":[`...)
	for len(terms) > 0 {
		part := terms[:min(len(terms), maxTermsCount)]
		terms = terms[len(part):]
		dst = w.terms(dst, f, part)
		if len(terms) > 0 {
			dst = append(dst, ',')
		}
	}
	return append(dst, "]}}"...)
}

// patterns appends the query of rows of which a value matches a pattern.
func (w *filterWriter) patterns(dst []byte, n *query.Node) []byte {
	if n.Field.Path == idPath || !searchable(n.Field) || query.Keyed(n.Field.Type) || len(n.Patterns) == 0 {
		return append(dst, matchNone...)
	}
	if matchesLocally(n) {
		return w.terms(dst, n.Field, w.matches(n))
	}
	if len(n.Patterns) == 1 {
		return appendPattern(dst, n, n.Patterns[0])
	}
	dst = append(dst, `{"bool":{"should":[`...)
	for i, p := range n.Patterns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendPattern(dst, n, p)
	}
	return append(dst, "]}}"...)
}

func appendPattern(dst []byte, n *query.Node, p sqon.Pattern) []byte {
	dst = append(dst, `{"wildcard":{`...)
	dst = appendString(dst, n.Field.Path)
	dst = append(dst, `:{"value":`...)
	dst = appendString(dst, string(p))
	if n.Fold {
		dst = append(dst, `,"case_insensitive":true`...)
	}
	return append(dst, "}}}"...)
}

// matchesLocally tells whether n's patterns are matched here, with the values that the index has: the cluster has no query for
// patterns of addresses.
func matchesLocally(n *query.Node) bool { return n.Op == query.Patterns && n.Field.Type == typeIP }

// matches gives the values that match n.
func (w *filterWriter) matches(n *query.Node) []string {
	var found []string
	for _, value := range w.values[n.Field.Path] {
		for _, p := range n.Patterns {
			if n.Fold && p.MatchFold(value) || !n.Fold && p.Match(value) {
				found = append(found, value)
				break
			}
		}
	}
	if len(found) > maxPatternMatches {
		w.err = core.NewError(core.CodeInvalid, fmt.Sprintf("more than %d values of the field %s match a pattern; narrow it down",
			maxPatternMatches, n.Field.Path))
	}
	return found
}

func appendExists(dst []byte, f query.Field) []byte {
	if f.Path == idPath {
		return append(dst, matchAll...)
	}
	dst = append(dst, `{"exists":{"field":`...)
	return append(appendString(dst, f.Path), "}}"...)
}

func appendStrings(dst []byte, texts []string) []byte {
	dst = append(dst, '[')
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, text)
	}
	return append(dst, ']')
}
