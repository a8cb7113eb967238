package query

// orNil returns nil for what matches everything.
func orNil(n *Node) *Node {
	if n == nil || n.Op == Everything {
		return nil
	}
	return n
}

// Both returns what matches two filters of the same scope, of which nil matches everything.
func Both(a, b *Node) *Node {
	switch {
	case orNil(a) == nil:
		return orNil(b)
	case orNil(b) == nil:
		return a
	default:
		return all(a, b)
	}
}

// Exactly returns the documents that have one of texts as a value of a field, whatever characters they are of; none when no
// text can be a value of its type.
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

// all returns what matches every one of members.
func all(members ...*Node) *Node { return combined(And, Everything, Nothing, members) }

// either returns what matches one of members.
func either(members ...*Node) *Node { return combined(Or, Nothing, Everything, members) }

// combined joins members by op, for which none changes nothing and final decides. What is joined by op already is opened.
func combined(op, none, final Op, members []*Node) *Node {
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

// not returns what n does not match.
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

// some brings n from the rows of path up to a scope.
func some(scope, path string, n *Node) *Node {
	switch {
	case scope == path, n.Op == Nothing:
		return n
	default:
		return &Node{Op: Some, Path: path, Children: []*Node{n}}
	}
}

// Either returns what matches one of two filters of the same scope, of which nil matches everything.
func Either(a, b *Node) *Node {
	if a == nil || b == nil {
		return nil
	}
	return orNil(either(a, b))
}
