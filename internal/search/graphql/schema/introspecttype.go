package schema

import (
	"iter"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// reference appends the __Type of a type reference, with its list and non-null wrappers.
func (m *meta) reference(dst []byte, t *ast.Type, set ast.SelectionSet) []byte {
	switch {
	case t.NonNull:
		inner := *t
		inner.NonNull = false
		return m.wrapper(dst, "NON_NULL", &inner, set)
	case t.Elem != nil:
		return m.wrapper(dst, "LIST", t.Elem, set)
	default:
		return m.definition(dst, m.tree.Types[t.NamedType], set)
	}
}

// wrapper appends a __Type without a name, around another.
func (m *meta) wrapper(dst []byte, kind string, of *ast.Type, set ast.SelectionSet) []byte {
	return m.object(dst, "__Type", set, func(dst []byte, f *ast.Field) []byte {
		switch f.Name {
		case "kind":
			return appendText(dst, kind)
		case "ofType":
			return m.reference(dst, of, f.SelectionSet)
		default:
			return appendNull(dst)
		}
	})
}

// definition appends the __Type of a named type, null for nil.
func (m *meta) definition(dst []byte, d *ast.Definition, set ast.SelectionSet) []byte {
	if d == nil {
		return appendNull(dst)
	}
	return m.object(dst, "__Type", set, func(dst []byte, f *ast.Field) []byte { return m.typeMember(dst, d, f) })
}

// definitions appends the types of the given names.
func (m *meta) definitions(dst []byte, names iter.Seq[string], set ast.SelectionSet) []byte {
	return appendList(dst, slices.Sorted(names), func(dst []byte, name string) []byte {
		return m.definition(dst, m.tree.Types[name], set)
	})
}

// typeMember appends a member of a named type; null if its kind does not have it.
func (m *meta) typeMember(dst []byte, d *ast.Definition, f *ast.Field) []byte {
	composite := d.Kind == ast.Object || d.Kind == ast.Interface
	switch f.Name {
	case "kind":
		return appendText(dst, string(d.Kind))
	case "name":
		return appendText(dst, d.Name)
	case "description":
		return appendOptional(dst, d.Description)
	case "specifiedByURL":
		return appendSpecification(dst, d)
	case "fields":
		if composite {
			return m.fields(dst, d, f)
		}
	case "interfaces":
		if composite {
			return m.definitions(dst, slices.Values(d.Interfaces), f.SelectionSet)
		}
	case "possibleTypes":
		if d.IsAbstractType() {
			return m.definitions(dst, m.possibleTypes(d), f.SelectionSet)
		}
	case "enumValues":
		if d.Kind == ast.Enum {
			return m.enumValues(dst, d, f)
		}
	case "inputFields":
		if d.Kind == ast.InputObject {
			return m.inputFields(dst, d, f)
		}
	case "isOneOf":
		if d.Kind == ast.InputObject {
			return append(dst, "false"...)
		}
	}
	return appendNull(dst)
}

func (m *meta) fields(dst []byte, d *ast.Definition, f *ast.Field) []byte {
	var shown []*ast.FieldDefinition
	for _, field := range d.Fields {
		if !isMeta(field.Name) && m.included(f, field.Directives) {
			shown = append(shown, field)
		}
	}
	return appendList(dst, shown, func(dst []byte, field *ast.FieldDefinition) []byte { return m.field(dst, field, f.SelectionSet) })
}

func (m *meta) inputFields(dst []byte, d *ast.Definition, f *ast.Field) []byte {
	var shown []inputValue
	for _, field := range d.Fields {
		if m.included(f, field.Directives) {
			shown = append(shown, inputValue{field.Name, field.Description, field.Type, field.DefaultValue, field.Directives})
		}
	}
	return appendList(dst, shown, func(dst []byte, i inputValue) []byte { return m.input(dst, i, f.SelectionSet) })
}

func (m *meta) enumValues(dst []byte, d *ast.Definition, f *ast.Field) []byte {
	var shown []*ast.EnumValueDefinition
	for _, value := range d.EnumValues {
		if m.included(f, value.Directives) {
			shown = append(shown, value)
		}
	}
	return appendList(dst, shown, func(dst []byte, v *ast.EnumValueDefinition) []byte { return m.enumValue(dst, v, f.SelectionSet) })
}

// possibleTypes returns the names of the object types of an interface or a union.
func (m *meta) possibleTypes(d *ast.Definition) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, p := range m.tree.PossibleTypes[d.Name] {
			if p.Kind == ast.Object && !yield(p.Name) {
				return
			}
		}
	}
}

// appendSpecification appends the specification URL of a scalar, null for none.
func appendSpecification(dst []byte, d *ast.Definition) []byte {
	if by := d.Directives.ForName("specifiedBy"); by != nil {
		if url := by.Arguments.ForName("url"); url != nil {
			return appendText(dst, url.Value.Raw)
		}
	}
	return appendNull(dst)
}
