package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/sqon"
)

// Fields knows the fields of a catalogue, by the names that filters use and by the paths of the engine.
type Fields interface {
	sqon.Fields
	// Lookup returns the field of a name as the engine knows it, of its target for an alias; false when there is none, and for
	// containers.
	Lookup(name string) (Field, bool)
	// NestedPath returns the engine's path of a nested container; false when the name is none.
	NestedPath(name string) (string, bool)
	// Leaves returns the fields with values below a container, at any depth.
	Leaves(name string) []Field
}

// Sets gives the members of a saved set to who may use it; an error of core.CodeNotFound for any other.
type Sets func(ctx context.Context, id string) ([]string, error)

// Lower returns the tree of a filter that has passed Check(fields), at the scope "": it hoists, normalizes and lowers it; nil when
// it matches everything. Sets may be nil where no filter names one. Errors are of CodeInvalid, with the pointer of the clause,
// but for those of sets that are not of CodeNotFound.
func Lower(ctx context.Context, f sqon.Filter, fields Fields, sets Sets) (*Node, error) {
	f, err := f.Hoist(fields)
	if err != nil {
		return nil, err
	}
	f = f.Normalize()
	if f.Root == nil {
		return nil, nil //nolint:nilnil // no tree is the tree that matches everything
	}
	l := lowering{ctx: ctx, fields: fields, sets: sets}
	n := l.node(f.Root, "")
	if l.err != nil {
		return nil, l.err
	}
	return orNil(n), nil
}

// lowering goes through one filter.
type lowering struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call
	fields Fields
	sets   Sets
	err    error
	// elements is set where a clause is about the elements that a facet counts (Facet).
	elements bool
}

// node lowers n at a scope.
func (l *lowering) node(n *sqon.Node, scope string) *Node {
	if n.Pivot == "" || n.Pivot == "." {
		return l.body(n, scope)
	}
	path, ok := l.fields.NestedPath(n.Pivot)
	if !ok {
		return l.refuse(n.Pointer+"/pivot", n.Pivot+" is no nested field")
	}
	return some(scope, path, l.body(n, path))
}

func (l *lowering) body(n *sqon.Node, scope string) *Node {
	if !n.Group() {
		return l.clause(n, scope)
	}
	members := make([]*Node, len(n.Content))
	for i, member := range n.Content {
		members[i] = l.node(member, scope)
	}
	switch n.Op {
	case sqon.And:
		return all(members...)
	case sqon.Or:
		return either(members...)
	default:
		return not(either(members...))
	}
}

// clause lowers one question about one field, or a wildcard about several.
func (l *lowering) clause(n *sqon.Node, scope string) *Node {
	if n.Op == sqon.Wildcard {
		members := make([]*Node, 0, len(n.Fields))
		for _, name := range n.Fields {
			s := l.subject(name)
			members = append(members, some(scope, s.row, l.like(n, s, patternsOf(n.Values), true)))
		}
		return either(members...)
	}
	s := l.subject(n.Fields[0])
	switch n.Op {
	case sqon.In:
		return l.in(n, s, scope, n.Values)
	case sqon.NotIn:
		return not(l.in(n, s, scope, n.Values))
	case sqon.SomeNotIn:
		return some(scope, s.row, not(l.in(n, s, s.row, n.Values)))
	case sqon.All:
		if l.elements && len(n.Values) > 0 {
			return l.in(n, s, scope, n.Values)
		}
		members := make([]*Node, len(n.Values))
		for i := range n.Values {
			members[i] = l.in(n, s, scope, n.Values[i:i+1])
		}
		return all(members...)
	default:
		return some(scope, s.row, s.within(n))
	}
}

// in lowers the question whether some value is one of values, at a scope.
func (l *lowering) in(n *sqon.Node, s subject, scope string, values []sqon.Value) *Node {
	missing := false
	var texts []sqon.Value
	var patterns []sqon.Pattern
	for _, v := range values {
		switch term := v.Term(); term.Kind {
		case sqon.TermMissing:
			missing = true
		case sqon.TermPattern:
			patterns = append(patterns, term.Pattern)
		case sqon.TermSet:
			texts = append(texts, l.members(n, term.Text)...)
		default:
			texts = append(texts, sqon.Value{Kind: v.Kind, Text: term.Text})
		}
	}
	found := some(scope, s.row, either(s.equal(texts), l.like(n, s, patterns, false)))
	if !missing {
		return found
	}
	return either(found, not(some(scope, s.row, s.exists())))
}

// members returns the members of a saved set as plain values.
func (l *lowering) members(n *sqon.Node, id string) []sqon.Value {
	if l.err != nil {
		return nil
	}
	if l.sets == nil {
		l.refuse(n.Pointer+valuePlace, "sets cannot be used here")
		return nil
	}
	ids, err := l.sets(l.ctx, id)
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		l.refuse(n.Pointer+valuePlace, core.MessageOf(err))
		return nil
	case err != nil:
		l.err = err
		return nil
	}
	values := make([]sqon.Value, len(ids))
	for i, member := range ids {
		values[i] = sqon.Value{Text: member}
	}
	return values
}

// valuePlace is where the value of a clause is below it.
const valuePlace = "/content/value"

// maxPattern is how long a pattern may be, in bytes: what is longer costs engines too much.
const maxPattern = 1000

// like asks for a value that a pattern matches. The engines have no patterns for ids.
func (l *lowering) like(n *sqon.Node, s subject, patterns []sqon.Pattern, fold bool) *Node {
	if s.field.Path == IDPath && len(patterns) > 0 {
		return l.refuse(n.Pointer+valuePlace, "ids of documents are compared whole: escape * and ? by a backslash, and use in")
	}
	return s.like(l.short(n, patterns), fold)
}

// short returns patterns, none of which is too long.
func (l *lowering) short(n *sqon.Node, patterns []sqon.Pattern) []sqon.Pattern {
	for _, p := range patterns {
		if len(p) > maxPattern {
			l.refuse(n.Pointer+valuePlace, fmt.Sprintf("a pattern has %d bytes, more than %d", len(p), maxPattern))
			return nil
		}
	}
	return patterns
}

func patternsOf(values []sqon.Value) []sqon.Pattern {
	patterns := make([]sqon.Pattern, len(values))
	for i, v := range values {
		patterns[i] = v.Pattern()
	}
	return patterns
}

// refuse notes what cannot be asked, and returns the node in its place.
func (l *lowering) refuse(pointer, message string) *Node {
	if l.err == nil {
		l.err = &core.Error{
			Code: core.CodeInvalid, Message: message,
			Violations: []core.Violation{{Pointer: pointer, Message: message}},
		}
	}
	return &Node{Op: Nothing}
}

// subject is what a clause is about: a field, or a container with the fields below it.
type subject struct {
	field Field
	row   string
	// leaves are those of a container, which has no values of its own; container is set for one, nested too for elements.
	container, nested bool
	leaves            []Field
}

func (l *lowering) subject(name string) subject {
	if f, ok := l.fields.Lookup(name); ok {
		return subject{field: f, row: f.Row()}
	}
	s := subject{container: true}
	if path, nested := l.fields.NestedPath(name); nested {
		s.row, s.nested = path, true
		return s
	}
	s.leaves = l.fields.Leaves(name)
	if f, ok := l.fields.Field(name); ok && len(f.Nested) > 0 {
		s.row, _ = l.fields.NestedPath(f.Nested[len(f.Nested)-1])
	}
	return s
}

// exists asks for a value, or for one below a container; a nested one exists with its element.
func (s subject) exists() *Node {
	switch {
	case !s.container:
		return &Node{Op: Exists, Field: s.field}
	case s.nested:
		return &Node{Op: Everything}
	default:
		members := make([]*Node, len(s.leaves))
		for i, leaf := range s.leaves {
			members[i] = some(s.row, leaf.Row(), &Node{Op: Exists, Field: leaf})
		}
		return either(members...)
	}
}

// Facet returns the two filters of a facet on a field, for the documents and for the elements of the field's nested path, nil for
// all. Unless themselves is set, clauses on the field itself do not narrow it: whatever the filter and-s to the rest, at the
// top or below a pivot, and is about the field alone is left out, and so is a pivot of which nothing is left.
//
// Elements are narrowed by what the filter and-s to the rest at the top: clauses on fields of the same nested path, and pivots
// on it. All in such a clause means an element with any of the values: it would else ask one element to have all of them, as
// it does below a pivot. Of a pivot with clauses that it does not bind, an element counts that one of the alternatives of these
// takes, as they are about the document, which the filter for the documents decides.
func Facet(ctx context.Context, f sqon.Filter, name string, themselves bool, fields Fields, sets Sets) (documents, elements *Node, err error) {
	if f.Root == nil {
		return nil, nil, nil
	}
	l := &lowering{ctx: ctx, fields: fields, sets: sets}
	s := l.subject(name)
	root, err := l.remaining(f, s, themselves)
	if root == nil || err != nil {
		return nil, nil, err
	}
	documents = l.node(root, "")
	if s.row != "" {
		l.elements = true
		elements = all(l.narrowing(nil, root, s.row)...)
	}
	if l.err != nil {
		return nil, nil, l.err
	}
	return orNil(documents), orNil(elements), nil
}

// remaining returns what of a filter narrows a facet, hoisted; nil for nothing.
func (l *lowering) remaining(f sqon.Filter, s subject, themselves bool) (*sqon.Node, error) {
	apart, err := f.Hoist(l.fields)
	if err != nil {
		return nil, err
	}
	apart = apart.Normalize()
	if themselves || apart.Root == nil {
		return apart.Root, nil
	}
	if !split(apart.Root) {
		return l.without(apart.Root, s), nil
	}
	// What a pivot and-s to its alternatives stands in each of them now: it is left out of the filter as it was.
	f.Root = l.without(f.Normalize().Root, s)
	if f, err = f.Hoist(l.fields); err != nil {
		return nil, err
	}
	return f.Normalize().Root, nil
}

// split reports whether a pivot has become alternatives.
func split(n *sqon.Node) bool { return n.Split != "" || slices.ContainsFunc(n.Content, split) }

// without returns n without the members that are and-ed to the rest and about s alone; nil when nothing is left. A pivot that does
// not bind s stays, as it asks for an element besides.
func (l *lowering) without(n *sqon.Node, s subject) *sqon.Node {
	unbound := l.unbound(n, s)
	out := *n
	out.Pivot = ""
	switch {
	case l.about(&out, s) && unbound:
		return &sqon.Node{Op: sqon.And, Pivot: n.Pivot, Pointer: n.Pointer}
	case l.about(&out, s):
		return nil
	case n.Op != sqon.And:
		return n
	}
	out = *n
	out.Content = nil
	for _, member := range n.Content {
		if rest := l.without(member, s); rest != nil {
			out.Content = append(out.Content, rest)
		}
	}
	if len(out.Content) == 0 && len(n.Content) > 0 && !unbound {
		return nil
	}
	return &out
}

// unbound reports whether n has a pivot that the field of s is not below.
func (l *lowering) unbound(n *sqon.Node, s subject) bool {
	path, _ := l.fields.NestedPath(n.Pivot)
	return n.Pivot != "" && !slices.Contains(s.field.Nested, path)
}

// about reports whether all clauses of n are about s, and that it has one.
func (l *lowering) about(n *sqon.Node, s subject) bool {
	if l.unbound(n, s) {
		return false
	}
	if !n.Group() {
		return !slices.ContainsFunc(n.Fields, func(name string) bool {
			other := l.subject(name)
			return other.container || s.container || other.field.Path != s.field.Path
		})
	}
	return len(n.Content) > 0 && !slices.ContainsFunc(n.Content, func(member *sqon.Node) bool { return !l.about(member, s) })
}

// narrowing appends to into what n and-s to the rest about the elements of a row, evaluated there.
func (l *lowering) narrowing(into []*Node, n *sqon.Node, row string) []*Node {
	if n.Pivot != "" && n.Pivot != "." {
		if path, ok := l.fields.NestedPath(n.Pivot); ok && path == row {
			l.elements = false
			into = append(into, l.body(n, row))
			l.elements = true
		}
		return into
	}
	switch {
	case n.Op == sqon.And:
		for _, member := range n.Content {
			into = l.narrowing(into, member, row)
		}
	case n.Op == sqon.Or && n.Split != "":
		if path, ok := l.fields.NestedPath(n.Split); ok && path == row {
			alternatives := make([]*Node, len(n.Content))
			for i, member := range n.Content {
				alternatives[i] = all(l.narrowing(nil, member, row)...)
			}
			into = append(into, either(alternatives...))
		}
	case !n.Group() && !slices.ContainsFunc(n.Fields, func(name string) bool { return l.subject(name).row != row }):
		into = append(into, l.clause(n, row))
	}
	return into
}

// within lowers a comparison, at the row of the field.
func (s subject) within(n *sqon.Node) *Node {
	if s.container {
		return &Node{Op: Nothing}
	}
	first, last := n.Values[0], n.Values[len(n.Values)-1]
	out := &Node{Op: Range, Field: s.field}
	lower := n.Op == sqon.Gt || n.Op == sqon.Gte || n.Op == sqon.Between
	upper := n.Op == sqon.Lt || n.Op == sqon.Lte || n.Op == sqon.Between
	inclusive := n.Op != sqon.Gt && n.Op != sqon.Lt
	if !Dated(s.field.Type) {
		out.From = Bound{Set: lower, Inclusive: lower && inclusive, Number: textIf(lower, first)}
		out.To = Bound{Set: upper, Inclusive: upper && inclusive, Number: textIf(upper, last)}
		return out
	}
	if lower {
		from, to, err := first.Date()
		if err != nil {
			return &Node{Op: Nothing}
		}
		out.From = Bound{Set: true, Inclusive: true, Time: from}
		if !inclusive { // after all that the date covers
			out.From.Time = to
		}
	}
	if upper {
		from, to, err := last.Date()
		if err != nil {
			return &Node{Op: Nothing}
		}
		out.To = Bound{Set: true, Time: from}
		if inclusive {
			out.To.Time = to
		}
	}
	return out
}

func textIf(set bool, v sqon.Value) string {
	if !set {
		return ""
	}
	return strings.TrimPrefix(v.Text, "+")
}
