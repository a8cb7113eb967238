package catalogue

import (
	"iter"
	"slices"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/index/mapping"
	"tutti/internal/search/catalogue/definition"
)

var (
	_ sqon.Fields = (*Model)(nil)
	_ sqon.Names  = (*Model)(nil)
)

// Model is a catalogue built from its definition and the mapping of its index: the only source of its fields. It is immutable: a
// changed mapping makes a new Model.
//
// Its names are those that clients use: names below the nesting prefix do not include it. An alias field has the metadata of its
// target.
type Model struct {
	definition definition.Definition
	tree       *mapping.Field
	root       *mapping.Field
	// fields are by client name, whole by the mapping's own name; they are the same without a nesting prefix.
	fields    *fieldSet
	whole     *fieldSet
	extended  map[string]definition.ExtendedField
	access    *Access
	catalogue *core.Catalogue
	warnings  []string
}

// Definition returns the configuration of the catalogue.
func (m *Model) Definition() definition.Definition { return m.definition }

// Catalogue returns the introspection of the catalogue, always the same pointer.
func (m *Model) Catalogue() *core.Catalogue { return m.catalogue }

// Mapping returns the whole mapping of the index, including what is outside the nesting prefix.
func (m *Model) Mapping() *mapping.Field { return m.tree }

// Root returns the mapping object that contains the catalogue's fields: the mapping itself without a nesting prefix.
func (m *Model) Root() *mapping.Field { return m.root }

// Field returns the type of a field and the nested paths above it, for an alias those of its target; false if there is no such
// field.
func (m *Model) Field(name string) (sqon.Field, bool) { return m.fields.Field(name) }

// Names returns the names of all fields in the mapping's order: parents before children, siblings by name.
func (m *Model) Names() iter.Seq[string] { return m.fields.Names() }

// Path returns the engine's path of a field, with the nesting prefix; for an alias, the path of its target. False if there is no
// such field.
func (m *Model) Path(name string) (string, bool) {
	f, found := m.fields.byName[name]
	return f.path, found
}

// Extended returns the additional configuration of a field; false if there is none.
func (m *Model) Extended(name string) (definition.ExtendedField, bool) {
	extended, found := m.extended[name]
	return extended, found
}

// MappingFields returns the fields of the whole mapping by its own names, which access rules use.
func (m *Model) MappingFields() sqon.Fields { return m.whole }

// MappingPath returns the engine's path of a field of the whole mapping, for an alias the path of its target. False if there is
// no such field.
func (m *Model) MappingPath(name string) (string, bool) {
	f, found := m.whole.byName[name]
	return f.path, found
}

// Access returns the effective access rule; nil if there is none, in which case callers that Definition.DefaultAccess allows see
// everything.
func (m *Model) Access() *Access { return m.access }

// Warnings returns the non-fatal mismatches between the definition and the mapping.
func (m *Model) Warnings() []string { return slices.Clone(m.warnings) }
