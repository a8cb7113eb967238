package federation

import (
	"encoding/json"
	"slices"

	"tutti/internal/filter/sqon"
)

// filterFor returns a filter for one node in a form that every node accepts, nil for none. It leaves out the alternatives (members
// of an or, names of a wildcard) with a field that the node lacks. ok is false if nothing is left: no document of the node matches.
// raw is the filter as the client sent it, and is returned unchanged where possible: older nodes know some operators by their
// aliases only. Aggregations of Arranger fail on {}, and on a clause outside of a group.
func filterFor(filter sqon.Filter, raw json.RawMessage, lacks func(name string) bool) (sent json.RawMessage, ok bool) {
	if filter.Root == nil {
		return nil, true
	}
	root := available(filter.Root, lacks)
	if root == nil {
		return nil, false
	}
	if root != filter.Root || slices.ContainsFunc(root.Content, hasEmpty) {
		raw = sqon.Filter{Root: root}.AppendJSON(nil)
	}
	if !root.Group() {
		raw = slices.Concat(json.RawMessage(`{"op":"and","content":[`), raw, json.RawMessage("]}"))
	}
	return raw, true
}

// available returns n without the alternatives with a field that a node lacks, nil if none is left, and n itself if the node lacks
// none. A not must be complete: without a part of its content it would match more.
func available(n *sqon.Node, lacks func(name string) bool) *sqon.Node {
	if n.Pivot != "" && lacks(n.Pivot) {
		return nil
	}
	out := *n
	if !n.Group() {
		out.Fields = slices.DeleteFunc(slices.Clone(n.Fields), lacks)
		switch len(out.Fields) {
		case len(n.Fields):
			return n
		case 0:
			return nil
		}
		return &out
	}
	out.Content = nil
	for _, member := range n.Content {
		rest := available(member, lacks)
		switch {
		case rest == nil && n.Op == sqon.Or:
			continue
		case rest == nil, rest != member && n.Op == sqon.Not:
			return nil
		}
		out.Content = append(out.Content, rest)
	}
	switch {
	case slices.Equal(out.Content, n.Content):
		return n
	case len(out.Content) == 0:
		return nil
	}
	return &out
}

// hasEmpty reports whether a group without content is in n. It may have been {} or null, which Arranger accepts only in place of the
// whole filter; sqon writes it as a group.
func hasEmpty(n *sqon.Node) bool {
	return n.Group() && (len(n.Content) == 0 || slices.ContainsFunc(n.Content, hasEmpty))
}
