package catalogue

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"tutti/internal/index/mapping"
	"tutti/internal/sqon"
)

// typeAlias is a field that stands for another one.
const typeAlias = "alias"

// field is what is known of one name.
type field struct {
	sqon.Field
	// path is where the values are in the mapping: that of the target for an alias.
	path string
	// mapped is what the mapping says of those values; nil for a runtime field.
	mapped *mapping.Field
}

// fieldSet is the fields of a mapping by their names. It is not changed after it was made.
type fieldSet struct {
	// names are in the mapping's order: parents before what is below them, siblings by name, runtime fields at the end.
	names  []string
	byName map[string]field
}

var (
	_ sqon.Fields = (*fieldSet)(nil)
	_ sqon.Names  = (*fieldSet)(nil)
)

// Field returns the field of a dotted name, false when there is none.
func (s *fieldSet) Field(name string) (sqon.Field, bool) {
	f, found := s.byName[name]
	return f.Field, found
}

// Names returns the names of all fields.
func (s *fieldSet) Names() iter.Seq[string] { return slices.Values(s.names) }

// fieldsOf returns every field of a mapping by its path, and what is odd about them.
func fieldsOf(tree *mapping.Field) (*fieldSet, []string) {
	s := &fieldSet{byName: make(map[string]field, tree.Size())}
	for path, f := range tree.All() {
		nested := s.above(path)
		if f.Type == mapping.Nested {
			nested = append(slices.Clip(nested), path)
		}
		s.add(path, f, nested)
	}
	warnings := s.resolve()
	return s, append(warnings, s.addRuntime(tree)...)
}

// add adds a field, unless one of that path is there: no engine has two, but what is read may say so.
func (s *fieldSet) add(path string, f *mapping.Field, nested []string) {
	if _, twice := s.byName[path]; twice {
		return
	}
	s.names = append(s.names, path)
	s.byName[path] = field{Field: sqon.Field{Type: string(f.Type), Nested: nested}, path: path, mapped: f}
}

// above returns the nested paths that a path is in, its own not counted.
func (s *fieldSet) above(path string) []string {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 {
		return nil
	}
	return s.byName[path[:dot]].Nested
}

// resolve puts the targets in the place of aliases. An alias that leads nowhere stays what it is: a type that nothing can be
// asked of. The engine lets an alias lead to values alone, and only to those of the same nested objects.
func (s *fieldSet) resolve() []string {
	var warnings []string
	resolved := map[string]field{}
	for _, name := range s.names {
		alias := s.byName[name]
		if alias.Type != typeAlias {
			continue
		}
		var path string
		_ = json.Unmarshal(alias.mapped.Params["path"], &path) // anything but a name leads nowhere
		target, found := s.byName[path]
		if !found || target.Type == typeAlias || target.mapped.Container() || !slices.Equal(target.Nested, alias.Nested) {
			warnings = append(warnings, fmt.Sprintf("the field %q is an alias of %q, which it cannot stand for", name, path))
			continue
		}
		resolved[name] = target
	}
	maps.Copy(s.byName, resolved)
	return warnings
}

// runtimeField is a field that the engine computes when it is asked; a composite one has others below it.
type runtimeField struct {
	Type   string                  `json:"type"`
	Fields map[string]runtimeField `json:"fields"`
}

// addRuntime adds the mapping's runtime fields. One of the name of a field with values takes its place, as it does in the
// engine. They are never nested.
func (s *fieldSet) addRuntime(tree *mapping.Field) []string {
	raw := tree.Params["runtime"]
	if raw == nil {
		return nil
	}
	var all map[string]runtimeField
	if err := json.Unmarshal(raw, &all); err != nil {
		return []string{"the runtime fields of the mapping are not understood and left out"}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s.shadow(name, all[name].Type)
		for _, sub := range slices.Sorted(maps.Keys(all[name].Fields)) {
			s.shadow(name+"."+sub, all[name].Fields[sub].Type)
		}
	}
	return nil
}

func (s *fieldSet) shadow(name, kind string) {
	old, known := s.byName[name]
	if kind == "" || name == "" || old.mapped != nil && old.mapped.Container() {
		return
	}
	if !known {
		s.names = append(s.names, name)
	}
	s.byName[name] = field{Field: sqon.Field{Type: kind}, path: name}
}

// below returns the fields below an object, without its path in their names and in those of their nested paths.
func (s *fieldSet) below(prefix string) *fieldSet {
	inside := &fieldSet{byName: map[string]field{}}
	prefix += "."
	for _, name := range s.names {
		clean, below := strings.CutPrefix(name, prefix)
		if !below {
			continue
		}
		f := s.byName[name]
		nested := make([]string, len(f.Nested))
		for i, path := range f.Nested {
			nested[i] = strings.TrimPrefix(path, prefix)
		}
		f.Nested = slices.Clip(nested)
		inside.names = append(inside.names, clean)
		inside.byName[clean] = f
	}
	return inside
}
