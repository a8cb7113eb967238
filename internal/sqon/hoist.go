package sqon

import (
	"fmt"
	"slices"
)

// maxAlternatives is how many pivots one may become.
const maxAlternatives = 16

// Hoist returns a filter of the same meaning in which everything below a pivot is about a field below it, so that an engine
// needs one question only: which elements of a path match. Clauses that a pivot does not bind move out of it, since they have
// one answer for all of its elements; a Wildcard on fields that stand at different places becomes one of each; a pivot on a
// path that is bound already goes. f is given back as it is when there is nothing to move.
//
// A pivot around or(bound, not bound) in an and becomes one for each alternative. When there would be more than 16, the error
// is a core.Error of CodeInvalid that points at the pivot; when the result would be over MaxDepth, MaxNodes or MaxValues, one
// that points at the filter. Names that fields does not know are taken to be the document's: Check comes first.
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
		h.add(f.Root.Pointer, KeywordPivot, "the clauses that the pivots of the filter do not bind make it too large or too deep")
		return Filter{}, h.err()
	}
	return Filter{Root: root}, nil
}

// needsHoist reports whether anything below a pivot is not about its element, or a pivot is inside of the same.
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

// hoister rebuilds a filter from its innermost pivots outwards.
type hoister struct {
	faults
	fields Fields
	// pivots are the paths that are bound around the node, the outermost first.
	pivots []string
	// level says of each clause and each pivot of the result which of the bound paths it is about, 0 for the document.
	level map[*Node]int
}

// place tells on which side of a pivot the clauses of a tree are.
type place uint8

const (
	// inside: some are about the pivot's element.
	inside place = 1 << iota
	// outside: some are not.
	outside
	mixed = inside | outside
)

// levelOf returns which of the bound paths a field is about.
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

// splitter takes what one pivot does not bind out of it.
type splitter struct {
	*hoister
	// pivot is the node that has it.
	pivot *Node
	// outer is the level of the pivot itself, level that of its element.
	outer, level int
	// made counts the pivots that it has become.
	made int
}

// split returns what asks for an element for which a tree holds.
func (s *splitter) split(n *Node) *Node {
	switch p := s.placeOf(n); {
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

// splitAnd splits what all members together say: those outside move out, and one that is both is split up.
func (s *splitter) splitAnd(members []*Node) *Node {
	var parts conjunction
	s.collect(&parts, members)
	// Each that is both doubles the pivots at least.
	if 1<<min(len(parts.both), maxAlternatives) > maxAlternatives {
		s.refuse()
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

// conjunction is what must hold together: members that are outside, that are not, and each an Or that is both.
type conjunction struct {
	out, in, both []*Node
}

// collect sorts members into a conjunction, with those that are both taken apart down to their Ors.
func (s *splitter) collect(parts *conjunction, members []*Node) {
	for _, m := range members {
		switch p := s.placeOf(m); {
		case p == outside:
			parts.out = append(parts.out, m)
		case p != mixed:
			parts.in = append(parts.in, m)
		case m.Op == And:
			s.collect(parts, m.Content)
		case m.Op == Not:
			s.collect(parts, s.deny(m.Content))
		default:
			parts.both = append(parts.both, m)
		}
	}
}

// splitOr splits each alternative, those that are on one side of the pivot together.
func (s *splitter) splitOr(members []*Node, split func(alternative *Node) *Node) *Node {
	var in, out, both []*Node
	for _, m := range members {
		switch s.placeOf(m) {
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

// deny returns what must hold so that none of the members does: a Not of each, moved inwards where it is both.
func (s *splitter) deny(members []*Node) []*Node {
	denied := make([]*Node, len(members))
	for i, m := range members {
		switch {
		case s.placeOf(m) != mixed:
			denied[i] = s.group(Not, m)
		case m.Op == And:
			denied[i] = s.group(Or, s.deny(m.Content)...)
		case m.Op == Or:
			denied[i] = s.group(And, s.deny(m.Content)...)
		default:
			denied[i] = s.group(Or, m.Content...)
		}
	}
	return denied
}

// placeOf tells on which side of the pivot the clauses of a tree are; a tree without any is on neither.
func (s *splitter) placeOf(n *Node) place {
	if level, atom := s.hoister.level[n]; atom {
		if level < s.level {
			return outside
		}
		return inside
	}
	var p place
	for _, member := range n.Content {
		if p |= s.placeOf(member); p == mixed {
			break
		}
	}
	return p
}

// bind returns the pivot around a tree that is inside of it as a whole.
func (s *splitter) bind(n *Node) *Node {
	if s.made++; s.made > maxAlternatives {
		s.refuse()
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

// group returns a group, or its only member in its place.
func (s *splitter) group(op Operator, members ...*Node) *Node {
	if len(members) == 1 && op != Not {
		return members[0]
	}
	if members == nil {
		members = []*Node{}
	}
	return &Node{Op: op, Content: members, Pointer: s.pivot.Pointer}
}

// refuse tells that the pivot would become too many. What is built after that is of no use.
func (s *splitter) refuse() {
	if len(s.list) == 0 {
		s.add(s.pivot.Pointer+"/pivot", KeywordPivot, fmt.Sprintf(
			"the pivot %s has more than %d alternatives with clauses that it does not bind", excerpt(s.pivot.Pivot), maxAlternatives))
	}
}

// measure counts what a tree holds, and how deep in it the node is that is counted.
type measure struct {
	nodes, values, depth int
}

// over counts a tree and reports whether it is over the limits of Parse; then it counts no further.
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
