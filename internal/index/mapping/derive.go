package mapping

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Derive returns the fields that doc has and known lacks, as a tree to merge into known; nil when there are none. The
// rules: an array of objects is nested and an object is object, but flattened under the name info; a string is
// keyword, or date where it is an ISO 8601 date; an integer is long (double in the data of tabular records, whose
// dictionaries know numbers alone), another number double; true and false are
// boolean. Scalars of different kinds at one path widen, integers and fractions to double, all others to keyword.
// Null, [] and {} say nothing of a type and give no field (see Empties), but for an object named info.
//
// The error is a *ParsingError when the document can be written under no mapping that keeps known: then nothing may be
// added for it.
func Derive(known *Field, doc []byte) (*Field, error) {
	_, added, err := Grow(known, doc)
	return added, err
}

// Grow derives as Derive does and gives, beside the added fields, the whole tree that takes doc; known itself when
// nothing is added.
func Grow(known *Field, doc []byte) (grown, added *Field, err error) {
	var c Checker
	unknown, err := c.Check(known, doc, nil)
	if err != nil || !unknown {
		return known, nil, err
	}
	properties, _, err := derive(known, doc)
	if err != nil || len(properties) == 0 {
		return known, nil, err
	}
	added = &Field{Type: Object, Properties: properties}
	grown, err = Merge(known, added)
	if err != nil {
		return known, nil, &ParsingError{Type: TypeParsing, Reason: err.Error()}
	}
	if _, err = c.Check(grown, doc, nil); err != nil {
		return known, nil, err
	}
	return grown, added, nil
}

// Empties returns the dotted paths, sorted, that known lacks and that hold no value anywhere in doc: only null, [] and
// {}, at any depth. A document searches the same without them (Remove). The error is as Derive's.
func Empties(known *Field, doc []byte) ([]string, error) {
	var c Checker
	if _, err := c.Check(known, doc, nil); err != nil {
		return nil, err
	}
	_, empties, err := derive(known, doc)
	slices.Sort(empties)
	return empties, err
}

// derive looks at a document that Check has read: its syntax is right.
func derive(known *Field, doc []byte) (properties map[string]*Field, empties []string, err error) {
	w := shaper{scan: scanner{doc: doc}, tabular: known.Lookup("systemId") != nil && known.Lookup("entityName") != nil}
	var root shape
	w.value(known, inherit(known, DynamicTrue), &root, false)
	properties = root.properties("", &w)
	return properties, w.empties, w.err()
}

// maxFieldDepth is how deep a derived field may lie. An engine's own limit is lower (Elasticsearch's default is 20);
// this one keeps a name of many dots from costing more than its length.
const maxFieldDepth = 100

// kinds is the set of what was seen at one path.
type kinds uint8

const (
	kindLong kinds = 1 << iota
	kindDouble
	kindBoolean
	kindDate
	kindText
	kindObject
	kindElements
)

const scalarKinds = kindLong | kindDouble | kindBoolean | kindDate | kindText

// shape is what a document shows at one path. known is the mapping's own container there, if it has one.
type shape struct {
	kinds    kinds
	known    *Field
	children map[string]*shape
}

func (s *shape) child(name []byte) *shape {
	c := s.children[string(name)]
	if c == nil {
		c = &shape{}
		if s.children == nil {
			s.children = map[string]*shape{}
		}
		s.children[string(name)] = c
	}
	return c
}

// valued reports whether the type of anything at or below the path is known: of more than null, [] and {}, and of an
// object named info, be it empty.
func (s *shape) valued(name string) bool {
	if s.kinds&scalarKinds != 0 || name == ReservedInfo && s.kinds&(kindObject|kindElements) == kindObject {
		return true
	}
	for name, child := range s.children {
		if child.valued(name) {
			return true
		}
	}
	return false
}

// shaper collects the shapes of the paths that the mapping lacks.
type shaper struct {
	scan scanner
	// tabular: below data, numbers are double whatever the first of them looks like, since a dictionary's number is sent
	// without a fraction where it has none.
	tabular bool
	empties []string
	fault   *ParsingError
}

func (w *shaper) err() error {
	if w.fault == nil {
		return nil
	}
	return w.fault
}

func (w *shaper) reject(kind, path, reason string) {
	if w.fault == nil {
		w.fault = &ParsingError{Type: kind, Reason: "[" + path + "] " + reason}
	}
}

// value reads one value at s. f is the mapping's field there, nil when it has none.
func (w *shaper) value(f *Field, dynamic string, s *shape, element bool) {
	s.known = f
	if f != nil && (!f.Container() || f.disabled()) {
		w.scan.skip()
		return
	}
	switch w.scan.peek() {
	case '{':
		s.kinds |= kindObject
		if element {
			s.kinds |= kindElements
		}
		if f != nil {
			dynamic = inherit(f, dynamic)
		}
		w.scan.members(func(name []byte) { w.member(f, dynamic, s, name) })
	case '[':
		w.scan.elements(func() { w.value(f, dynamic, s, true) })
	default:
		s.kinds |= w.scan.scalarKind()
	}
}

// member reads the value of s's member of that name, which may hold dots.
func (w *shaper) member(f *Field, dynamic string, s *shape, name []byte) {
	for {
		first, rest, dotted := bytes.Cut(name, []byte{'.'})
		var next *Field
		if f != nil {
			next = f.Properties[string(first)]
			if next == nil && (dynamic == DynamicFalse || dynamic == DynamicRuntime) {
				w.scan.skip()
				return
			}
		}
		s = s.child(first)
		if !dotted {
			w.value(next, dynamic, s, false)
			return
		}
		s.known, s.kinds = next, s.kinds|kindObject
		if f, name = next, rest; f != nil {
			dynamic = inherit(f, dynamic)
		}
	}
}

// properties returns the fields below s that the mapping lacks, and notes the paths that hold no value.
func (s *shape) properties(path string, w *shaper) map[string]*Field {
	var out map[string]*Field
	for _, name := range slices.Sorted(maps.Keys(s.children)) {
		child := s.children[name]
		f := child.field(join(path, name), name, w)
		if f == nil {
			continue
		}
		if out == nil {
			out = map[string]*Field{}
		}
		out[name] = f
	}
	return out
}

func (s *shape) field(path, name string, w *shaper) *Field {
	if s.known != nil {
		if !s.known.Container() {
			return nil
		}
		properties := s.properties(path, w)
		if len(properties) == 0 {
			return nil
		}
		return &Field{Type: s.known.Type, Properties: properties}
	}
	if !s.valued(name) {
		w.empties = append(w.empties, path)
		return nil
	}
	if strings.TrimSpace(name) == "" {
		w.reject(TypeParsing, path, "field name cannot contain only whitespace or an empty segment")
		return nil
	}
	if strings.Count(path, ".") >= maxFieldDepth {
		w.reject(TypeIllegalArgument, path, "is deeper than any mapping")
		return nil
	}
	if s.kinds&kindObject == 0 {
		return leaf(w.scalar(path, s.kinds))
	}
	if s.kinds&scalarKinds != 0 {
		w.reject(TypeParsing, path, "holds both objects and concrete values")
		return nil
	}
	if name == ReservedInfo {
		return leaf(Flattened)
	}
	f := &Field{Type: Object, Properties: s.properties(path, w)}
	if s.kinds&kindElements != 0 {
		f.Type = Nested
	}
	return f
}

func (w *shaper) scalar(path string, k kinds) Type {
	t := k.scalar()
	if t == Long && w.tabular && strings.HasPrefix(path, "data.") {
		return Double
	}
	return t
}

// scalar returns the narrowest type that takes all kinds of scalars in k.
func (k kinds) scalar() Type {
	switch k & scalarKinds {
	case kindLong:
		return Long
	case kindDouble, kindLong | kindDouble:
		return Double
	case kindBoolean:
		return Boolean
	case kindDate:
		return Date
	default:
		return Keyword
	}
}

// isoDay is the length of yyyy-MM-dd, the least that a string must be to be taken for a date.
const isoDay = 10

// scalarKind reads one scalar.
func (s *scanner) scalarKind() kinds {
	switch s.peek() {
	case '"':
		raw, escaped, _ := s.str()
		if escaped {
			raw = Unquote(nil, raw)
		}
		if isISODate(raw, isoDay) {
			return kindDate
		}
		return kindText
	case 't':
		s.word("true")
		return kindBoolean
	case 'f':
		s.word("false")
		return kindBoolean
	case 'n':
		s.word("null")
		return 0
	default:
		raw, integer, _ := s.number()
		if integer && isInteger(KindNumber, raw, Long) {
			return kindLong
		}
		return kindDouble
	}
}
