package schema

import (
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
		return m.append(dst, m.schema(), field.SelectionSet)
	case "__type":
		name, _ := m.argument(field, "name").(string)
		return m.append(dst, m.definition(s.AST.Types[name]), field.SelectionSet)
	default:
		return m.append(dst, nil, nil)
	}
}

// meta resolves one introspection field.
type meta struct {
	tree    *ast.Schema
	vars    map[string]any
	collect func(typeName string, set ast.SelectionSet) []*ast.Field
}

// element is an object of introspection.
type element struct {
	typeName string
	members  members
}

// members are the fields of an element other than __typename. A value is a string, "" for null; a bool; an element; a list of elements
// or strings; nil; or lazy.
type members map[string]any

// lazy computes a value when a field selects it, because most elements refer back to themselves.
type lazy func(f *ast.Field) any

// append appends a value of members as JSON.
func (m *meta) append(dst []byte, value any, set ast.SelectionSet) []byte {
	switch v := value.(type) {
	case string:
		if v != "" {
			return gjson.AppendJSONString(dst, v)
		}
	case bool:
		return strconv.AppendBool(dst, v)
	case element:
		dst = append(dst, '{')
		for i, f := range m.collect(v.typeName, set) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(gjson.AppendJSONString(dst, f.Alias), ':')
			if f.Name == "__typename" {
				dst = gjson.AppendJSONString(dst, v.typeName)
			} else {
				member := v.members[f.Name]
				if late, is := member.(lazy); is {
					member = late(f)
				}
				dst = m.append(dst, member, f.SelectionSet)
			}
		}
		return append(dst, '}')
	case []element:
		return appendList(m, dst, v, set)
	case []string:
		return appendList(m, dst, v, set)
	}
	return append(dst, "null"...)
}

func appendList[T any](m *meta, dst []byte, items []T, set ast.SelectionSet) []byte {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = m.append(dst, item, set)
	}
	return append(dst, ']')
}

func (m *meta) schema() element {
	definition := func(d *ast.Definition) lazy { return func(*ast.Field) any { return m.definition(d) } }
	return element{"__Schema", members{
		"description": m.tree.Description, "queryType": definition(m.tree.Query), "mutationType": definition(m.tree.Mutation),
		"subscriptionType": definition(m.tree.Subscription),
		"types":            lazy(func(*ast.Field) any { return m.definitions(slices.Collect(maps.Keys(m.tree.Types))) }),
		"directives": lazy(func(*ast.Field) any {
			var all []element
			for _, name := range slices.Sorted(maps.Keys(m.tree.Directives)) {
				all = append(all, m.directive(m.tree.Directives[name]))
			}
			return all
		}),
	}}
}

func (m *meta) directive(d *ast.DirectiveDefinition) element {
	locations := make([]string, len(d.Locations))
	for i, l := range d.Locations {
		locations[i] = string(l)
	}
	return element{"__Directive", members{
		"name": d.Name, "description": d.Description, "isRepeatable": d.IsRepeatable, "locations": locations, "args": m.arguments(d.Arguments),
	}}
}

// fields returns the listed fields of a type, without those of introspection.
func (m *meta) fields(d *ast.Definition) lazy {
	return func(list *ast.Field) any {
		var all []element
		for _, f := range d.Fields {
			if !strings.HasPrefix(f.Name, "__") && m.included(list, f.Directives) {
				all = append(all, element{"__Field", deprecation(f.Directives, members{
					"name": f.Name, "description": f.Description, "args": m.arguments(f.Arguments), "type": m.reference(f.Type),
				})})
			}
		}
		return all
	}
}

// arguments returns the listed arguments.
func (m *meta) arguments(arguments ast.ArgumentDefinitionList) lazy {
	return func(list *ast.Field) any {
		var all []element
		for _, a := range arguments {
			if m.included(list, a.Directives) {
				all = append(all, m.input(a.Name, a.Description, a.Type, a.DefaultValue, a.Directives))
			}
		}
		return all
	}
}

// inputFields returns the listed fields of an input object.
func (m *meta) inputFields(d *ast.Definition) lazy {
	return func(list *ast.Field) any {
		var all []element
		for _, f := range d.Fields {
			if m.included(list, f.Directives) {
				all = append(all, m.input(f.Name, f.Description, f.Type, f.DefaultValue, f.Directives))
			}
		}
		return all
	}
}

func (m *meta) input(name, description string, of *ast.Type, value *ast.Value, directives ast.DirectiveList) element {
	all := members{"name": name, "description": description, "type": m.reference(of)}
	if value != nil {
		all["defaultValue"] = value.String()
	}
	return element{"__InputValue", deprecation(directives, all)}
}

// enumValues returns the listed values of an enum.
func (m *meta) enumValues(d *ast.Definition) lazy {
	return func(list *ast.Field) any {
		var all []element
		for _, v := range d.EnumValues {
			if m.included(list, v.Directives) {
				all = append(all, element{"__EnumValue", deprecation(v.Directives, members{"name": v.Name, "description": v.Description})})
			}
		}
		return all
	}
}

// included reports whether list includes an element with these directives (includeDeprecated).
func (m *meta) included(list *ast.Field, directives ast.DirectiveList) bool {
	if directives.ForName("deprecated") == nil {
		return true
	}
	include, _ := m.argument(list, "includeDeprecated").(bool)
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

// deprecation adds isDeprecated and deprecationReason of an element with these directives.
func deprecation(directives ast.DirectiveList, all members) members {
	d := directives.ForName("deprecated")
	all["isDeprecated"] = d != nil
	if d != nil {
		all["deprecationReason"] = "No longer supported"
		if reason := d.Arguments.ForName("reason"); reason != nil {
			all["deprecationReason"] = reason.Value.Raw
		}
	}
	return all
}

// reference returns the __Type of a type reference, with its list and non-null wrappers.
func (m *meta) reference(t *ast.Type) lazy {
	wrapper := func(kind string, of ast.Type) any {
		return element{"__Type", members{"kind": kind, "ofType": m.reference(&of)}}
	}
	return func(*ast.Field) any {
		switch {
		case t.NonNull:
			inner := *t
			inner.NonNull = false
			return wrapper("NON_NULL", inner)
		case t.Elem != nil:
			return wrapper("LIST", *t.Elem)
		default:
			return m.definition(m.tree.Types[t.NamedType])
		}
	}
}

// definitions returns the types of the given names, by name.
func (m *meta) definitions(names []string) any {
	all := make([]element, len(names))
	slices.Sort(names)
	for i, name := range names {
		all[i], _ = m.definition(m.tree.Types[name]).(element)
	}
	return all
}

// definition returns the __Type of a named type, nil for nil. It has only the members of its kind.
func (m *meta) definition(d *ast.Definition) any {
	if d == nil {
		return nil
	}
	all := members{"kind": string(d.Kind), "name": d.Name, "description": d.Description}
	if by := d.Directives.ForName("specifiedBy"); by != nil {
		if url := by.Arguments.ForName("url"); url != nil {
			all["specifiedByURL"] = url.Value.Raw
		}
	}
	if d.Kind == ast.Object || d.Kind == ast.Interface {
		all["fields"] = m.fields(d)
		all["interfaces"] = lazy(func(*ast.Field) any { return m.definitions(slices.Clone(d.Interfaces)) })
	}
	if d.IsAbstractType() {
		all["possibleTypes"] = lazy(func(*ast.Field) any { return m.possibleTypes(d) })
	}
	switch d.Kind {
	case ast.Enum:
		all["enumValues"] = m.enumValues(d)
	case ast.InputObject:
		all["inputFields"], all["isOneOf"] = m.inputFields(d), false
	default:
	}
	return element{"__Type", all}
}

func (m *meta) possibleTypes(d *ast.Definition) any {
	var names []string
	for _, p := range m.tree.PossibleTypes[d.Name] {
		if p.Kind == ast.Object {
			names = append(names, p.Name)
		}
	}
	return m.definitions(names)
}
