package request

import (
	"fmt"
	"iter"

	"github.com/vektah/gqlparser/v2/ast"
	walk "github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"tutti/internal/core"
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
	} {
		r.RemoveRule(name)
	}
	for _, rule := range []walk.Rule{
		rules.KnownArgumentNamesRuleWithoutSuggestions, rules.KnownTypeNamesRuleWithoutSuggestions,
		rules.ScalarLeafsRuleWithoutSuggestions, rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
	} {
		r.AddRule(rule.Name, rule.RuleFunc)
	}
	r.AddRule("KnownFields", knownFields(introspection))
	if !introspection {
		r.AddRule(ruleNoIntrospection, noIntrospection)
	}
	return r
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
