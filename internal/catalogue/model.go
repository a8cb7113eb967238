package catalogue

import (
	"iter"
	"slices"

	"tutti/internal/catalogue/definition"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/sqon"
)

var (
	_ sqon.Fields = (*Model)(nil)
	_ sqon.Names  = (*Model)(nil)
)

// Model is what a catalogue is by its definition and the mapping of its index: the one truth about its fields. Nothing of
// it is ever changed, neither by this package nor by who gets it: a mapping that has changed makes a new Model.
//
// Its names are those that clients use, so those below the nesting prefix without it. An alias field stands for its target.
type Model struct {
	definition definition.Definition
	tree       *mapping.Field
	root       *mapping.Field
	// fields are by the clients' names, whole by the mapping's own; they are the same without a nesting prefix.
	fields    *fieldSet
	whole     *fieldSet
	extended  map[string]definition.ExtendedField
	access    *Access
	catalogue *core.Catalogue
	warnings  []string
}

// Definition returns what the configuration says of the catalogue.
func (m *Model) Definition() definition.Definition { return m.definition }

// Catalogue returns what introspection shows. It is the same pointer each time.
func (m *Model) Catalogue() *core.Catalogue { return m.catalogue }

// Mapping returns the whole mapping of the index, the outside of the nesting prefix included.
func (m *Model) Mapping() *mapping.Field { return m.tree }

// Root returns the object of the mapping that the catalogue's fields are below: the mapping itself without a nesting prefix.
func (m *Model) Root() *mapping.Field { return m.root }

// Field returns the type of a field and the nested paths above it, both of its target for an alias; false when there is no
// field of that name.
func (m *Model) Field(name string) (sqon.Field, bool) { return m.fields.Field(name) }

// Names returns the names of all fields in the mapping's order: parents before what is below them, siblings by name.
func (m *Model) Names() iter.Seq[string] { return m.fields.Names() }

// Path returns the path by which an engine knows a field: below the nesting prefix, and the target's for an alias. False when
// there is no field of that name.
func (m *Model) Path(name string) (string, bool) {
	f, found := m.fields.byName[name]
	return f.path, found
}

// Extended returns what the configuration says of a field beyond its mapping; false when it says nothing.
func (m *Model) Extended(name string) (definition.ExtendedField, bool) {
	extended, found := m.extended[name]
	return extended, found
}

// MappingFields returns the fields of the whole mapping under its own names, which access rules use.
func (m *Model) MappingFields() sqon.Fields { return m.whole }

// MappingPath returns the path by which an engine knows a field of the whole mapping, the target's for an alias. False when
// there is no field of that name.
func (m *Model) MappingPath(name string) (string, bool) {
	f, found := m.whole.byName[name]
	return f.path, found
}

// Access returns the catalogue's access rule as it is in force; nil when it has
// none, and those whom Definition.DefaultAccess allows see everything.
func (m *Model) Access() *Access { return m.access }

// Warnings are what should be known of how the definition and the mapping fit, but stops nothing.
func (m *Model) Warnings() []string { return slices.Clone(m.warnings) }
