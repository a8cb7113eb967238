package graph

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
)

// mergeRule checks that fields of one response key ask for the same (GraphQL specification, section 5.3.2). It looks at each
// field of the expanded operation once, which maxCost bounds; the rule of the library compares them in pairs. No schema here
// has a field of an abstract type, so that all that is merged is asked of one type.
type mergeRule struct {
	errors []*gqlError
}

// check looks at the selection sets that are merged into one object.
func (m *mergeRule) check(sets []ast.SelectionSet) {
	groups := map[string][]*ast.Field{}
	var order []string
	seen := map[*ast.FragmentDefinition]bool{}
	var gather func(set ast.SelectionSet)
	gather = func(set ast.SelectionSet) {
		for _, selection := range set {
			switch s := selection.(type) {
			case *ast.Field:
				if groups[s.Alias] == nil {
					order = append(order, s.Alias)
				}
				groups[s.Alias] = append(groups[s.Alias], s)
			case *ast.InlineFragment:
				gather(s.SelectionSet)
			case *ast.FragmentSpread:
				if s.Definition != nil && !seen[s.Definition] {
					seen[s.Definition] = true
					gather(s.Definition.SelectionSet)
				}
			}
		}
	}
	for _, set := range sets {
		gather(set)
	}
	for _, key := range order {
		m.checkGroup(groups[key])
		if len(m.errors) >= maxErrors {
			return
		}
	}
}

// checkGroup checks the fields of one response key, and then what they select together.
func (m *mergeRule) checkGroup(fields []*ast.Field) {
	first := fields[0]
	var below []ast.SelectionSet
	for _, f := range fields {
		if why := difference(first, f); why != "" {
			m.errors = append(m.errors, (&gqlError{code: codeValidation, message: fmt.Sprintf(
				"the fields called %q cannot be one because %s; give one of them an alias", first.Alias, why,
			)}).at(f.Position))
			return
		}
		if len(f.SelectionSet) > 0 {
			below = append(below, f.SelectionSet)
		}
	}
	if len(below) > 0 {
		m.check(below)
	}
}

// difference says why two fields do not ask for the same, "" when they do.
func difference(a, b *ast.Field) string {
	switch {
	case a == b:
		return ""
	case a.Name != b.Name:
		return fmt.Sprintf("%s and %s are different fields", a.Name, b.Name)
	case len(a.Arguments) != len(b.Arguments):
		return "they have different arguments"
	}
	for _, arg := range a.Arguments {
		other := b.Arguments.ForName(arg.Name)
		if other == nil || arg.Value.String() != other.Value.String() {
			return "they have different arguments"
		}
	}
	return ""
}
