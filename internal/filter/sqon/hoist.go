package sqon

import (
	"fmt"
	"slices"
)

// maxAlternatives is the maximum number of pivots that one pivot is split into.
const maxAlternatives = 16

// Hoist returns an equivalent filter in which everything below a pivot is about a field below it, so that an engine only has to
// find the matching elements of a path. Clauses that a pivot does not bind move out of it, because their result is the same for all
// of its elements; a Wildcard on fields in different places becomes one for each; a pivot on a path that is already bound is
// removed. It returns f itself when nothing changes.
//
// A pivot around or(bound, not bound) in an and becomes one pivot per alternative. For more than 16, the error is a core.Error of
// CodeInvalid that points at the pivot; when the result would exceed MaxDepth, MaxNodes or MaxValues, one that points at the
// filter. Names that are not in fields are treated as fields of the document: Check comes first.
func (f Filter) Hoist(fields Fields) (Filter, error) {
	if f.Root == nil {
		return f, nil
	}
	if c := (checker{fields: fields}); !c.needsHoist(f.Root) {
		return f, nil
	}
	h := hoister{fields: fields, level: map[*Node]int{}}
	root := h.node(f.Root)
	if err := h.err(); err != nil {
		return Filter{}, err
	}
	if m := (measure{}); m.over(root) {
		h.add(f.Root.Pointer, KeywordPivot, "the filter is too large or too deep after moving clauses out of pivots that do not bind them")
		return Filter{}, h.err()
	}
	return Filter{Root: root}, nil
}

// needsHoist reports whether anything below a pivot is not about its element, or a pivot is nested in one on the same path.
func (c *checker) needsHoist(n *Node) bool {
	if n.Pivot != "" {
		if slices.Contains(c.pivots, n.Pivot) {
			return true
		}
		field, _ := c.fields.Field(n.Pivot)
		c.bound(field)
		c.pivots = append(c.pivots, n.Pivot)
		defer func() { c.pivots = c.pivots[:len(c.pivots)-1] }()
	}
	if len(c.pivots) > 0 {
		for _, name := range n.Fields {
			field, _ := c.fields.Field(name)
			c.bound(field)
		}
	}
	return c.unbound || slices.ContainsFunc(n.Content, c.needsHoist)
}

// hoister rebuilds a filter from its innermost pivots outward.
type hoister struct {
	violations
	fields Fields
	// pivots are the bound paths around the node, outermost first.
	pivots []string
	// level maps the clauses and pivots of the result to the bound path that they are about (see about).
	level map[*Node]int
}

// side is on which side of a pivot the clauses of a tree are.
type side uint8

const (
	// inside is set when some clauses are about the pivot's element.
	inside side = 1 << iota
	// outside is set when some clauses are not.
	outside
	mixed = inside | outside
)

// levelOf returns the bound path that a field is about (see about).
func (h *hoister) levelOf(name string) int {
	field, _ := h.fields.Field(name)
	return about(field, h.pivots)
}

// node rebuilds a node: groups of clauses and pivots, each with its level.
func (h *hoister) node(n *Node) *Node {
	if n.Pivot == "" || slices.Contains(h.pivots, n.Pivot) {
		return h.body(n)
	}
	level := h.levelOf(n.Pivot)
	h.pivots = append(h.pivots, n.Pivot)
	s := splitter{hoister: h, pivot: n, outer: level, level: len(h.pivots)}
	out := s.split(h.body(n))
	h.pivots = h.pivots[:len(h.pivots)-1]
	return out
}

// body rebuilds a node without its pivot.
func (h *hoister) body(n *Node) *Node {
	out := *n
	out.Pivot = ""
	if n.Group() {
		out.Content = make([]*Node, len(n.Content))
		for i, member := range n.Content {
			out.Content[i] = h.node(member)
		}
		return &out
	}
	byLevel := make([][]string, len(h.pivots)+1)
	for _, name := range n.Fields {
		level := h.levelOf(name)
		byLevel[level] = append(byLevel[level], name)
	}
	var clauses []*Node
	for level, names := range byLevel {
		if len(names) > 0 {
			clause := out
			clause.Fields = names
			h.level[&clause] = level
			clauses = append(clauses, &clause)
		}
	}
	if len(clauses) == 1 {
		return clauses[0]
	}
	return &Node{Op: Or, Content: clauses, Pointer: n.Pointer}
}

// splitter moves what one pivot does not bind out of it.
type splitter struct {
	*hoister
	// pivot is the node with the pivot.
	pivot *Node
	// outer is the level of the pivot itself, level that of its element.
	outer, level int
	// made is the number of pivots that it has become.
	made int
}

// split returns the condition that an element exists for which a tree holds.
func (s *splitter) split(n *Node) *Node {
	switch p := s.sideOf(n); {
	case len(s.list) > 0:
		return s.pivot
	case p&outside == 0:
		return s.bind(n)
	case p == mixed && n.Op == Or:
		return s.splitOr(n.Content, s.split)
	default:
		return s.splitAnd([]*Node{n})
	}
}

// splitAnd splits a conjunction: members outside the pivot move out, and members on both sides are split.
func (s *splitter) splitAnd(members []*Node) *Node {
	var parts conjunction
	s.collect(&parts, members)
	// Each member on both sides at least doubles the pivots.
	if 1<<min(len(parts.both), maxAlternatives) > maxAlternatives {
		s.tooManyPivots()
	}
	if len(s.list) > 0 {
		return s.pivot
	}
	if len(parts.both) == 0 {
		return s.group(And, append(parts.out, s.bind(s.group(And, parts.in...)))...)
	}
	rest := slices.Concat(parts.in, parts.both[1:])
	return s.group(And, append(parts.out, s.splitOr(parts.both[0].Content, func(alternative *Node) *Node {
		return s.splitAnd(append(slices.Clip(rest), alternative))
	}))...)
}

// conjunction is a set of conditions that must all hold: members outside the pivot, members inside, and Ors on both sides.
type conjunction struct {
	out, in, both []*Node
}

// collect adds members to a conjunction, decomposing those on both sides down to their Ors.
func (s *splitter) collect(parts *conjunction, members []*Node) {
	for _, m := range members {
		switch p := s.sideOf(m); {
		case p == outside:
			parts.out = append(parts.out, m)
		case p != mixed:
			parts.in = append(parts.in, m)
		case m.Op == And:
			s.collect(parts, m.Content)
		case m.Op == Not:
			s.collect(parts, s.negate(m.Content))
		default:
			parts.both = append(parts.both, m)
		}
	}
}

// splitOr splits a disjunction: alternatives on the same side of the pivot stay together.
func (s *splitter) splitOr(members []*Node, split func(alternative *Node) *Node) *Node {
	var in, out, both []*Node
	for _, m := range members {
		switch s.sideOf(m) {
		case mixed:
			both = append(both, m)
		case outside:
			out = append(out, m)
		default:
			in = append(in, m)
		}
	}
	var alternatives []*Node
	if len(in) > 0 {
		alternatives = append(alternatives, split(s.group(Or, in...)))
	}
	if len(out) > 0 {
		alternatives = append(alternatives, split(s.group(Or, out...)))
	}
	for _, m := range both {
		alternatives = append(alternatives, split(m))
	}
	whole := s.group(Or, alternatives...)
	if len(alternatives) > 1 {
		whole.Split = s.pivot.Pivot
	}
	return whole
}

// negate returns the conditions under which none of the members holds: a Not of each, moved inward for members on both sides.
func (s *splitter) negate(members []*Node) []*Node {
	denied := make([]*Node, len(members))
	for i, m := range members {
		switch {
		case s.sideOf(m) != mixed:
			denied[i] = s.group(Not, m)
		case m.Op == And:
			denied[i] = s.group(Or, s.negate(m.Content)...)
		case m.Op == Or:
			denied[i] = s.group(And, s.negate(m.Content)...)
		default:
			denied[i] = s.group(Or, m.Content...)
		}
	}
	return denied
}

// sideOf returns on which side of the pivot the clauses of a tree are; 0 for a tree without clauses.
func (s *splitter) sideOf(n *Node) side {
	if level, atom := s.hoister.level[n]; atom {
		if level < s.level {
			return outside
		}
		return inside
	}
	var p side
	for _, member := range n.Content {
		if p |= s.sideOf(member); p == mixed {
			break
		}
	}
	return p
}

// bind returns the pivot around a tree that is entirely inside it.
func (s *splitter) bind(n *Node) *Node {
	if s.made++; s.made > maxAlternatives {
		s.tooManyPivots()
		return n
	}
	out := *n
	if n.Pivot != "" {
		out = Node{Op: And, Content: []*Node{n}}
	}
	out.Pivot, out.Pointer = s.pivot.Pivot, s.pivot.Pointer
	s.hoister.level[&out] = s.outer
	return &out
}

// group returns a group, or its only member.
func (s *splitter) group(op Operator, members ...*Node) *Node {
	if len(members) == 1 && op != Not {
		return members[0]
	}
	if members == nil {
		members = []*Node{}
	}
	return &Node{Op: op, Content: members, Pointer: s.pivot.Pointer}
}

// tooManyPivots records the error that the pivot has too many alternatives. Anything built afterwards is discarded.
func (s *splitter) tooManyPivots() {
	if len(s.list) == 0 {
		s.add(s.pivot.Pointer+"/pivot", KeywordPivot, fmt.Sprintf(
			"the pivot %s has more than %d alternatives with clauses on fields outside of it", excerpt(s.pivot.Pivot), maxAlternatives))
	}
}

// measure is the size of a tree, and the depth of the current node.
type measure struct {
	nodes, values, depth int
}

// over measures a tree and reports whether it exceeds the limits of Parse; it stops as soon as it does.
func (m *measure) over(n *Node) bool {
	m.nodes++
	m.values += len(n.Values)
	if n.Op == Wildcard {
		m.values += len(n.Fields)
	}
	m.depth++
	over := m.nodes > MaxNodes || m.values > MaxValues || m.depth > MaxDepth || slices.ContainsFunc(n.Content, m.over)
	m.depth--
	return over
}
