package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

// Fields resolves the fields of a catalogue, by the names in filters and by the paths of the engine.
type Fields interface {
	sqon.Fields
	// Lookup returns the engine's field of a name, for an alias that of its target; false for unknown names and containers.
	Lookup(name string) (Field, bool)
	// NestedPath returns the engine's path of a nested container; false for any other name.
	NestedPath(name string) (string, bool)
	// Leaves returns the fields with values below a container, at any depth.
	Leaves(name string) []Field
}

// Sets returns the members of a saved set, or an error of core.CodeNotFound when the caller may not use it.
type Sets func(ctx context.Context, id string) ([]string, error)

// Lower returns the tree of a filter that has passed Check(fields), at the scope "": it hoists, normalizes and lowers it; nil when
// it matches everything. Sets may be nil when no filter uses one. Errors are CodeInvalid, with the pointer of the clause, except
// for errors of sets other than CodeNotFound.
func Lower(ctx context.Context, f sqon.Filter, fields Fields, sets Sets) (*Node, error) {
	f, err := f.Hoist(fields)
	if err != nil {
		return nil, err
	}
	f = f.Normalize()
	if f.Root == nil {
		return nil, nil //nolint:nilnil // a nil tree matches everything
	}
	l := lowering{ctx: ctx, fields: fields, sets: sets}
	n := l.node(f.Root, "")
	if l.err != nil {
		return nil, l.err
	}
	return nilIfEverything(n), nil
}

// lowering is the state of lowering one filter.
type lowering struct {
	ctx    context.Context //nolint:containedctx // lives only during one call
	fields Fields
	sets   Sets
	err    error
	// elements is set when clauses are conditions on the elements that a facet counts (see Facet); pivots when only pivots restrict them.
	elements, pivots bool
}

// FacetFilters are the filters of a facet.
type FacetFilters struct {
	// Documents selects the documents, at the scope ""; Elements the elements of the field's nested path, at that path. Nil is all.
	Documents, Elements *Node
	// pivots is the condition of the filter's pivots on the elements of the innermost nested path around the field that has one: pivot;
	// "" if there is none.
	pivot  string
	pivots *Node
}

// MissingInPivot returns the filter of the documents that have an element for which the filter's pivots hold and which has no value of
// the facet's field: those that the filter finds with "the field is missing" inside its pivot. Nil for a filter without a pivot around
// the field.
func (f FacetFilters) MissingInPivot(field Field) *Node {
	if f.pivot == "" {
		return nil
	}
	exists := some(f.pivot, field.Row(), &Node{Op: Exists, Field: field})
	return some("", f.pivot, allOf(f.pivots, not(exists)))
}

// node lowers n at a scope.
func (l *lowering) node(n *sqon.Node, scope string) *Node {
	if n.Pivot == "" || n.Pivot == "." {
		return l.body(n, scope)
	}
	path, ok := l.fields.NestedPath(n.Pivot)
	if !ok {
		return l.reject(n.Pointer+"/pivot", n.Pivot+" is not a nested field")
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
		return allOf(members...)
	case sqon.Or:
		return anyOf(members...)
	default:
		return not(anyOf(members...))
	}
}

// clause lowers one condition on one field, or a wildcard on several.
func (l *lowering) clause(n *sqon.Node, scope string) *Node {
	if n.Op == sqon.Wildcard {
		members := make([]*Node, 0, len(n.Fields))
		for _, name := range n.Fields {
			s := l.subject(name)
			members = append(members, some(scope, s.row, l.like(n, s, patternsOf(n.Values), true)))
		}
		return anyOf(members...)
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
		return allOf(members...)
	default:
		return some(scope, s.row, s.within(n))
	}
}

// in lowers the condition that some value is one of values, at a scope.
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
	found := some(scope, s.row, anyOf(s.equal(texts), l.like(n, s, patterns, false)))
	if !missing {
		return found
	}
	return anyOf(found, not(some(scope, s.row, s.exists())))
}

// members returns the members of a saved set as plain values.
func (l *lowering) members(n *sqon.Node, id string) []sqon.Value {
	if l.err != nil {
		return nil
	}
	if l.sets == nil {
		l.reject(n.Pointer+valuePointer, "sets cannot be used here")
		return nil
	}
	ids, err := l.sets(l.ctx, id)
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		l.reject(n.Pointer+valuePointer, core.MessageOf(err))
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

// valuePointer is the pointer of a clause's value, relative to the clause.
const valuePointer = "/content/value"

// maxPattern is the length in bytes of the longest pattern: longer ones are too expensive for engines.
const maxPattern = 1000

// like lowers the condition that a value matches a pattern. Engines do not support patterns on ids.
func (l *lowering) like(n *sqon.Node, s subject, patterns []sqon.Pattern, fold bool) *Node {
	if s.field.Path == IDPath && len(patterns) > 0 {
		return l.reject(n.Pointer+valuePointer, "document ids do not support patterns: use in, with * and ? escaped by a backslash")
	}
	return s.like(l.checkLengths(n, patterns), fold)
}

// checkLengths returns patterns, or nil after rejecting one that is too long.
func (l *lowering) checkLengths(n *sqon.Node, patterns []sqon.Pattern) []sqon.Pattern {
	for _, p := range patterns {
		if len(p) > maxPattern {
			l.reject(n.Pointer+valuePointer, fmt.Sprintf("a pattern has %d bytes; the maximum is %d", len(p), maxPattern))
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

// reject records the first error, and returns the node to use instead.
func (l *lowering) reject(pointer, message string) *Node {
	if l.err == nil {
		l.err = &core.Error{
			Code: core.CodeInvalid, Message: message,
			Violations: []core.Violation{{Pointer: pointer, Message: message}},
		}
	}
	return &Node{Op: Nothing}
}

// subject is what a clause is about: a field, or a container and its fields.
type subject struct {
	field Field
	row   string
	// leaves are the fields of a container, which has no values of its own; container is set for containers, nested too for nested
	// ones.
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

// exists lowers the condition that a field, or a field below a container, has a value; a nested container exists with its element.
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
		return anyOf(members...)
	}
}

// Facet returns the filters of a facet on a field. Unless themselves is set, conditions on the field itself do not apply to the facet: conjuncts of the filter, at the top or
// below a pivot, that are only about the field are omitted, and so are pivots that become empty.
//
// Elements are restricted by the conjuncts at the top of the filter: clauses on fields of the same nested path, and pivots on it.
// The operator all in such a clause accepts an element with any of the values, because it would otherwise require one element to
// have all of them, as it does below a pivot. For a pivot split into alternatives, an element counts when one alternative accepts
// it: the other conditions are about the document, and are in the document filter.
func Facet(ctx context.Context, f sqon.Filter, name string, themselves bool, fields Fields, sets Sets) (FacetFilters, error) {
	if f.Root == nil {
		return FacetFilters{}, nil
	}
	l := &lowering{ctx: ctx, fields: fields, sets: sets}
	s := l.subject(name)
	root, err := l.facetFilter(f, s, themselves)
	if root == nil || err != nil {
		return FacetFilters{}, err
	}
	out := FacetFilters{Documents: nilIfEverything(l.node(root, ""))}
	if s.row != "" {
		l.elements = true
		out.Elements = nilIfEverything(allOf(l.elementFilters(nil, root, s.row)...))
		out.pivot, out.pivots = l.innermostPivots(root, s)
	}
	if l.err != nil {
		return FacetFilters{}, l.err
	}
	return out, nil
}

// innermostPivots returns pivot and pivots of FacetFilters.
func (l *lowering) innermostPivots(root *sqon.Node, s subject) (string, *Node) {
	l.elements, l.pivots = false, true
	for _, path := range slices.Backward(s.field.Nested) {
		if pivots := l.elementFilters(nil, root, path); len(pivots) > 0 {
			return path, allOf(pivots...)
		}
	}
	return "", nil
}

// facetFilter returns the part of a filter that applies to a facet, hoisted; nil for none.
func (l *lowering) facetFilter(f sqon.Filter, s subject, themselves bool) (*sqon.Node, error) {
	apart, err := f.Hoist(l.fields)
	if err != nil {
		return nil, err
	}
	apart = apart.Normalize()
	if themselves || apart.Root == nil {
		return apart.Root, nil
	}
	if !split(apart.Root) {
		return l.withoutField(apart.Root, s), nil
	}
	// The conditions beside a pivot's alternatives are now in each alternative, so they are removed from the original filter.
	f.Root = l.withoutField(f.Normalize().Root, s)
	if f, err = f.Hoist(l.fields); err != nil {
		return nil, err
	}
	return f.Normalize().Root, nil
}

// split reports whether a pivot has been split into alternatives.
func split(n *sqon.Node) bool { return n.Split != "" || slices.ContainsFunc(n.Content, split) }

// withoutField returns n without the conjuncts that are only about s; nil when nothing is left. A pivot on another path remains,
// because it also requires an element to exist.
func (l *lowering) withoutField(n *sqon.Node, s subject) *sqon.Node {
	unbound := l.pivotsElsewhere(n, s)
	out := *n
	out.Pivot = ""
	switch {
	case l.onlyAbout(&out, s) && unbound:
		return &sqon.Node{Op: sqon.And, Pivot: n.Pivot, Pointer: n.Pointer}
	case l.onlyAbout(&out, s):
		return nil
	case n.Op != sqon.And:
		return n
	}
	out = *n
	out.Content = nil
	for _, member := range n.Content {
		if rest := l.withoutField(member, s); rest != nil {
			out.Content = append(out.Content, rest)
		}
	}
	if len(out.Content) == 0 && len(n.Content) > 0 && !unbound {
		return nil
	}
	return &out
}

// pivotsElsewhere reports whether n has a pivot that does not contain the field of s.
func (l *lowering) pivotsElsewhere(n *sqon.Node, s subject) bool {
	path, _ := l.fields.NestedPath(n.Pivot)
	return n.Pivot != "" && !slices.Contains(s.field.Nested, path)
}

// onlyAbout reports whether n has clauses and all are about s.
func (l *lowering) onlyAbout(n *sqon.Node, s subject) bool {
	if l.pivotsElsewhere(n, s) {
		return false
	}
	if !n.Group() {
		return !slices.ContainsFunc(n.Fields, func(name string) bool {
			other := l.subject(name)
			return other.container || s.container || other.field.Path != s.field.Path
		})
	}
	return len(n.Content) > 0 && !slices.ContainsFunc(n.Content, func(member *sqon.Node) bool { return !l.onlyAbout(member, s) })
}

// elementFilters appends to into the conjuncts of n about the elements of a row, evaluated at that row.
func (l *lowering) elementFilters(into []*Node, n *sqon.Node, row string) []*Node {
	if n.Pivot != "" && n.Pivot != "." {
		if path, ok := l.fields.NestedPath(n.Pivot); ok && path == row {
			before := l.elements
			l.elements = false
			into = append(into, l.body(n, row))
			l.elements = before
		}
		return into
	}
	switch {
	case n.Op == sqon.And:
		for _, member := range n.Content {
			into = l.elementFilters(into, member, row)
		}
	case n.Op == sqon.Or && n.Split != "":
		if path, ok := l.fields.NestedPath(n.Split); ok && path == row {
			alternatives := make([]*Node, len(n.Content))
			for i, member := range n.Content {
				alternatives[i] = allOf(l.elementFilters(nil, member, row)...)
			}
			into = append(into, anyOf(alternatives...))
		}
	case !n.Group() && !l.pivots && !slices.ContainsFunc(n.Fields, func(name string) bool { return l.subject(name).row != row }):
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
	if n.Op == sqon.Between && s.reversed(first, last) {
		first, last = last, first
	}
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
		from, to, err := s.timeRange(first)
		if err != nil {
			return &Node{Op: Nothing}
		}
		out.From = Bound{Set: true, Inclusive: true, Time: from}
		if !inclusive { // after the end of the date
			out.From.Time = to
		}
	}
	if upper {
		from, to, err := s.timeRange(last)
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

// reversed reports whether nothing can be between two values, but something between the second and the first.
func (s subject) reversed(first, last sqon.Value) bool {
	if !Dated(s.field.Type) {
		return decimal(first.Text).Cmp(decimal(last.Text)) > 0
	}
	from, _, err := s.timeRange(first)
	_, to, errLast := s.timeRange(last)
	return err == nil && errLast == nil && !from.Before(to)
}

func textIf(set bool, v sqon.Value) string {
	if !set {
		return ""
	}
	return strings.TrimPrefix(v.Text, "+")
}
