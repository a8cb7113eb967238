package catalogue

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"tutti/internal/filter/sqon"
	"tutti/internal/index/mapping"
)

// typeAlias is the type of a field that refers to another one.
const typeAlias = "alias"

// field is the metadata of one name.
type field struct {
	sqon.Field
	// path is the path of the values in the mapping; for an alias, the path of its target.
	path string
	// mapped is the mapping of the values; nil for a runtime field.
	mapped *mapping.Field
}

// fieldSet is the fields of a mapping by name. It is immutable once built.
type fieldSet struct {
	// names are in the mapping's order: parents before children, siblings by name, runtime fields last.
	names  []string
	byName map[string]field
}

var (
	_ sqon.Fields = (*fieldSet)(nil)
	_ sqon.Names  = (*fieldSet)(nil)
)

// Field returns the field of a dotted name, false if there is none.
func (s *fieldSet) Field(name string) (sqon.Field, bool) {
	f, found := s.byName[name]
	return f.Field, found
}

// Names returns the names of all fields.
func (s *fieldSet) Names() iter.Seq[string] { return slices.Values(s.names) }

// fieldsOf returns all fields of a mapping by path, and warnings about them.
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

// add adds a field, unless there is one with that path: no engine has duplicates, but the response may.
func (s *fieldSet) add(path string, f *mapping.Field, nested []string) {
	if _, twice := s.byName[path]; twice {
		return
	}
	s.names = append(s.names, path)
	s.byName[path] = field{Field: sqon.Field{Type: string(f.Type), Nested: nested}, path: path, mapped: f}
}

// above returns the nested paths that contain a path, except the path itself.
func (s *fieldSet) above(path string) []string {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 {
		return nil
	}
	return s.byName[path[:dot]].Nested
}

// resolve replaces aliases by their targets. An alias without a valid target keeps its type, which supports no queries. The
// engine allows as targets only fields with values, in the same nested objects.
func (s *fieldSet) resolve() []string {
	var warnings []string
	resolved := map[string]field{}
	for _, name := range s.names {
		alias := s.byName[name]
		if alias.Type != typeAlias {
			continue
		}
		var path string
		_ = json.Unmarshal(alias.mapped.Params["path"], &path) // anything but a string is no path
		target, found := s.byName[path]
		if !found || target.Type == typeAlias || target.mapped.Container() || !slices.Equal(target.Nested, alias.Nested) {
			warnings = append(warnings, fmt.Sprintf("the field %q is an alias of %q, which is not a valid target", name, path))
			continue
		}
		resolved[name] = target
	}
	maps.Copy(s.byName, resolved)
	return warnings
}

// runtimeField is a field that the engine computes at query time; a composite one has others below it.
type runtimeField struct {
	Type   string                  `json:"type"`
	Fields map[string]runtimeField `json:"fields"`
}

// addRuntime adds the mapping's runtime fields. They replace fields with values of the same name, as in the engine. They are
// never nested.
func (s *fieldSet) addRuntime(tree *mapping.Field) []string {
	raw := tree.Params["runtime"]
	if raw == nil {
		return nil
	}
	var all map[string]runtimeField
	if err := json.Unmarshal(raw, &all); err != nil {
		return []string{"the runtime fields of the mapping cannot be parsed and are ignored"}
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

// below returns the fields below an object, with its path removed from their names and nested paths.
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
