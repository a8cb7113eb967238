package request

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// collected holds the fields of one selection set by response key.
type collected struct {
	fields []*ast.Field
	// byKey is built when there are too many fields for a linear search.
	byKey     map[string]int
	fragments []*ast.FragmentDefinition
	merged    []bool
}

// manyFields is the number of fields from which a map is faster than a linear search.
const manyFields = 16

func (o *Operation) gather(into *collected, typeName string, set ast.SelectionSet) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			if o.included(s.Directives) {
				into.add(s)
			}
		case *ast.InlineFragment:
			if o.included(s.Directives) && o.applies(s.TypeCondition, typeName) {
				o.gather(into, typeName, s.SelectionSet)
			}
		case *ast.FragmentSpread:
			if !o.included(s.Directives) || s.Definition == nil || slices.Contains(into.fragments, s.Definition) {
				continue
			}
			into.fragments = append(into.fragments, s.Definition)
			if o.applies(s.Definition.TypeCondition, typeName) {
				o.gather(into, typeName, s.Definition.SelectionSet)
			}
		}
	}
}

// included evaluates @skip and @include.
func (o *Operation) included(directives ast.DirectiveList) bool {
	for _, d := range directives {
		if d.Name != "skip" && d.Name != "include" {
			continue
		}
		arg := d.Arguments.ForName("if")
		if arg == nil {
			continue
		}
		is := arg.Value.Raw == "true"
		if arg.Value.Kind == ast.Variable {
			is = string(o.vars[arg.Value.Raw]) == "true"
		}
		if is == (d.Name == "skip") {
			return false
		}
	}
	return true
}

// applies reports whether the type condition of a fragment holds for a type.
func (o *Operation) applies(condition, typeName string) bool {
	if condition == "" || condition == typeName {
		return true
	}
	return slices.ContainsFunc(o.types.PossibleTypes[condition], func(d *ast.Definition) bool { return d.Name == typeName })
}

// add adds a field, or merges it into the field of the same response key.
func (into *collected) add(f *ast.Field) {
	i := into.find(f.Alias)
	if i < 0 {
		if into.byKey != nil {
			into.byKey[f.Alias] = len(into.fields)
		}
		into.fields = append(into.fields, f)
		into.merged = append(into.merged, false)
		return
	}
	if len(f.SelectionSet) == 0 {
		return
	}
	if !into.merged[i] { // the query is shared: merge into a copy
		whole := *into.fields[i]
		whole.SelectionSet = slices.Clone(whole.SelectionSet)
		into.fields[i], into.merged[i] = &whole, true
	}
	into.fields[i].SelectionSet = append(into.fields[i].SelectionSet, f.SelectionSet...)
}

func (into *collected) find(key string) int {
	if into.byKey != nil {
		if i, found := into.byKey[key]; found {
			return i
		}
		return -1
	}
	if len(into.fields) >= manyFields {
		into.byKey = make(map[string]int, 4*manyFields)
		for i, f := range into.fields {
			into.byKey[f.Alias] = i
		}
		return into.find(key)
	}
	return slices.IndexFunc(into.fields, func(f *ast.Field) bool { return f.Alias == key })
}
