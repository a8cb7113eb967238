package sqon

import (
	"iter"

	"tutti/internal/base/isodate"
)

// Filter is a parsed SQON. The zero value matches everything. It is immutable: methods that change a filter return another one,
// which may share nodes with it.
type Filter struct {
	// Root is nil when the filter matches everything.
	Root *Node
}

// Node is a group or a clause of a filter, with aliases resolved and scalars in lists. A group without content matches everything
// (And), nothing (Or), everything (Not); a member of a group that was {} or null is an empty And. Not of several members matches
// what none of them matches.
type Node struct {
	Op Operator
	// Pivot is a nested path: one element of it must match everything below. "" for none.
	Pivot string
	// Content are the members of a group (And, Or, Not); nil for a clause.
	Content []*Node
	// Fields are the field names of a clause: one name, for Wildcard one or more.
	Fields []string
	// Values are the values of a clause.
	Values []Value
	// Split is the pivot that Hoist split into the members of an Or, which are alternatives for one element to match; "" for any
	// other node.
	Split string
	// Pointer is the JSON pointer (RFC 6901) of the node in the parsed input.
	Pointer string
}

// Value is one value of a clause.
type Value struct {
	Kind Kind
	// Text is the text of a string, the literal of a number as written, "true" or "false".
	Text string
}

// Group reports whether n is a group, that is, not a clause.
func (n *Node) Group() bool { return n.Op.contentKind() == groupContent }

// Kind is the JSON type of a Value.
type Kind int

// Kinds of a Value.
const (
	String Kind = iota
	Number
	Bool
)

// Field is a field of a catalogue.
type Field struct {
	// Type is the search engine's type, such as "keyword"; "nested" for containers of nested elements, the only valid pivots.
	Type string
	// Nested are the enclosing nested paths, outermost first, including its own for a nested field.
	Nested []string
	// Format is the format of a date, nil for the default one, which Value.Date reads.
	Format *isodate.Format
	// Unfound is why filters by values find no document, "" if they do: they are refused.
	Unfound string
}

// Fields are the fields of a catalogue.
type Fields interface {
	// Field returns the field with a dotted name, containers included, false when there is none.
	Field(name string) (Field, bool)
}

// Names is an optional interface of Fields, used to suggest the nearest name for an unknown one.
type Names interface {
	// Names returns the names of all fields.
	Names() iter.Seq[string]
}
