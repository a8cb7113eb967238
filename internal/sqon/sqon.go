package sqon

import "iter"

// Filter is a parsed SQON. The zero value matches everything. It is never changed after Parse: what changes a filter gives
// another one, which may share nodes with the first.
type Filter struct {
	// Root is nil when the filter matches everything.
	Root *Node
}

// Node is a group or a clause of a filter, with the aliases resolved and scalars put into lists. A group without content
// matches everything (And), nothing (Or), everything (Not); a member of a group that was {} or null is such an And. Not of
// several members matches what none of them matches.
type Node struct {
	Op Operator
	// Pivot is the nested path whose single elements everything below is about, "" for none.
	Pivot string
	// Content are the members of a group (And, Or, Not); nil for a clause.
	Content []*Node
	// Fields are what a clause is about: one name, or for Wildcard one and more.
	Fields []string
	// Values are what a clause compares with.
	Values []Value
	// Split is the pivot of which Hoist made the members of an Or, each a way for one element to match; "" for any other node.
	Split string
	// Pointer is the JSON pointer (RFC 6901) to where the node stood in what was parsed.
	Pointer string
}

// Value is one value of a clause.
type Value struct {
	Kind Kind
	// Text is the text of a string, the literal of a number as it was written, "true" or "false".
	Text string
}

// Group reports whether n combines other nodes, that is, whether it is no clause.
func (n *Node) Group() bool { return n.Op.shape() == groupShape }

// Kind is the type of a Value in JSON.
type Kind int

// Kinds of a Value.
const (
	String Kind = iota
	Number
	Bool
)

// Field is what a filter is validated against.
type Field struct {
	// Type is the search engine's, such as "keyword"; "nested" for the container of nested elements, which alone can be a
	// pivot.
	Type string
	// Nested are the nested paths above the field, the outermost first, its own included when it is one.
	Nested []string
}

// Fields knows the fields of a catalogue.
type Fields interface {
	// Field returns the field of a dotted name, containers included, false when there is none.
	Field(name string) (Field, bool)
}

// Names is what Fields may offer beside, so that the nearest name is told to who used an unknown one.
type Names interface {
	// Names returns the names of all fields.
	Names() iter.Seq[string]
}
