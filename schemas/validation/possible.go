package validation

import (
	"encoding/json"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// kindSet is a set of JSON types.
type kindSet uint8

const (
	objects kindSet = 1 << iota
	arrays
	texts
	numbers
	booleans
	nulls
	allKinds = objects | arrays | texts | numbers | booleans | nulls
)

// ExcludesObjects reports whether no object can be valid as a property of the values of a schema. It reports only what is certain: what a
// schema excludes by types, constants, false, names of properties and their number, in any combination.
func (r *Schema) ExcludesObjects(property string) bool {
	s := propertiesOf(r.schema)[property]
	return s != nil && r.possibleKinds(s, map[*jsonschema.Schema]bool{})&objects == 0
}

// possibleKinds returns the types of the values that a schema may accept. It never leaves out the type of a value that is valid. within
// are the schemas that are being examined: a reference back to one excludes nothing.
func (r *Schema) possibleKinds(s *jsonschema.Schema, within map[*jsonschema.Schema]bool) kindSet {
	if s == nil || within[s] {
		return allKinds
	}
	within[s] = true
	defer delete(within, s)
	switch {
	case s.Always != nil && !*s.Always, extensionOf(s).nothing, s.Not != nil && s.Not.Format == anything:
		return 0
	case s.Always != nil:
		return allKinds
	}
	possible := kindsNamed(s.Types)
	if s.Constant != nil {
		possible &= r.kindsAmong(s, s.Constant)
	}
	if s.Enum != nil {
		possible &= r.kindsAmong(s, s.Enum)
	}
	possible &= r.possibleKinds(s.Ref, within)
	for _, part := range s.AllOf {
		possible &= r.possibleKinds(part, within)
	}
	for _, alternatives := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		some := kindSet(0)
		for _, part := range alternatives {
			some |= r.possibleKinds(part, within)
		}
		if len(alternatives) > 0 {
			possible &= some
		}
	}
	if s.Not != nil {
		possible &^= certainKinds(s.Not)
	}
	if s.If != nil {
		possible &= r.possibleKinds(s.Then, within) | r.possibleKinds(s.Else, within)
	}
	if possible&objects != 0 && r.noProperties(s, within) {
		possible &^= objects
	}
	return possible
}

// kindsAmong returns the types of the values of a constant or an enumeration that a schema accepts.
func (r *Schema) kindsAmong(s *jsonschema.Schema, choice []any) kindSet {
	some := kindSet(0)
	for _, value := range choice {
		if kind := kindOf(value); some&kind == 0 && s.Validate(value) == nil {
			some |= kind
		}
	}
	return some
}

// noProperties reports whether no object can have the properties that a schema requires.
func (r *Schema) noProperties(s *jsonschema.Schema, within map[*jsonschema.Schema]bool) bool {
	if s.MinProperties != -1 && s.MaxProperties != -1 && s.MinProperties > s.MaxProperties {
		return true
	}
	return s.MaxProperties != -1 && len(s.Required) > s.MaxProperties || slices.ContainsFunc(s.Required, func(name string) bool {
		own := propertiesOf(s)[name]
		if own == nil && !hasProperty(s, name) {
			own = additionalOf(s)
		}
		return own != nil && r.possibleKinds(own, within) == 0
	})
}

// certainKinds returns types all of whose values a schema accepts.
func certainKinds(s *jsonschema.Schema) kindSet {
	switch {
	case s.Always != nil && *s.Always:
		return allKinds
	case s.Always != nil, s.Format != "", s.Constant != nil, s.Enum != nil, s.Pattern != nil, s.Not != nil, s.If != nil,
		len(edgesOf(s)) > 0, len(s.Extensions) > 0, s.MinProperties != -1, s.MaxProperties != -1, len(s.Required) > 0,
		s.Dependencies != nil, s.DependentRequired != nil:
		return 0
	default:
		// What is left limits arrays, texts and numbers.
		return kindsNamed(s.Types) & (objects | booleans | nulls)
	}
}

// kindsNamed returns the set of the types that a schema names; all for none.
func kindsNamed(names []string) kindSet {
	if names == nil {
		return allKinds
	}
	some := kindSet(0)
	for _, name := range names {
		some |= map[string]kindSet{
			"object": objects, "array": arrays, "string": texts, "number": numbers, "integer": numbers, "boolean": booleans, "null": nulls,
		}[name]
	}
	return some
}

func kindOf(value any) kindSet {
	switch value.(type) {
	case map[string]any:
		return objects
	case []any:
		return arrays
	case string:
		return texts
	case json.Number:
		return numbers
	case bool:
		return booleans
	default:
		return nulls
	}
}
