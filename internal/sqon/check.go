package sqon

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
)

// Check holds f against the fields of a catalogue: that every name is known, every operator one that Operators gives for
// the field's type (All and SomeNotIn are for every type), every pivot a nested path, every plain value one that a number, a
// date or a boolean can have, and that Hoist can place the clauses that a pivot does not bind. What it refuses is a
// core.Error of CodeInvalid like those of Parse, with pointers into what was parsed.
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

// checker goes through a filter once.
type checker struct {
	faults
	fields Fields
	// pivots are those around the node, the outermost first.
	pivots []string
	// unbound tells that some clause or pivot is not about the element of the innermost pivot around it.
	unbound bool
}

// node checks a node and what is below it.
func (c *checker) node(n *Node) {
	if c.full() {
		return
	}
	if n.Pivot != "" {
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
	if last := len(c.pivots) - 1; last >= 0 && !slices.Contains(field.Nested, c.pivots[last]) {
		c.unbound = true
	}
}

// meant gives the end of a message that names the field which was likely meant.
func (c *checker) meant(name string) string {
	names, ok := c.fields.(Names)
	if !ok {
		return ""
	}
	if word := core.Meant(name, names.Names()); word != "" {
		return ", did you mean " + excerpt(word) + "?"
	}
	return ""
}

// namePointer gives the pointer of a clause's name.
func namePointer(n *Node, i int) string {
	if n.Op == Wildcard {
		return n.Pointer + "/content/fieldNames/" + strconv.Itoa(i)
	}
	return n.Pointer + "/content/fieldName"
}

// values checks that the values can be such of the field's type.
func (c *checker) values(n *Node, fieldType string) {
	class := classOf(fieldType)
	if class != numberClass && class != dateClass && class != booleanClass || n.Op == Wildcard {
		return
	}
	for i, v := range n.Values {
		if n.Op.shape() == listShape {
			term := v.Term()
			if term.Kind != TermText {
				continue
			}
			v.Text = term.Text
		}
		if class.holds(v) {
			continue
		}
		if len(n.Values) == 1 {
			// It may have stood without a list; the value as a whole is there either way.
			i = -1
		}
		c.add(valuePointer(n, i), KeywordValue, excerpt(v.Text)+" is "+class.refusal())
		if c.full() {
			return
		}
	}
}

// maxPlainDigits is a length below which every number without an exponent is finite.
const maxPlainDigits = 300

// holds tells whether v can be a value of a class of types.
func (c class) holds(v Value) bool {
	switch c {
	case numberClass:
		if v.Kind == Bool || v.Text == "" || numberLength(v.Text) != len(v.Text) {
			return false
		}
		if len(v.Text) < maxPlainDigits && !strings.ContainsAny(v.Text, "eE") {
			return true
		}
		x, err := strconv.ParseFloat(v.Text, 64)
		return err == nil && !math.IsInf(x, 0)
	case dateClass:
		if v.Kind == String {
			return isDate(v.Text)
		}
		_, _, err := v.Date()
		return err == nil
	case booleanClass:
		return v.Kind != Number && (v.Text == "true" || v.Text == "false")
	default:
		return true
	}
}

// refusal says what a value is not.
func (c class) refusal() string {
	switch c {
	case numberClass:
		return "no number"
	case dateClass:
		return "no ISO 8601 date and no number of milliseconds"
	default:
		return "neither true nor false"
	}
}
