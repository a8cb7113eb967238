package query

import (
	"time"

	"tutti/internal/sqon"
)

// IDPath is the Path of the id of documents.
const IDPath = "_id"

// Field is a field as engines know it.
type Field struct {
	// Path is the dotted path in the mapping; IDPath for the id of the document, which has Terms and Exists alone.
	Path string
	// Type is the engine's, such as "keyword".
	Type string
	// Nested are the nested paths above the field, the outermost first. A value of the field is at a row of the last one, or
	// of "" when there is none.
	Nested []string
	// Scale is the scaling_factor of a scaled_float, 0 for other types.
	Scale float64
}

// Row returns the path whose rows hold the field's values.
func (f Field) Row() string {
	if len(f.Nested) == 0 {
		return ""
	}
	return f.Nested[len(f.Nested)-1]
}

// Op is what a Node asks for.
type Op uint8

// Operations of a Node.
const (
	// Everything is all rows of the scope, Nothing none.
	Everything Op = iota
	Nothing
	// And, Or and Not combine Children, of which Not has one; all are at the scope. And and Or have one at least.
	And
	Or
	Not
	// Some is the rows of the scope that have, at any depth, a row of Path for which the one child holds. Path is below the
	// scope, by one nested level or more; the child's scope is Path.
	Some
	// Terms is the rows of which some value of Field is one of Terms.
	Terms
	// Range is the rows of which some value of Field lies within From and To.
	Range
	// Patterns is the rows of which some value of Field matches one of Patterns, case-insensitively when Fold is set (ASCII
	// alone, as engines do).
	Patterns
	// Exists is the rows that have a value of Field.
	Exists
)

// Node is one question of a filter. Nothing changes it after it was made; nodes may be shared.
type Node struct {
	Op       Op
	Children []*Node
	// Path is the nested path of Some.
	Path string
	// Field is what a clause is about.
	Field Field
	// Terms are the values of Terms as texts of the field's type, sorted and without doubles: for an integer type a decimal
	// integer that it can hold ("-7"), for a type of fractions the shortest text of the float64 that the field can hold
	// exactly ("0.5"), for a boolean "true" or "false", for an ip the canonical text (an IPv4 address is never in its
	// IPv6-mapped form), for anything else the text itself. Dates have no Terms: each is a Range.
	Terms []string
	// From and To bound a Range.
	From, To Bound
	// Patterns are in the notation of sqon.Pattern.
	Patterns []sqon.Pattern
	Fold     bool
}

// Bound is one end of a Range; the zero value is no bound.
type Bound struct {
	Set       bool
	Inclusive bool
	// Number is the decimal literal of a bound of a numeric type, which may be one that the type has no room for.
	Number string
	// Time is the bound of a date, in UTC.
	Time time.Time
}
