package request

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/search/graphql/output"
)

// mergeRule checks that fields of the same response key can be merged (GraphQL specification, section 5.3.2). It visits each
// field of the expanded operation once, which maxCost bounds; the rule of the library compares pairs. No schema here has a field
// of an abstract type, so that all merged fields belong to one type.
type mergeRule struct {
	errors []*output.Error
}

// check checks selection sets that are merged into one object.
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
		if len(m.errors) >= output.MaxErrors {
			return
		}
	}
}

// checkGroup checks the fields of one response key and their merged selection sets.
func (m *mergeRule) checkGroup(fields []*ast.Field) {
	first := fields[0]
	var below []ast.SelectionSet
	for _, f := range fields {
		if why := difference(first, f); why != "" {
			m.errors = append(m.errors, (&output.Error{Code: output.CodeValidation, Message: fmt.Sprintf(
				"the fields called %q cannot be merged because %s; use an alias for one of them", first.Alias, why,
			)}).At(f.Position))
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

// difference returns why two fields cannot be merged, "" if they can.
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
