package model

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
	_ query.Fields = (*FieldSet)(nil)
	_ sqon.Names   = (*FieldSet)(nil)
)

// FieldSet is the fields of a mapping by name; names are paths, except for aliases.
type FieldSet struct {
	Tree   *mapping.Field
	Listed []string
	ByName map[string]NamedField
}

// NamedField is the field of a name, for an alias that of its target.
type NamedField struct {
	query.Field
	Mapped *mapping.Field
}

// FieldsOf returns the fields of a mapping.
func FieldsOf(tree *mapping.Field) *FieldSet {
	s := &FieldSet{Tree: tree, ByName: map[string]NamedField{}}
	for path, f := range tree.All() {
		var nested []string
		if dot := strings.LastIndexByte(path, '.'); dot >= 0 {
			nested = s.ByName[path[:dot]].Nested
		}
		if f.Type == mapping.Nested {
			nested = append(slices.Clip(nested), path)
		}
		s.Listed = append(s.Listed, path)
		s.ByName[path] = NamedField{Field: query.Field{
			Path: path, Type: string(f.Type), Nested: nested, Scale: scaleOf(f), Format: f.DateFormat(), Constant: constantOf(f),
		}, Mapped: f}
	}
	for _, name := range s.Listed {
		if f := s.ByName[name]; f.Type == "alias" {
			s.ByName[name] = s.ByName[text(f.Mapped.Params["path"])]
		}
	}
	return s
}

// Lowercased reports whether the field at a path has the normalizer lowercase.
func (s *FieldSet) Lowercased(path string) bool {
	f := s.ByName[path].Mapped
	return f != nil && text(f.Params["normalizer"]) == "lowercase"
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

// constantOf returns the value of a constant_keyword, "" for other types.
func constantOf(f *mapping.Field) string {
	if f.Type != "constant_keyword" {
		return ""
	}
	return text(f.Params["value"])
}

// Field implements sqon.Fields.
func (s *FieldSet) Field(name string) (sqon.Field, bool) {
	f, ok := s.ByName[name]
	return sqon.Field{Type: f.Type, Nested: f.Nested, Format: f.Format}, ok
}

// Names implements sqon.Names.
func (s *FieldSet) Names() iter.Seq[string] { return slices.Values(s.Listed) }

// Lookup implements query.Fields.
func (s *FieldSet) Lookup(name string) (query.Field, bool) {
	f, ok := s.ByName[name]
	if !ok || f.Mapped.Container() {
		return query.Field{}, false
	}
	return f.Field, true
}

// NestedPath implements query.Fields.
func (s *FieldSet) NestedPath(name string) (string, bool) {
	f, ok := s.ByName[name]
	return f.Path, ok && f.Mapped.Type == mapping.Nested
}

// Leaves implements query.Fields.
func (s *FieldSet) Leaves(name string) []query.Field {
	var leaves []query.Field
	for _, below := range s.Listed {
		if f, ok := s.Lookup(below); ok && strings.HasPrefix(f.Path, name+".") && f.Path == below {
			leaves = append(leaves, f)
		}
	}
	return leaves
}

// WithValues returns the names of all fields with values, aliases included.
func (s *FieldSet) WithValues() []string {
	return slices.DeleteFunc(slices.Clone(s.Listed), func(name string) bool { return s.ByName[name].Mapped.Container() })
}

// Containers returns the names of all objects and nested fields.
func (s *FieldSet) Containers() []string {
	return slices.DeleteFunc(slices.Clone(s.Listed), func(name string) bool { return !s.ByName[name].Mapped.Container() })
}

// Pivots returns the nested paths.
func (s *FieldSet) Pivots() []string {
	return slices.DeleteFunc(s.Containers(), func(name string) bool { return s.ByName[name].Mapped.Type != mapping.Nested })
}

// ParentOf returns the path of the field above the one at path, "" at the top.
func ParentOf(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}
