package document

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/index/mapping"
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
func Derive(known *mapping.Field, types *mapping.Types, doc []byte) (*mapping.Field, error) {
	_, added, err := Grow(known, types, doc)
	return added, err
}

// Grow derives as Derive does, and returns both the added fields and the whole tree that accepts doc, which is known itself when
// nothing is added.
func Grow(known *mapping.Field, types *mapping.Types, doc []byte) (grown, added *mapping.Field, err error) {
	var c Checker
	unknown, err := c.Check(known, doc, nil)
	if err != nil || !unknown {
		return known, nil, err
	}
	properties, _, err := derive(known, types, doc)
	if err != nil || len(properties) == 0 {
		return known, nil, err
	}
	added = &mapping.Field{Type: mapping.Object, Properties: properties}
	if known.RecordedNewFields() == mapping.NewFieldsReject {
		return known, nil, &ParsingError{Type: core.TypeNewField, Reason: "[" + newField(known, added) + "] is a field that the mapping does not have"}
	}
	grown, err = mapping.Merge(known, added)
	if err != nil {
		return known, nil, &ParsingError{Type: core.TypeParsing, Reason: err.Error()}
	}
	if _, err = c.Check(grown, doc, nil); err != nil {
		return known, nil, err
	}
	return grown, added, nil
}

// newField returns the path of the topmost of the first added fields that known lacks.
func newField(known, added *mapping.Field) string {
	for path := range added.All() {
		if known.Lookup(path) == nil {
			return path
		}
	}
	return ""
}

// Empties returns the dotted paths, sorted, that known lacks and that have no value anywhere in doc: only null, [] and {}, at any
// depth. Searches find the same without them (see Remove). The error is as Derive's.
func Empties(known *mapping.Field, doc []byte) ([]string, error) {
	var c Checker
	if _, err := c.Check(known, doc, nil); err != nil {
		return nil, err
	}
	_, empties, err := derive(known, nil, doc)
	slices.Sort(empties)
	return empties, err
}

// derive reads a document whose syntax Check has verified.
func derive(known *mapping.Field, types *mapping.Types, doc []byte) (properties map[string]*mapping.Field, empties []string, err error) {
	w := deriver{
		scan: scanner{doc: doc}, types: known.DecidedTypes(types), unguessed: known.UsesDeclared(),
		tabular: known.Lookup("systemId") != nil && known.Lookup("entityName") != nil,
	}
	var root observed
	w.value(known, inherit(known, mapping.DynamicTrue), &root, false)
	properties = root.properties("", &w)
	return properties, w.empties, w.err()
}

// maxFieldDepth is the maximum depth of a derived field. Engines have lower limits (Elasticsearch's default is 20); this one bounds
// the cost of a name with many dots.
const maxFieldDepth = 100

// observed is what a document has at one path: the type of its scalars, "" for none, whether there are objects, and whether some are elements
// of an array. known is the mapping's field there, if any.
type observed struct {
	scalars          mapping.Type
	object, elements bool
	known            *mapping.Field
	children         map[string]*observed
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
	if s.scalars != "" || name == mapping.ReservedInfo && s.object && !s.elements {
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
	types func(path string) (t mapping.Type, counted bool)
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
func (w *deriver) value(f *mapping.Field, dynamic string, s *observed, element bool) bool {
	s.known = f
	if f != nil && (!f.Container() || f.Disabled()) {
		return w.scan.skip()
	}
	switch c := w.scan.peek(); c {
	case '{':
		s.object, s.elements = true, s.elements || element
		if f != nil {
			dynamic = inherit(f, dynamic)
		}
		return w.scan.object(func(name []byte) bool { return w.member(f, dynamic, s, name) })
	case '[':
		return w.scan.array(func() bool { return w.value(f, dynamic, s, true) })
	default:
		kind, raw, ok := w.scan.scalar(c)
		s.scalars = mapping.Wider(s.scalars, typeOf(kind, raw))
		return ok
	}
}

// member reads the value of a member of s, whose name may contain dots.
func (w *deriver) member(f *mapping.Field, dynamic string, s *observed, name []byte) bool {
	for {
		first, rest, dotted := bytes.Cut(name, []byte{'.'})
		var next *mapping.Field
		if f != nil {
			next = f.Properties[string(first)]
			if next == nil && (dynamic == mapping.DynamicFalse || dynamic == mapping.DynamicRuntime) {
				return w.scan.skip()
			}
		}
		s = s.child(first)
		if !dotted {
			return w.value(next, dynamic, s, false)
		}
		s.known, s.object = next, true
		if f, name = next, rest; f != nil {
			dynamic = inherit(f, dynamic)
		}
	}
}

// properties returns the fields below s that the mapping lacks, and records the paths without values. prefix is the path of s with a dot.
func (s *observed) properties(prefix string, w *deriver) map[string]*mapping.Field {
	var out map[string]*mapping.Field
	for _, name := range slices.Sorted(maps.Keys(s.children)) {
		child := s.children[name]
		f := child.field(prefix+name, name, w)
		if f == nil {
			continue
		}
		if out == nil {
			out = map[string]*mapping.Field{}
		}
		out[name] = f
	}
	return out
}

func (s *observed) field(path, name string, w *deriver) *mapping.Field {
	if s.known != nil {
		if !s.known.Container() {
			return nil
		}
		properties := s.properties(path+".", w)
		if len(properties) == 0 {
			return nil
		}
		return &mapping.Field{Type: s.known.Type, Properties: properties}
	}
	if !s.valued(name) {
		w.empties = append(w.empties, path)
		return nil
	}
	if strings.TrimSpace(name) == "" {
		w.reject(core.TypeParsing, path, "field name cannot contain only whitespace or an empty segment")
		return nil
	}
	if strings.Count(path, ".") >= maxFieldDepth {
		w.reject(core.TypeIllegalArgument, path, "is deeper than any mapping")
		return nil
	}
	if !s.object {
		return w.scalar(path, s.scalars)
	}
	if s.scalars != "" {
		w.reject(core.TypeParsing, path, "contains both objects and concrete values")
		return nil
	}
	if name == mapping.ReservedInfo {
		return mapping.NewLeaf(mapping.Flattened)
	}
	f := &mapping.Field{Type: mapping.Object, Properties: s.properties(path+".", w)}
	if decided, _ := w.types(path); s.elements || decided == mapping.Nested {
		f.Type = mapping.Nested
	}
	return f
}

// scalar returns the field of the scalars at a path, whose type is t unless another one is decided.
func (w *deriver) scalar(path string, t mapping.Type) *mapping.Field {
	decided, counted := w.types(path)
	undeclared := w.unguessed
	switch {
	case decided != "" && decided != mapping.Object && decided != mapping.Nested && decided != mapping.Flattened:
		t, undeclared = decided, counted
	case t == mapping.Long && (w.unguessed || w.tabular && strings.HasPrefix(path, "data.")):
		t = mapping.Double
	case t == mapping.Date && w.unguessed:
		t = mapping.Keyword
	}
	if t == mapping.Double && undeclared {
		return mapping.NewUndeclared()
	}
	return mapping.NewLeaf(t)
}

// typeOf returns the narrowest type of a scalar, "" for null.
func typeOf(kind Kind, raw []byte) mapping.Type {
	switch kind {
	case KindString:
		if IsDay(jsontext.Unescape(raw)) {
			return mapping.Date
		}
		return mapping.Keyword
	case KindBoolean:
		return mapping.Boolean
	case KindNull:
		return ""
	default:
		if !bytes.ContainsAny(raw, ".eE") && isInteger(KindNumber, raw, fieldtype.Of(mapping.Long)) {
			return mapping.Long
		}
		return mapping.Double
	}
}
