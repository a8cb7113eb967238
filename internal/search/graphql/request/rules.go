package request

import (
	"fmt"
	"iter"

	"github.com/vektah/gqlparser/v2/ast"
	walk "github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"tutti/internal/core"
	"tutti/internal/search/graphql/output"
)

// ruleNoIntrospection is the validation rule that applies if introspection is off.
const ruleNoIntrospection = "NoIntrospection"

// maxSuggestions limits the unknown fields of a query for which a similar name is searched.
const maxSuggestions = 3

// rulesFor returns the validation rules. The library's rules with suggestions search similar names for every unknown name, and
// would reveal names of the schema although introspection is off.
func rulesFor(introspection bool) *rules.Rules {
	r := rules.NewDefaultRules()
	for _, name := range []string{
		rules.FieldsOnCorrectTypeRule.Name, rules.KnownArgumentNamesRule.Name, rules.KnownTypeNamesRule.Name,
		rules.ScalarLeafsRule.Name, rules.ValuesOfCorrectTypeRule.Name, rules.OverlappingFieldsCanBeMergedRule.Name,
		rules.VariablesInAllowedPositionRule.Name,
	} {
		r.RemoveRule(name)
	}
	for _, rule := range []walk.Rule{
		rules.KnownArgumentNamesRuleWithoutSuggestions, rules.KnownTypeNamesRuleWithoutSuggestions,
		rules.ScalarLeafsRuleWithoutSuggestions, rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
	} {
		r.AddRule(rule.Name, rule.RuleFunc)
	}
	r.AddRule(rules.VariablesInAllowedPositionRule.Name, variablesInAllowedPosition)
	r.AddRule("KnownFields", knownFields(introspection))
	if !introspection {
		r.AddRule(ruleNoIntrospection, noIntrospection)
	}
	return r
}

// variablesInAllowedPosition is the library's rule, which also accepts a String variable where an enum is expected, as Arranger's
// components save sets. Such a variable gets the type of the enum, so that its value is checked.
func variablesInAllowedPosition(observers *walk.Events, tell walk.AddErrFunc) {
	observers.OnValue(func(w *walk.Walker, v *ast.Value) {
		if v.Kind != ast.Variable || v.ExpectedType == nil || v.VariableDefinition == nil {
			return
		}
		declared, expected := v.VariableDefinition.Type, *v.ExpectedType
		expected.NonNull = declared.NonNull
		def := w.Schema.Types[expected.NamedType]
		if def != nil && def.Kind == ast.Enum && declared.NamedType == "String" && expected.IsCompatible(v.ExpectedType) {
			v.VariableDefinition.Type = &expected
		}
	})
	rules.VariablesInAllowedPositionRule.RuleFunc(observers, tell)
}

// knownFields rejects fields that a type does not have.
func knownFields(introspection bool) walk.RuleFunc {
	return func(observers *walk.Events, tell walk.AddErrFunc) {
		reported := map[*ast.Field]bool{}
		observers.OnField(func(_ *walk.Walker, f *ast.Field) {
			if f.ObjectDefinition == nil || f.Definition != nil || reported[f] {
				return
			}
			reported[f] = true
			message := fmt.Sprintf("Cannot query field %q on type %q.", f.Name, f.ObjectDefinition.Name)
			if introspection && len(reported) <= maxSuggestions {
				if near := core.Suggest(f.Name, names(f.ObjectDefinition.Fields)); near != "" {
					message += fmt.Sprintf(" Did you mean %q?", near)
				}
			}
			tell(walk.Message("%s", message), walk.At(f.Position))
		})
	}
}

func names(fields ast.FieldList) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, f := range fields {
			if !yield(f.Name) {
				return
			}
		}
	}
}

// noIntrospection rejects __schema and __type; __typename is allowed.
func noIntrospection(observers *walk.Events, tell walk.AddErrFunc) {
	reported := map[*ast.Field]bool{}
	observers.OnField(func(_ *walk.Walker, f *ast.Field) {
		if (f.Name == "__schema" || f.Name == "__type") && !reported[f] {
			reported[f] = true
			tell(walk.Message("%s", introspectionMessage), walk.At(f.Position))
		}
	})
}

// introspectionMessage starts like the message of Apollo Server, by which clients recognize the case.
const introspectionMessage = "GraphQL introspection is not allowed by this server, but the query contained __schema or __type."

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
