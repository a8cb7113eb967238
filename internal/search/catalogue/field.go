package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/search/catalogue/definition"
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

var _ Fields = (*fieldSet)(nil)

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
	s.byName[path] = field{Field: sqon.Field{Type: string(f.Type), Nested: nested, Format: f.DateFormat(), Unfound: unfound(f)}, path: path, mapped: f}
}

// unfound returns why filters find nothing by the values of a field, "" if they do.
func unfound(f *mapping.Field) string {
	if !miscounted(f.Type) || string(f.Params["index"]) != "false" {
		return ""
	}
	return "OpenSearch finds no " + string(f.Type) + " value in a nested object, or from copy_to, that it does not have by document; map it with doc_values: true, or as keyword"
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

// Access is an access rule applied to the current mapping (CONTRACT section 6): a caller sees the documents whose Field has a
// value that one of its scopes grants, and those that Public matches. Its names are the mapping's own (Model.MappingFields).
type Access struct {
	// Field is the path of the field, or of its sub-field with exact values. "" denies access to everyone: the mapping has no
	// such field, and Public is nil.
	Field string
	// Scope is the template of the scope that grants a value, with {value} in its place.
	Scope string
	// Public matches the documents that everyone sees; nil for none.
	Public *sqon.Filter
}

// accessOf returns the effective rule. A part that does not fit the mapping grants nothing.
func accessOf(rule *definition.AccessRule, whole *fieldSet) (*Access, []string) {
	if rule == nil {
		return nil, nil
	}
	f, found := whole.byName[rule.Field]
	if !found {
		return &Access{Scope: rule.Scope}, []string{
			fmt.Sprintf("the access rule denies all: the mapping has no field %q", rule.Field),
		}
	}
	path := whole.exactPath(f)
	if path == "" {
		return &Access{Scope: rule.Scope}, []string{
			fmt.Sprintf("the access rule denies all: the field %q is of type %s, which does not store exact values", rule.Field, f.Type),
		}
	}
	access := &Access{Field: path, Scope: rule.Scope, Public: rule.Public}
	if fault := publicFilterError(rule.Public, whole); fault != "" {
		access.Public = nil
		return access, []string{"the access rule's public filter does not fit the mapping, so nothing is public: " + fault}
	}
	return access, nil
}

// publicFilterError returns why a public filter does not fit the mapping, "" if it does.
func publicFilterError(public *sqon.Filter, whole *fieldSet) string {
	if public == nil {
		return ""
	}
	if err := public.Check(whole); err != nil {
		return core.MessageOf(err)
	}
	return addressPattern(public.Root, whole)
}

// addressPattern returns why a filter cannot decide what is public, "" if it can: search engines match patterns of addresses with the values of
// all documents, also of those that the caller may not see.
func addressPattern(n *sqon.Node, whole *fieldSet) string {
	if n == nil {
		return ""
	}
	if n.Op == sqon.Wildcard {
		for i, name := range n.Fields {
			if fieldtype.Of(whole.byName[name].Type).Group == fieldtype.Address {
				return fmt.Sprintf("the filter has at %s/content/fieldNames/%d a pattern on the field %q of type %s, which needs the values of all documents: name the addresses with in",
					n.Pointer, i, name, whole.byName[name].Type)
			}
		}
	}
	for _, member := range n.Content {
		if fault := addressPattern(member, whole); fault != "" {
			return fault
		}
	}
	return ""
}

// exactPath returns the path whose terms are exactly the field's values, "" for none: terms of an analyzed text or of a
// normalized keyword would match documents with other values too.
func (s *fieldSet) exactPath(f field) string {
	if f.matchesExactly() {
		return f.path
	}
	if f.mapped == nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(f.mapped.Fields)) {
		path := f.path + "." + name
		if sub := s.byName[path]; sub.path == path && sub.matchesExactly() { // a runtime field may have replaced it
			return path
		}
	}
	return ""
}

// matchesExactly reports whether a term matches only documents with exactly that value. The engine treats a term on an ip as a
// network, and one on a constant_keyword as a pattern: a scope of "0.0.0.0/0" or of "*" would grant everything.
func (f field) matchesExactly() bool {
	switch t := fieldtype.Of(f.Type); {
	case f.Unfound != "":
		return false
	case t.Group == fieldtype.Exact && !t.Constant:
		return f.mapped == nil || f.mapped.Params["normalizer"] == nil
	default:
		return t.Group == fieldtype.Boolean || t.Integral()
	}
}

// Documents reads documents of an index in any order, as the port index.Index does. The stream ends at the first error of each,
// which Stream returns.
type Documents interface {
	Stream(ctx context.Context, alias string, req index.StreamRequest, each func([]index.Hit) error) error
}

// Limits of a sample: documents, and bytes after which it ends.
const (
	sampleDocuments = 1000
	sampleBytes     = 4 << 20
)

// errSampled ends a sample that is large enough.
var errSampled = errors.New("the sample is large enough")

// sampleOf reads a sample of the documents of an index.
func sampleOf(ctx context.Context, d Documents, alias string, fields *fieldSet) (sample, error) {
	s := sample{fields: fields, multiValued: map[string]bool{}}
	bytes := 0
	err := d.Stream(ctx, alias, index.StreamRequest{}, func(hits []index.Hit) error {
		for _, hit := range hits {
			s.object(hit.Source, "")
			s.documents++
			if bytes += len(hit.Source); s.documents == sampleDocuments || bytes >= sampleBytes {
				s.full = true
				return errSampled
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errSampled) {
		return sample{}, err
	}
	return s, nil
}

// Sampled returns the fields of the introspection, updated by a sample of the documents.
func (m *Model) Sampled(ctx context.Context, d Documents) ([]core.CatalogueField, error) {
	s, err := sampleOf(ctx, d, m.definition.Index, m.whole)
	if err != nil {
		return nil, err
	}
	fields := slices.Clone(m.catalogue.Fields)
	for i := range fields {
		fields[i].MultiValued = m.fields.byName[fields[i].Name].multiValued(s.multiValued, m.whole)
	}
	return fields, nil
}

// sample is the result of sampling the documents of an index.
type sample struct {
	fields *fieldSet
	// multiValued are the mapping paths with several values in a document, except nested ones, which always have several elements.
	multiValued map[string]bool
	// documents is the number of documents read; full is set if there may be more.
	documents int
	full      bool
}

// object records the fields below an object. path is "" or ends with a dot. Other values have no fields.
func (s *sample) object(raw []byte, path string) {
	jsontext.Members(raw, 0, func(name []byte, escaped bool, value jsontext.Span) bool {
		if escaped {
			name = jsontext.AppendUnescaped(nil, name)
		}
		s.value(value.Of(raw), path+string(name))
		return true
	})
}

// value records a value and the fields below it. Arrays within an array are part of it; nulls do not count.
func (s *sample) value(raw []byte, path string) {
	f, known := s.fields.byName[path]
	if !known && raw[0] != '{' && raw[0] != '[' {
		return
	}
	values := 0
	jsontext.Items(raw, jsontext.Span{End: len(raw)}, func(item jsontext.Span) bool {
		if raw[item.Start] == 'n' {
			return true
		}
		values++
		if raw[item.Start] == '{' && (!known || f.mapped != nil && f.mapped.Container()) {
			s.object(item.Of(raw), path+".")
		}
		return true
	})
	if values > 1 && known && canBeMultiValued(f.Type) {
		s.multiValued[path] = true
	}
}

// canBeMultiValued reports whether several JSON values of a type are several values of the field. A point is a list of numbers,
// and nested elements are always several.
func canBeMultiValued(fieldType string) bool {
	return fieldtype.Of(fieldType).JSON() != fieldtype.Any && fieldType != string(mapping.Nested)
}

// multiValued reports whether the sample found several values of a field; for a multi-field, of its parent.
func (f field) multiValued(found map[string]bool, whole *fieldSet) bool {
	if found[f.path] {
		return true
	}
	dot := strings.LastIndexByte(f.path, '.')
	if dot < 0 || !found[f.path[:dot]] {
		return false
	}
	above := whole.byName[f.path[:dot]]
	return above.mapped != nil && !above.mapped.Container()
}

// description returns the description in the meta of a field's mapping, "" for none.
func (f field) description() string {
	if f.mapped == nil {
		return ""
	}
	var meta struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(f.mapped.Params["meta"], &meta) // meta without such a text describes nothing
	return meta.Description
}

// longest returns the number of characters above which a text of the field counts as missing, "" for no limit.
func (f field) longest() string {
	if f.mapped == nil {
		return ""
	}
	return strings.Trim(string(f.mapped.Params["ignore_above"]), `"`)
}

// withLongest returns a field's description with the length above which a text counts as missing, if there is one.
func withLongest(description, characters string) string {
	if characters == "" {
		return description
	}
	note := "A text of more than " + characters + " characters counts as missing."
	if description == "" {
		return note
	}
	return strings.TrimSuffix(description, ".") + ". " + note
}
