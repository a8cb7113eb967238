package view

import (
	"encoding/json"
	"strings"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index/mapping"
	"tutti/internal/search/catalogue"
)

var (
	_ query.Fields = fields{}
	_ sqon.Names   = fields{}
)

// fields returns the fields of a model as engines know them, by client names or by mapping names.
type fields struct {
	catalogue.Fields
	model *catalogue.Model
	path  func(name string) (string, bool)
	// id adds IDField, unless a field has that name.
	id bool
}

// clientFields returns the fields by the names that clients use.
func clientFields(m *catalogue.Model) fields {
	return fields{Fields: m, model: m, path: m.Path, id: true}
}

// mappingFields returns the fields by the mapping's own names, which access rules use.
func mappingFields(m *catalogue.Model) fields {
	return fields{Fields: m.MappingFields(), model: m, path: m.MappingPath}
}

// IDField is the name of the document ID in filters and sort keys.
const IDField = "_id"

// Field implements sqon.Fields.
func (s fields) Field(name string) (sqon.Field, bool) {
	f, ok := s.Fields.Field(name)
	if !ok && s.id && name == IDField {
		return sqon.Field{Type: string(mapping.Keyword)}, true
	}
	return f, ok
}

// Lookup implements query.Fields.
func (s fields) Lookup(name string) (query.Field, bool) {
	f, ok := s.Field(name)
	path, known := s.path(name)
	switch {
	case !ok || fieldtype.Of(f.Type).Group == fieldtype.Container:
		return query.Field{}, false
	case !known: // IDField
		return query.Field{Path: query.IDPath, Type: f.Type}, true
	}
	out := query.Field{Path: path, Type: f.Type, Nested: s.nested(f.Nested), Format: f.Format}
	mapped := s.model.Mapping().Lookup(path)
	switch {
	case fieldtype.Of(f.Type).Group == fieldtype.Scaled:
		out.Scale = scale(mapped)
	case fieldtype.Of(f.Type).Constant && mapped != nil:
		_ = json.Unmarshal(mapped.Params["value"], &out.Constant) // it may have none before the first document
	}
	return out, true
}

// NestedPath implements query.Fields.
func (s fields) NestedPath(name string) (string, bool) {
	f, ok := s.Field(name)
	if !ok || f.Type != string(mapping.Nested) {
		return "", false
	}
	return s.path(name)
}

// Leaves implements query.Fields.
func (s fields) Leaves(name string) []query.Field {
	above, ok := s.path(name)
	if !ok {
		return nil
	}
	var leaves []query.Field
	for below := range s.Names() {
		if !strings.HasPrefix(below, name+".") {
			continue
		}
		if f, ok := s.Lookup(below); ok && strings.HasPrefix(f.Path, above+".") { // an alias may lead out of it
			leaves = append(leaves, f)
		}
	}
	return leaves
}

// nested returns the engine's paths of nested containers. Those above a nesting prefix have no other name.
func (s fields) nested(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	paths := make([]string, len(names))
	for i, name := range names {
		path, ok := s.path(name)
		if !ok {
			path = name
		}
		paths[i] = path
	}
	return paths
}

// scale returns the scaling factor of a scaled_float, 1 if the mapping has no valid one.
func scale(f *mapping.Field) float64 {
	factor := 0.0
	if f != nil {
		_ = json.Unmarshal(f.Params["scaling_factor"], &factor) // a string is not a factor
	}
	if factor <= 0 {
		return 1
	}
	return factor
}
