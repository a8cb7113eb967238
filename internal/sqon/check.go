package sqon

import (
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
)

// Check holds f against the fields of a catalogue: that every name is known, every operator one that Operators returns for
// the field's type (All and SomeNotIn are for every type), every pivot a nested path, every value of a number, a date, a
// boolean or an ip one that it can have (Term says which), and that Hoist can place the clauses that a pivot does not bind.
// An alias that leads to no field is of no type that can be asked for. What it refuses is a core.Error of CodeInvalid like
// those of Parse, with pointers into what was parsed.
//
// The cost grows with the filter, not with the number of fields, but for one thing: when fields is a Names, the first name
// that is unknown is compared with all of them, within the bounds of core.Suggest, and a nearest one is told for that alone.
//
// Check comes before Normalize, which drops values and so moves what is behind them.
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

// typeAlias is the type of an alias that stands for no field: one that does has the type of that.
const typeAlias = "alias"

// checker goes through a filter once.
type checker struct {
	faults
	fields Fields
	// pivots are those around the node, the outermost first, each path once.
	pivots []string
	// unbound tells that some clause or pivot is not about the element of the innermost pivot around it.
	unbound bool
	// hinted tells that the nearest name has been looked for.
	hinted bool
}

// node checks a node and what is below it.
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
			c.add(namePointer(n, i), KeywordFieldName, "unknown field "+excerpt(name)+c.meant(name))
			continue
		}
		if field.Type == typeAlias {
			c.add(namePointer(n, i), KeywordFieldName, "the field "+excerpt(name)+" is an alias that leads to no field")
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
		c.bound(field)
		c.values(n, field.Type)
	}
}

// pivot checks that a pivot is a nested path.
func (c *checker) pivot(n *Node) {
	pointer := n.Pointer + "/pivot"
	field, known := c.fields.Field(n.Pivot)
	switch {
	case !known:
		c.add(pointer, KeywordPivot, "unknown pivot "+excerpt(n.Pivot)+c.meant(n.Pivot))
	case field.Type != "nested":
		c.add(pointer, KeywordPivot, "the pivot "+excerpt(n.Pivot)+" is not a nested path, it has the type "+field.Type)
	default:
		c.bound(field)
	}
}

// bound notes whether a field is about something else than the innermost pivot around it.
func (c *checker) bound(field Field) {
	c.unbound = c.unbound || about(field, c.pivots) < len(c.pivots)
}

// about returns which of the paths that are bound a field is about, counted from 1 on, 0 for none and so for the document: the
// longest that it is below, wherever that was bound.
func about(field Field, bound []string) int {
	for _, path := range slices.Backward(field.Nested) {
		if i := slices.Index(bound, path); i >= 0 {
			return i + 1
		}
	}
	return 0
}

// meant returns the end of a message that names the field which was likely meant, for the first that is asked for: a client
// that knows no names would have all of them compared for each of its own.
func (c *checker) meant(name string) string {
	names, ok := c.fields.(Names)
	if !ok || c.hinted {
		return ""
	}
	c.hinted = true
	return suggested(core.Suggest(name, names.Names()))
}

// namePointer returns the pointer of a clause's name.
func namePointer(n *Node, i int) string {
	if n.Op == Wildcard {
		return n.Pointer + "/content/fieldNames/" + strconv.Itoa(i)
	}
	return n.Pointer + "/content/fieldName"
}
