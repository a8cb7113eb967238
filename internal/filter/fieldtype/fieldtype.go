package fieldtype

import (
	"math"
)

// Type is a row of the table.
type Type struct {
	// Name is that of the engines' mappings.
	Name  string
	Group Group
	// Bits is the size of a number, 0 for other types.
	Bits uint8
	// End is the type of the ends of a Range.
	End string
	// Engines are those that have the type.
	Engines Engines
	// Texts is set for an Opaque type whose values are strings.
	Texts bool
	// Uncounted is set if the engine stores values for filters only, although those of the Group are also counted and sorted.
	Uncounted bool
	// Unindexed is set if a field has no values of its own in the index.
	Unindexed bool
	// Constant is set if all documents have the value that the mapping names.
	Constant bool
	// Faults are what versions of the Engines lack or do wrong.
	Faults []Fault
}

// Fault is what some versions of an engine do wrong with the values of a type.
type Fault struct {
	Kind   FaultKind
	Engine Engines
	// From is the first version that does, "" for all before Till with which tutti works; Till is the first that does not, "" for none yet.
	From, Till string
}

// FaultKind is the kind of a Fault, and what avoids it.
type FaultKind uint8

// Kinds of faults.
const (
	// Absent: the engine does not have the type.
	Absent FaultKind = iota
	// UnscoredSort: a sort of which a field of the type is the first key loses documents or fails, unless it requests scores.
	UnscoredSort
	// MisnamedFacet: a facet has the name of the index instead of the value.
	MisnamedFacet
	// Miscounted: facets and sorts are refused, fail or are wrong, whatever doc_values says. They are refused by the field's name.
	Miscounted
)

// Group groups the types with the same kind of values. Values of those from Exact on can be searched, those from Boolean on have the order
// of numbers.
type Group uint8

const (
	// Opaque values are stored, checked only by the engine, and returned in documents.
	Opaque Group = iota
	// Container is for objects with fields of their own.
	Container
	// Range values are intervals, which are found by a value within them.
	Range
	// Geo values are points and shapes.
	Geo
	// Exact is for texts that are compared as a whole.
	Exact
	// Flattened is for the texts in an object without fields of its own.
	Flattened
	// Analyzed texts are matched by the terms of an analyzer, and have no order.
	Analyzed
	// Address is for IP addresses.
	Address
	// Boolean is for true and false.
	Boolean
	// Integer is for integers with a sign.
	Integer
	// Unsigned is for integers without a sign.
	Unsigned
	// Float is for floating-point numbers.
	Float
	// Scaled is for numbers with a fraction that are stored as integers.
	Scaled
	// Millis is for dates stored in milliseconds.
	Millis
	// Nanos is for dates stored in nanoseconds.
	Nanos
)

// Engines is a set of engines.
type Engines uint8

// The engines.
const (
	Embedded Engines = 1 << iota
	Elasticsearch
	OpenSearch

	everywhere = Embedded | Elasticsearch | OpenSearch
)

// Kind is the kind of a value in JSON.
type Kind uint8

// Kinds of values. Those of Any depend on the field.
const (
	Any Kind = iota
	Text
	Number
	Bool
	Object
)

// rows are the rows of the table, slots their indices plus one by hash. They are never changed.
var rows, slots = func() ([]Type, [256]uint8) {
	rows := table()
	var slots [256]uint8
	for i, row := range rows {
		at := hash(row.Name)
		for slots[at] > 0 {
			at++
		}
		slots[at] = uint8(i + 1)
	}
	return rows, slots
}()

// unknown is the row of all types that the table lacks.
var unknown = &Type{}

// hash returns a number in which the names of the table differ, with few exceptions.
func hash(name string) uint8 {
	n := len(name)
	if n == 0 {
		return 0
	}
	return name[0]*20 + name[n-1]*46 + name[n/2]*55 + uint8(n)*63
}

// Of returns the row of a type, which must not be changed. The row of an unknown type has no name. It is called for each value of a document,
// and takes a fraction of the time of a map.
func Of[T ~string](name T) *Type {
	for at := hash(string(name)); slots[at] > 0; at++ {
		if row := &rows[slots[at]-1]; row.Name == string(name) {
			return row
		}
	}
	return unknown
}

// End returns the type of the ends of a type of ranges; any other type unchanged.
func End(name string) string {
	if end := Of(name).End; end != "" {
		return end
	}
	return name
}

// Names returns the names of the types for which a condition holds, in the order of the table.
func Names(condition func(*Type) bool) []string {
	var names []string
	for _, row := range rows {
		if condition(&row) {
			names = append(names, row.Name)
		}
	}
	return names
}

// Has reports whether all of some engines have the type.
func (t *Type) Has(engines Engines) bool { return t.Engines&engines == engines }

// Fault returns what versions of an engine do wrong, nil for nothing that is known.
func (t *Type) Fault(engine Engines, kind FaultKind) *Fault {
	for i := range t.Faults {
		if f := &t.Faults[i]; f.Engine == engine && f.Kind == kind {
			return f
		}
	}
	return nil
}

// Searchable reports whether documents can be found by a value.
func (t *Type) Searchable() bool { return t.Group >= Exact }

// Countable reports whether values can be counted, and documents sorted by them.
func (t *Type) Countable() bool { return t.Searchable() && !t.Analyzed() && !t.Uncounted }

// Analyzed reports whether values are matched by terms.
func (t *Type) Analyzed() bool { return t.Group == Analyzed }

// Keyed reports whether values are numbers, dates or booleans, which are stored with the order of numbers.
func (t *Type) Keyed() bool { return t.Group >= Boolean }

// Ordered reports whether values are numbers or dates, which have ranges and statistics.
func (t *Type) Ordered() bool { return t.Group >= Integer }

// Date reports whether values are instants.
func (t *Type) Date() bool { return t.Group >= Millis }

// Integral reports whether values are integers.
func (t *Type) Integral() bool { return t.Group == Integer || t.Group == Unsigned }

// Fractional reports whether values are numbers that may have a fraction.
func (t *Type) Fractional() bool { return t.Group == Float || t.Group == Scaled }

// Lenient reports whether engines read a number as Java reads a double, with white space and the suffix of a literal: all but the integers
// of 64 bits.
func (t *Type) Lenient() bool { return t.Fractional() || t.Integral() && t.Bits < 64 }

// JSON returns the kind of a value in a document.
func (t *Type) JSON() Kind {
	switch {
	case t.Group == Container, t.Group == Flattened:
		return Object
	case t.Group == Boolean:
		return Bool
	case t.Integral(), t.Fractional():
		return Number
	case t.Searchable(), t.Texts:
		return Text
	default:
		return Any
	}
}

// Integers returns the lowest and highest Integer of the type.
func (t *Type) Integers() (low, high int64) {
	if t.Group != Integer {
		return math.MinInt64, math.MaxInt64
	}
	return math.MinInt64 >> (64 - t.Bits), math.MaxInt64 >> (64 - t.Bits)
}

// Limits returns the lowest and highest number of the type, for integers the outermost floating-point numbers within their range.
func (t *Type) Limits() (low, high float64) {
	switch {
	case t.Group == Unsigned:
		return 0, math.Nextafter(1<<64, 0)
	case t.Group == Integer && t.Bits < 64:
		least, most := t.Integers()
		return float64(least), float64(most)
	case t.Group == Integer:
		return math.MinInt64, math.Nextafter(1<<63, 0)
	case t.Group == Float && t.Bits == 16:
		return -65504, 65504
	case t.Group == Float && t.Bits == 32:
		return -math.MaxFloat32, math.MaxFloat32
	default:
		return -math.MaxFloat64, math.MaxFloat64
	}
}

// Wider returns the number type with the values of two number types, "" when one is not a number.
func Wider[T ~string](a, b T) T {
	s, t := Of(a), Of(b)
	switch {
	case s.JSON() != Number || t.JSON() != Number:
		return ""
	case s.Group != t.Group || s.Group == Scaled: // the factors may differ
		return "double"
	case s.Bits > t.Bits:
		return a
	default:
		return b
	}
}
