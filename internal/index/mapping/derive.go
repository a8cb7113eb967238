package mapping

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
)

// Derive returns the fields that doc has and known lacks, as a tree to merge into known; nil when there are none. The rules: an
// array of objects is nested and an object is object, but flattened under the name info; a string is keyword, or date when it is an
// ISO 8601 date; an integer is long (double in the data of tabular records, whose dictionaries have only one type of number),
// another number double; true and false are boolean. Scalars of different types at one path widen, integers and other numbers to
// double, all others to keyword. Null, [] and {} do not determine a type and add no field (see Empties), except for an object named
// info.
//
// What types decides for the path of a scalar comes first, whatever the value. If known says so (see UsesDeclared), any other number is
// double, and any other string keyword, so that the first value does not decide.
//
// The error is a *ParsingError when the document fits no mapping that contains known, or known records NewFieldsReject: then nothing must
// be added for it.
func Derive(known *Field, types *Types, doc []byte) (*Field, error) {
	_, added, err := Grow(known, types, doc)
	return added, err
}

// Grow derives as Derive does, and returns both the added fields and the whole tree that accepts doc, which is known itself when
// nothing is added.
func Grow(known *Field, types *Types, doc []byte) (grown, added *Field, err error) {
	var c Checker
	unknown, err := c.Check(known, doc, nil)
	if err != nil || !unknown {
		return known, nil, err
	}
	properties, _, err := derive(known, types, doc)
	if err != nil || len(properties) == 0 {
		return known, nil, err
	}
	added = &Field{Type: Object, Properties: properties}
	if known.RecordedNewFields() == NewFieldsReject {
		return known, nil, &ParsingError{Type: core.TypeNewField, Reason: "[" + newField(known, added) + "] is a field that the mapping does not have"}
	}
	grown, err = Merge(known, added)
	if err != nil {
		return known, nil, &ParsingError{Type: TypeParsing, Reason: err.Error()}
	}
	if _, err = c.Check(grown, doc, nil); err != nil {
		return known, nil, err
	}
	return grown, added, nil
}

// newField returns the path of the topmost of the first added fields that known lacks.
func newField(known, added *Field) string {
	for path := range added.All() {
		if known.Lookup(path) == nil {
			return path
		}
	}
	return ""
}

// Empties returns the dotted paths, sorted, that known lacks and that have no value anywhere in doc: only null, [] and {}, at any
// depth. Searches find the same without them (see Remove). The error is as Derive's.
func Empties(known *Field, doc []byte) ([]string, error) {
	var c Checker
	if _, err := c.Check(known, doc, nil); err != nil {
		return nil, err
	}
	_, empties, err := derive(known, nil, doc)
	slices.Sort(empties)
	return empties, err
}

// derive reads a document whose syntax Check has verified.
func derive(known *Field, types *Types, doc []byte) (properties map[string]*Field, empties []string, err error) {
	w := deriver{
		scan: scanner{doc: doc}, types: newDecidedTypes(known, types), unguessed: known.UsesDeclared(),
		tabular: known.Lookup("systemId") != nil && known.Lookup("entityName") != nil,
	}
	var root observed
	w.value(known, inherit(known, DynamicTrue), &root, false)
	properties = root.properties("", &w)
	return properties, w.empties, w.err()
}

// maxFieldDepth is the maximum depth of a derived field. Engines have lower limits (Elasticsearch's default is 20); this one bounds
// the cost of a name with many dots.
const maxFieldDepth = 100

// kinds is the set of the JSON types observed at one path.
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

// observed is what a document has at one path. known is the mapping's field there, if any.
type observed struct {
	kinds    kinds
	known    *Field
	children map[string]*observed
}

func (s *observed) child(name []byte) *observed {
	c := s.children[string(name)]
	if c == nil {
		c = &observed{}
		if s.children == nil {
			s.children = map[string]*observed{}
		}
		s.children[string(name)] = c
	}
	return c
}

// valued reports whether a type can be derived at or below the path: there is more than null, [] and {}, or an object named info.
func (s *observed) valued(name string) bool {
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

// deriver collects the observations at the paths that the mapping lacks.
type deriver struct {
	scan  scanner
	types decidedTypes
	// unguessed is set if the form of a value does not decide its type (UsesDeclared).
	unguessed bool
	// tabular is set for tabular records: below data, all numbers are double, because whole numbers are sent without a fraction.
	tabular  bool
	empties  []string
	parseErr *ParsingError
}

func (w *deriver) err() error {
	if w.parseErr == nil {
		return nil
	}
	return w.parseErr
}

func (w *deriver) reject(kind, path, reason string) {
	if w.parseErr == nil {
		w.parseErr = &ParsingError{Type: kind, Reason: "[" + path + "] " + reason}
	}
}

// value reads one value at s. f is the mapping's field there, nil when it has none.
func (w *deriver) value(f *Field, dynamic string, s *observed, element bool) bool {
	s.known = f
	if f != nil && (!f.Container() || f.Disabled()) {
		return w.scan.skip()
	}
	switch c := w.scan.peek(); c {
	case '{':
		s.kinds |= kindObject
		if element {
			s.kinds |= kindElements
		}
		if f != nil {
			dynamic = inherit(f, dynamic)
		}
		return w.scan.object(func(name []byte) bool { return w.member(f, dynamic, s, name) })
	case '[':
		return w.scan.array(func() bool { return w.value(f, dynamic, s, true) })
	default:
		kind, raw, ok := w.scan.scalar(c)
		s.kinds |= kindsOf(kind, raw)
		return ok
	}
}

// member reads the value of a member of s, whose name may contain dots.
func (w *deriver) member(f *Field, dynamic string, s *observed, name []byte) bool {
	for {
		first, rest, dotted := bytes.Cut(name, []byte{'.'})
		var next *Field
		if f != nil {
			next = f.Properties[string(first)]
			if next == nil && (dynamic == DynamicFalse || dynamic == DynamicRuntime) {
				return w.scan.skip()
			}
		}
		s = s.child(first)
		if !dotted {
			return w.value(next, dynamic, s, false)
		}
		s.known, s.kinds = next, s.kinds|kindObject
		if f, name = next, rest; f != nil {
			dynamic = inherit(f, dynamic)
		}
	}
}

// properties returns the fields below s that the mapping lacks, and records the paths without values.
func (s *observed) properties(path string, w *deriver) map[string]*Field {
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

func (s *observed) field(path, name string, w *deriver) *Field {
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
		return w.scalar(path, s.kinds)
	}
	if s.kinds&scalarKinds != 0 {
		w.reject(TypeParsing, path, "contains both objects and concrete values")
		return nil
	}
	if name == ReservedInfo {
		return leaf(Flattened)
	}
	f := &Field{Type: Object, Properties: s.properties(path, w)}
	if decided, _ := w.types.of(path); s.kinds&kindElements != 0 || decided == Nested {
		f.Type = Nested
	}
	return f
}

// scalar returns the field of the scalars at a path.
func (w *deriver) scalar(path string, k kinds) *Field {
	t := k.scalar()
	decided, counted := w.types.of(path)
	f := leaf(decided)
	if decided != "" && !f.Container() && decided != Flattened {
		if decided == Double && counted {
			f.markUndeclared(kindNumber)
		}
		return f
	}
	switch {
	case t == Long && w.tabular && strings.HasPrefix(path, "data."):
		t = Double
	case t == Long && w.unguessed:
		t = Double
	case t == Date && w.unguessed:
		t = Keyword
	}
	f = leaf(t)
	if t == Double && w.unguessed {
		f.markUndeclared(kindNumber)
	}
	return f
}

// scalar returns the narrowest type that accepts all scalars in k.
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

// kindsOf returns the kind of a scalar, none for null.
func kindsOf(kind Kind, raw []byte) kinds {
	switch kind {
	case KindString:
		if IsDay(jsontext.Unescape(raw)) {
			return kindDate
		}
		return kindText
	case KindBoolean:
		return kindBoolean
	case KindNull:
		return 0
	default:
		if !bytes.ContainsAny(raw, ".eE") && isInteger(KindNumber, raw, fieldtype.Of(Long)) {
			return kindLong
		}
		return kindDouble
	}
}
