package sqon

import (
	"slices"
	"strconv"
	"strings"

	"tutti/internal/base/spelling"
)

// Check validates f against the fields of a catalogue: all names must be known, all operators among those that Operators returns
// for the field's type (All and SomeNotIn are for every type), all pivots nested paths, all values of numbers, dates, booleans and
// ips valid (see Term), and Hoist must be able to move the clauses that a pivot does not bind. An alias without a target field
// supports no operator. The error is a core.Error of CodeInvalid like those of Parse, with pointers into the parsed input.
//
// The cost grows with the filter, not with the number of fields, with one exception: when fields is a Names, the first unknown name
// is compared with all of them, within the bounds of spelling.Suggest; only that violation has a suggestion.
//
// Check must come before Normalize, which removes values and so changes the positions of later ones.
func (f Filter) Check(fields Fields) error {
	if f.Root == nil {
		return nil
	}
	c := checker{fields: fields}
	c.node(f.Root)
	if len(c.list) == 0 && c.unbound {
		_, err := f.Hoist(fields)
		return err
	}
	return c.err()
}

// typeAlias is the type of an alias without a target field; other aliases have the type of their target.
const typeAlias = "alias"

// checker is the state of one check.
type checker struct {
	violations
	fields Fields
	// pivots are the enclosing pivots of the node, outermost first, without duplicates.
	pivots []string
	// unbound is set when a clause or pivot is not about the element of the innermost enclosing pivot.
	unbound bool
	// hinted is set once a nearest name has been searched.
	hinted bool
}

// node checks a node and its descendants.
func (c *checker) node(n *Node) {
	if c.full() {
		return
	}
	if n.Pivot != "" && !slices.Contains(c.pivots, n.Pivot) {
		c.pivot(n)
		c.pivots = append(c.pivots, n.Pivot)
		defer func() { c.pivots = c.pivots[:len(c.pivots)-1] }()
	}
	if n.Group() {
		for _, member := range n.Content {
			c.node(member)
		}
		return
	}
	opTold := false
	for i, name := range n.Fields {
		field, known := c.fields.Field(name)
		if !known {
			c.add(namePointer(n, i), KeywordFieldName, "unknown field "+excerpt(name)+c.suggestName(name))
			continue
		}
		if field.Type == typeAlias {
			c.add(namePointer(n, i), KeywordFieldName, "the field "+excerpt(name)+" is an alias without a target field")
			continue
		}
		if !n.Op.applies(field.Type) {
			if !opTold {
				c.add(n.Pointer+"/op", KeywordOp, excerpt(string(n.Op))+" does not apply to the field "+excerpt(name)+" of type "+
					field.Type+", which takes "+strings.Join(Operators(field.Type), ", "))
			}
			opTold = true
			continue
		}
		if field.Unfound != "" && byValue(n) {
			c.add(namePointer(n, i), KeywordFieldName, "the field "+excerpt(name)+" has no filter by values: "+field.Unfound)
			continue
		}
		c.bound(field)
		c.values(n, field)
	}
}

// byValue reports whether a clause is about more than missing values.
func byValue(n *Node) bool {
	return n.Op.contentKind() != listContent || slices.ContainsFunc(n.Values, func(v Value) bool { return v.Term().Kind != TermMissing })
}

// pivot checks that a pivot is a nested path.
func (c *checker) pivot(n *Node) {
	pointer := n.Pointer + "/pivot"
	field, known := c.fields.Field(n.Pivot)
	switch {
	case !known:
		c.add(pointer, KeywordPivot, "unknown pivot "+excerpt(n.Pivot)+c.suggestName(n.Pivot))
	case field.Type != "nested":
		c.add(pointer, KeywordPivot, "the pivot "+excerpt(n.Pivot)+" is not a nested path, it has the type "+field.Type)
	default:
		c.bound(field)
	}
}

// bound records whether a field is about something other than the innermost enclosing pivot.
func (c *checker) bound(field Field) {
	c.unbound = c.unbound || about(field, c.pivots) < len(c.pivots)
}

// about returns the bound path that a field is about, as its index in bound plus one, 0 for the document: the longest one that
// contains the field, wherever it was bound.
func about(field Field, bound []string) int {
	for _, path := range slices.Backward(field.Nested) {
		if i := slices.Index(bound, path); i >= 0 {
			return i + 1
		}
	}
	return 0
}

// suggestName returns a suggestion for an unknown name, only for the first one: comparing all names is expensive.
func (c *checker) suggestName(name string) string {
	names, ok := c.fields.(Names)
	if !ok || c.hinted {
		return ""
	}
	c.hinted = true
	return didYouMean(spelling.Suggest(name, names.Names()))
}

// namePointer returns the pointer of a clause's name.
func namePointer(n *Node, i int) string {
	if n.Op == Wildcard {
		return n.Pointer + "/content/fieldNames/" + strconv.Itoa(i)
	}
	return n.Pointer + "/content/fieldName"
}
