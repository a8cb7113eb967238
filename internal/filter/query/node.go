package query

import (
	"time"

	"tutti/internal/base/isodate"
	"tutti/internal/filter/sqon"
)

// IDPath is the Path of the document id.
const IDPath = "_id"

// Field is a field of an engine.
type Field struct {
	// Path is the dotted path in the mapping, or IDPath for the document id, which supports only Terms and Exists.
	Path string
	// Type is the engine's type, such as "keyword".
	Type string
	// Nested are the enclosing nested paths, outermost first. A value of the field is in a row of the last one, or of "" when there
	// is none.
	Nested []string
	// Scale is the scaling_factor of a scaled_float, 0 for other types.
	Scale float64
	// Format is the format of a date, nil for the default one.
	Format *isodate.Format
	// Constant is the value of a constant_keyword, "" for other types or when the mapping does not have it.
	Constant string
}

// Row returns the path whose rows have the field's values.
func (f Field) Row() string {
	if len(f.Nested) == 0 {
		return ""
	}
	return f.Nested[len(f.Nested)-1]
}

// Op is the operation of a Node.
type Op uint8

// Operations of a Node.
const (
	// Everything matches all rows of the scope, Nothing none.
	Everything Op = iota
	Nothing
	// And, Or and Not combine Children, which have the same scope. Not has one child, And and Or at least one.
	And
	Or
	Not
	// Some matches the rows of the scope that have, at any depth, a row of Path for which its one child holds. Path is below the
	// scope, by one or more nested levels; it is the scope of the child.
	Some
	// Terms matches the rows in which a value of Field is one of Terms; a value that is a range, which contains one of them.
	Terms
	// Range matches the rows in which a value of Field is between From and To; a value that is a range, which contains some value
	// between them.
	Range
	// Patterns matches the rows in which a value of Field matches one of Patterns, ignoring the case of ASCII letters when Fold is
	// set, as engines do.
	Patterns
	// Exists matches the rows that have a value of Field.
	Exists
)

// Node is a condition of a filter. It is immutable and may be shared.
type Node struct {
	Op       Op
	Children []*Node
	// Path is the nested path of Some.
	Path string
	// Field is the field of a clause.
	Field Field
	// Terms are the values of Terms as texts of the field's type, sorted and distinct: for an integer type a decimal integer within
	// its range ("-7"), for a floating-point type the shortest text of a float64 that the field can represent exactly ("0.5"), for
	// a boolean "true" or "false", for an ip the canonical text (IPv4 addresses not IPv6-mapped), for a range those of its ends,
	// for anything else the text itself. Dates have no Terms: each is a Range.
	Terms []string
	// From and To bound a Range.
	From, To Bound
	// Patterns are in the notation of sqon.Pattern.
	Patterns []sqon.Pattern
	Fold     bool
}

// Clauses returns the number of conditions on fields in n; 0 for nil.
func (n *Node) Clauses() int {
	if n == nil {
		return 0
	}
	if len(n.Children) == 0 {
		if n.Field.Path == "" {
			return 0
		}
		return 1
	}
	count := 0
	for _, child := range n.Children {
		count += child.Clauses()
	}
	return count
}

// Bound is one end of a Range; the zero value is no bound.
type Bound struct {
	Set       bool
	Inclusive bool
	// Number is the decimal literal of the bound of a numeric type, which may be outside the range of the type.
	Number string
	// Time is the bound of a date, in UTC.
	Time time.Time
}
