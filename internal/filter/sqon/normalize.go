package sqon

import "slices"

// Normalize returns a smaller equivalent filter, with the same form for many equivalent ones: groups of one member become that
// member, nested groups of the same kind are merged, members without effect are removed, double negations are removed, and names
// and values in a clause become distinct. Pivots stay together, unless they are already bound by an enclosing one. The order and
// the pointers of nodes are kept; those of values are not. Normalize is idempotent.
func (f Filter) Normalize() Filter {
	if f.Root == nil {
		return f
	}
	var z normalizer
	root := z.node(f.Root)
	if everything(root) {
		return Filter{}
	}
	return Filter{Root: root}
}

// normalizer is the state of one Normalize.
type normalizer struct {
	// pivots are the enclosing pivots of the node.
	pivots []string
}

// everything reports whether n matches everything in any place.
func everything(n *Node) bool { return n.Op == And && n.Pivot == "" && len(n.Content) == 0 }

// nothing reports whether n matches nothing in any place.
func nothing(n *Node) bool { return n.Op == Or && n.Pivot == "" && len(n.Content) == 0 }

// node returns the normal form of n, built from the normal forms of its parts.
func (z *normalizer) node(n *Node) *Node {
	out := *n
	switch {
	case n.Pivot != "" && slices.Contains(z.pivots, n.Pivot):
		out.Pivot = ""
	case n.Pivot != "":
		z.pivots = append(z.pivots, n.Pivot)
		defer func() { z.pivots = z.pivots[:len(z.pivots)-1] }()
	}
	if !n.Group() {
		out.Fields, out.Values = distinct(n.Fields), n.Values
		if shape := n.Op.contentKind(); shape == listContent || shape == patternContent {
			out.Values = distinct(n.Values)
		}
		return &out
	}
	out.Content = make([]*Node, 0, len(n.Content))
	for _, member := range n.Content {
		out.add(z.node(member))
	}
	if out.Op == Not && len(out.Content) == 0 {
		out.Op = And
	}
	return out.unwrap()
}

// add adds a member in normal form to a group, or its members when they can be merged.
func (n *Node) add(member *Node) {
	switch {
	case n.Op == And && everything(member), n.Op != And && nothing(member):
	case member.Pivot == "" && (n.Op != Not && member.Op == n.Op || n.Op == Not && member.Op == Or):
		n.Content = append(n.Content, member.Content...)
	default:
		n.Content = append(n.Content, member)
	}
}

// unwrap returns the equivalent of a group with a single member.
func (n *Node) unwrap() *Node {
	if len(n.Content) != 1 {
		return n
	}
	only := n.Content[0]
	switch {
	case n.Op == Not && only.Op == Not && only.Pivot == "":
		n.Op, n.Content = Or, only.Content
		return n.unwrap()
	case n.Op == Not:
		return n
	case n.Pivot == "":
		return only
	case only.Pivot == "" && only.Group():
		n.Op, n.Content = only.Op, only.Content
		return n.unwrap()
	default:
		// And and Or are equivalent for one member.
		n.Op = And
		return n
	}
}

// distinct returns a list without duplicates, in order.
func distinct[T comparable](list []T) []T {
	if len(list) < 2 {
		return list
	}
	seen, out := make(map[T]struct{}, len(list)), make([]T, 0, len(list))
	for _, v := range list {
		if _, twice := seen[v]; !twice {
			seen[v] = struct{}{}
			out = append(out, v)
		}
	}
	return out
}
