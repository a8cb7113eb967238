package schema

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"
)

// AppendMeta appends the value of a field __schema or __type of the query root as JSON: the introspection of the GraphQL
// specification of October 2021. The operation must be validated against AST, and by the rule MaxIntrospectionDepth: the result
// of deeper operations grows without bound. vars are the coerced variables. collect returns the selected fields of a type, one
// per response key, with merged selections and without those excluded by @skip and @include.
func (s *Schema) AppendMeta(
	dst []byte, field *ast.Field, vars map[string]any, collect func(typeName string, set ast.SelectionSet) []*ast.Field,
) []byte {
	m := meta{s.AST, vars, collect}
	switch field.Name {
	case "__schema":
		return m.schema(dst, field.SelectionSet)
	case "__type":
		name, _ := m.argument(field, "name").(string)
		return m.definition(dst, s.AST.Types[name], field.SelectionSet)
	default:
		return appendNull(dst)
	}
}

// meta resolves one introspection field.
type meta struct {
	tree    *ast.Schema
	vars    map[string]any
	collect func(typeName string, set ast.SelectionSet) []*ast.Field
}

// object appends an object of a type; member appends the members other than __typename.
func (m *meta) object(dst []byte, typeName string, set ast.SelectionSet, member func(dst []byte, f *ast.Field) []byte) []byte {
	dst = append(dst, '{')
	for i, f := range m.collect(typeName, set) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, f.Alias), ':')
		if f.Name == "__typename" {
			dst = appendText(dst, typeName)
		} else {
			dst = member(dst, f)
		}
	}
	return append(dst, '}')
}

func (m *meta) schema(dst []byte, set ast.SelectionSet) []byte {
	return m.object(dst, "__Schema", set, func(dst []byte, f *ast.Field) []byte {
		switch f.Name {
		case "description":
			return appendOptional(dst, m.tree.Description)
		case "types":
			return m.definitions(dst, maps.Keys(m.tree.Types), f.SelectionSet)
		case "queryType":
			return m.definition(dst, m.tree.Query, f.SelectionSet)
		case "mutationType":
			return m.definition(dst, m.tree.Mutation, f.SelectionSet)
		case "subscriptionType":
			return m.definition(dst, m.tree.Subscription, f.SelectionSet)
		case "directives":
			return appendList(dst, slices.Sorted(maps.Keys(m.tree.Directives)), func(dst []byte, name string) []byte {
				return m.directive(dst, m.tree.Directives[name], f.SelectionSet)
			})
		default:
			return appendNull(dst)
		}
	})
}

func (m *meta) directive(dst []byte, d *ast.DirectiveDefinition, set ast.SelectionSet) []byte {
	return m.object(dst, "__Directive", set, func(dst []byte, f *ast.Field) []byte {
		switch f.Name {
		case "name":
			return appendText(dst, d.Name)
		case "description":
			return appendOptional(dst, d.Description)
		case "isRepeatable":
			return strconv.AppendBool(dst, d.IsRepeatable)
		case "locations":
			return appendList(dst, d.Locations, func(dst []byte, l ast.DirectiveLocation) []byte { return appendText(dst, string(l)) })
		case "args":
			return m.arguments(dst, d.Arguments, f)
		default:
			return appendNull(dst)
		}
	})
}

// field appends a __Field.
func (m *meta) field(dst []byte, d *ast.FieldDefinition, set ast.SelectionSet) []byte {
	return m.object(dst, "__Field", set, func(dst []byte, f *ast.Field) []byte {
		switch f.Name {
		case "name":
			return appendText(dst, d.Name)
		case "description":
			return appendOptional(dst, d.Description)
		case "args":
			return m.arguments(dst, d.Arguments, f)
		case "type":
			return m.reference(dst, d.Type, f.SelectionSet)
		default:
			return appendDeprecation(dst, d.Directives, f.Name)
		}
	})
}

// arguments appends the selected list of arguments.
func (m *meta) arguments(dst []byte, arguments ast.ArgumentDefinitionList, f *ast.Field) []byte {
	var shown []inputValue
	for _, a := range arguments {
		if m.included(f, a.Directives) {
			shown = append(shown, inputValue{a.Name, a.Description, a.Type, a.DefaultValue, a.Directives})
		}
	}
	return appendList(dst, shown, func(dst []byte, i inputValue) []byte { return m.input(dst, i, f.SelectionSet) })
}

// inputValue is an argument, or a field of an input object.
type inputValue struct {
	name, description string
	of                *ast.Type
	value             *ast.Value
	directives        ast.DirectiveList
}

// input appends an __InputValue.
func (m *meta) input(dst []byte, i inputValue, set ast.SelectionSet) []byte {
	return m.object(dst, "__InputValue", set, func(dst []byte, f *ast.Field) []byte {
		switch f.Name {
		case "name":
			return appendText(dst, i.name)
		case "description":
			return appendOptional(dst, i.description)
		case "type":
			return m.reference(dst, i.of, f.SelectionSet)
		case "defaultValue":
			if i.value == nil {
				return appendNull(dst)
			}
			return appendText(dst, i.value.String())
		default:
			return appendDeprecation(dst, i.directives, f.Name)
		}
	})
}

// enumValue appends an __EnumValue.
func (m *meta) enumValue(dst []byte, v *ast.EnumValueDefinition, set ast.SelectionSet) []byte {
	return m.object(dst, "__EnumValue", set, func(dst []byte, f *ast.Field) []byte {
		switch f.Name {
		case "name":
			return appendText(dst, v.Name)
		case "description":
			return appendOptional(dst, v.Description)
		default:
			return appendDeprecation(dst, v.Directives, f.Name)
		}
	})
}

// included reports whether f includes an element with these directives (includeDeprecated).
func (m *meta) included(f *ast.Field, directives ast.DirectiveList) bool {
	if directives.ForName("deprecated") == nil {
		return true
	}
	include, _ := m.argument(f, "includeDeprecated").(bool)
	return include
}

// argument returns the value of an argument, nil for none.
func (m *meta) argument(f *ast.Field, name string) any {
	a := f.Arguments.ForName(name)
	if a == nil {
		return nil
	}
	value, err := a.Value.Value(m.vars)
	if err != nil {
		return nil // only numbers can fail, and no argument here is one
	}
	return value
}

// appendDeprecation appends isDeprecated or deprecationReason of an element with these directives.
func appendDeprecation(dst []byte, directives ast.DirectiveList, name string) []byte {
	d := directives.ForName("deprecated")
	switch {
	case name == "isDeprecated":
		return strconv.AppendBool(dst, d != nil)
	case name != "deprecationReason" || d == nil:
		return appendNull(dst)
	}
	if reason := d.Arguments.ForName("reason"); reason != nil {
		return appendText(dst, reason.Value.Raw)
	}
	return appendText(dst, "No longer supported")
}

// appendList appends items as a JSON array.
func appendList[T any](dst []byte, items []T, write func(dst []byte, item T) []byte) []byte {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = write(dst, item)
	}
	return append(dst, ']')
}

func appendText(dst []byte, text string) []byte { return gjson.AppendJSONString(dst, text) }

// appendOptional appends a string, null for "".
func appendOptional(dst []byte, text string) []byte {
	if text == "" {
		return appendNull(dst)
	}
	return appendText(dst, text)
}

func appendNull(dst []byte) []byte { return append(dst, "null"...) }

// isMeta reports whether a name is an introspection name, which types do not list among their fields.
func isMeta(name string) bool { return strings.HasPrefix(name, "__") }

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
