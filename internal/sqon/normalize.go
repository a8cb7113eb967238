package sqon

import "slices"

// Normalize returns a smaller filter of the same meaning, and one with the same form for many that say the same: groups of one
// member are that member, a group inside one of the same kind is part of it, members that change nothing go, a Not of a Not
// is what is inside, names and values that stand twice in a clause stand once. What has a pivot stays together, unless that
// is bound already by one around it. The order stays, and so do the pointers of nodes; those of values do not.
// Normalize of its result changes nothing.
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

// normalizer goes through a filter once.
type normalizer struct {
	// pivots are those around the node.
	pivots []string
}

// everything reports whether n matches everything wherever it stands.
func everything(n *Node) bool { return n.Op == And && n.Pivot == "" && len(n.Content) == 0 }

// nothing reports whether n matches nothing wherever it stands.
func nothing(n *Node) bool { return n.Op == Or && n.Pivot == "" && len(n.Content) == 0 }

// node returns the normal form of n. The normal form of a tree is made of those of its parts, so that of a normal form is
// itself.
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
		if shape := n.Op.shape(); shape == listShape || shape == patternShape {
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
	return out.settle()
}

// add adds a member in normal form to a group, or its members when they can stand there.
func (n *Node) add(member *Node) {
	switch {
	case n.Op == And && everything(member), n.Op != And && nothing(member):
	case member.Pivot == "" && (n.Op != Not && member.Op == n.Op || n.Op == Not && member.Op == Or):
		n.Content = append(n.Content, member.Content...)
	default:
		n.Content = append(n.Content, member)
	}
}

// settle returns what a group with a single member is.
func (n *Node) settle() *Node {
	if len(n.Content) != 1 {
		return n
	}
	only := n.Content[0]
	switch {
	case n.Op == Not && only.Op == Not && only.Pivot == "":
		n.Op, n.Content = Or, only.Content
		return n.settle()
	case n.Op == Not:
		return n
	case n.Pivot == "":
		return only
	case only.Pivot == "" && only.Group():
		n.Op, n.Content = only.Op, only.Content
		return n.settle()
	default:
		// Which of And and Or has one member does not matter.
		n.Op = And
		return n
	}
}

// distinct returns a list without what stands in it a second time.
func distinct[T comparable](list []T) []T {
	if len(list) < 2 {
		return list
	}
	seen := make(map[T]struct{}, len(list))
	for i, v := range list {
		if _, twice := seen[v]; twice {
			out := slices.Clone(list[:i])
			for _, v := range list[i+1:] {
				if _, twice := seen[v]; !twice {
					seen[v] = struct{}{}
					out = append(out, v)
				}
			}
			return out
		}
		seen[v] = struct{}{}
	}
	return list
}
