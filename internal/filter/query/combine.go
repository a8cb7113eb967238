package query

// nilIfEverything returns nil for a node that matches everything.
func nilIfEverything(n *Node) *Node {
	if n == nil || n.Op == Everything {
		return nil
	}
	return n
}

// Both returns the conjunction of two filters of the same scope. A nil filter matches everything.
func Both(a, b *Node) *Node {
	switch {
	case nilIfEverything(a) == nil:
		return nilIfEverything(b)
	case nilIfEverything(b) == nil:
		return a
	default:
		return allOf(a, b)
	}
}

// Exactly returns the documents that have one of texts as a value of a field, without wildcards; none when no text is valid for the
// type.
func Exactly(f Field, texts []string) *Node {
	s := subject{field: f, row: f.Row()}
	terms := make([]string, 0, len(texts))
	for _, text := range texts {
		if term, ok := s.term(text); ok {
			terms = append(terms, term)
		}
	}
	return some("", s.row, s.terms(terms))
}

// allOf returns the conjunction of members.
func allOf(members ...*Node) *Node { return combine(And, Everything, Nothing, members) }

// anyOf returns the disjunction of members.
func anyOf(members ...*Node) *Node { return combine(Or, Nothing, Everything, members) }

// combine joins members by op, flattening members with the same op. none is the neutral element of op, final the absorbing one.
func combine(op, none, final Op, members []*Node) *Node {
	var kept []*Node
	for _, m := range members {
		switch m.Op {
		case none:
		case final:
			return &Node{Op: final}
		case op:
			kept = append(kept, m.Children...)
		default:
			kept = append(kept, m)
		}
	}
	switch len(kept) {
	case 0:
		return &Node{Op: none}
	case 1:
		return kept[0]
	default:
		return &Node{Op: op, Children: kept}
	}
}

// not returns the negation of n.
func not(n *Node) *Node {
	switch n.Op {
	case Everything:
		return &Node{Op: Nothing}
	case Nothing:
		return &Node{Op: Everything}
	case Not:
		return n.Children[0]
	default:
		return &Node{Op: Not, Children: []*Node{n}}
	}
}

// some lifts n from the rows of path to a scope.
func some(scope, path string, n *Node) *Node {
	switch {
	case scope == path, n.Op == Nothing:
		return n
	default:
		return &Node{Op: Some, Path: path, Children: []*Node{n}}
	}
}

// Either returns the disjunction of two filters of the same scope. A nil filter matches everything.
func Either(a, b *Node) *Node {
	if a == nil || b == nil {
		return nil
	}
	return nilIfEverything(anyOf(a, b))
}
