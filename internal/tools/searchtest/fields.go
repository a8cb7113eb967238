package searchtest

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index/mapping"
)

var (
	_ query.Fields = (*fieldSet)(nil)
	_ sqon.Names   = (*fieldSet)(nil)
)

// fieldSet is the fields of a mapping by name; names are paths, except for aliases.
type fieldSet struct {
	tree   *mapping.Field
	names  []string
	byName map[string]namedField
}

// namedField is the field of a name, for an alias that of its target.
type namedField struct {
	query.Field
	mapped *mapping.Field
}

// fieldsOf returns the fields of a mapping.
func fieldsOf(tree *mapping.Field) *fieldSet {
	s := &fieldSet{tree: tree, byName: map[string]namedField{}}
	for path, f := range tree.All() {
		var nested []string
		if dot := strings.LastIndexByte(path, '.'); dot >= 0 {
			nested = s.byName[path[:dot]].Nested
		}
		if f.Type == mapping.Nested {
			nested = append(slices.Clip(nested), path)
		}
		s.names = append(s.names, path)
		s.byName[path] = namedField{Field: query.Field{Path: path, Type: string(f.Type), Nested: nested, Scale: scaleOf(f)}, mapped: f}
	}
	for _, name := range s.names {
		if f := s.byName[name]; f.Type == "alias" {
			s.byName[name] = s.byName[text(f.mapped.Params["path"])]
		}
	}
	return s
}

// text returns a parameter that is a string.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // "" for other types
	return s
}

// scaleOf returns the scaling factor of a scaled_float.
func scaleOf(f *mapping.Field) float64 {
	var factor float64
	_ = json.Unmarshal(f.Params["scaling_factor"], &factor) // 0 for other types
	return factor
}

// Field implements sqon.Fields.
func (s *fieldSet) Field(name string) (sqon.Field, bool) {
	f, ok := s.byName[name]
	return sqon.Field{Type: f.Type, Nested: f.Nested}, ok
}

// Names implements sqon.Names.
func (s *fieldSet) Names() iter.Seq[string] { return slices.Values(s.names) }

// Lookup implements query.Fields.
func (s *fieldSet) Lookup(name string) (query.Field, bool) {
	f, ok := s.byName[name]
	if !ok || f.mapped.Container() {
		return query.Field{}, false
	}
	return f.Field, true
}

// NestedPath implements query.Fields.
func (s *fieldSet) NestedPath(name string) (string, bool) {
	f, ok := s.byName[name]
	return f.Path, ok && f.mapped.Type == mapping.Nested
}

// Leaves implements query.Fields.
func (s *fieldSet) Leaves(name string) []query.Field {
	var leaves []query.Field
	for _, below := range s.names {
		if f, ok := s.Lookup(below); ok && strings.HasPrefix(f.Path, name+".") && f.Path == below {
			leaves = append(leaves, f)
		}
	}
	return leaves
}

// leaves returns the names of all fields with values, aliases included.
func (s *fieldSet) leaves() []string {
	return slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return s.byName[name].mapped.Container() })
}

// containers returns the names of all objects and nested fields.
func (s *fieldSet) containers() []string {
	return slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return !s.byName[name].mapped.Container() })
}

// pivots returns the nested paths.
func (s *fieldSet) pivots() []string {
	return slices.DeleteFunc(s.containers(), func(name string) bool { return s.byName[name].mapped.Type != mapping.Nested })
}
