package graphql

import (
	"fmt"
	"iter"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	walk "github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"tutti/internal/core"
)

// ruleNoIntrospection is the validation rule that applies if introspection is off.
const ruleNoIntrospection = "NoIntrospection"

// maxSuggestions limits the unknown fields of a query for which a similar name is searched.
const maxSuggestions = 3

// document returns the parsed and validated document of a query.
func (s *servedCatalogue) document(text string) (*prepared, []*gqlError) {
	if doc := s.queries.get(text); doc != nil {
		return doc, nil
	}
	if len(text) > maxQueryBytes {
		return nil, []*gqlError{{message: fmt.Sprintf("the query has %d bytes, at most %d are allowed", len(text), maxQueryBytes), code: codeValidation}}
	}
	parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, maxTokens)
	if err != nil {
		return nil, errorsOf(err, codeParse)
	}
	doc := &prepared{QueryDocument: parsed, text: text}
	if len(doc.Operations) == 0 {
		return nil, []*gqlError{{message: "the query has no operation", code: codeParse}}
	}
	d := s.model.Definition()
	if over := withinLimits(parsed, d.MaxAliases, d.MaxDepth); over != nil {
		return nil, []*gqlError{over}
	}
	if faults := s.validate(parsed, d.GraphQLIntrospection); len(faults) > 0 {
		return nil, faults
	}
	s.queries.put(text, doc)
	return doc, nil
}

// validate validates a document against the schema.
func (s *servedCatalogue) validate(doc *ast.QueryDocument, introspection bool) []*gqlError {
	if errs := validator.ValidateWithRules(s.schema.AST, doc, rulesFor(introspection)); len(errs) > 0 {
		return errorsOf(errs, codeValidation)
	}
	var m mergeRule
	for _, op := range doc.Operations {
		m.check([]ast.SelectionSet{op.SelectionSet})
	}
	return m.errors
}

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

// operation returns the operation of a name; for "" the only one.
func operation(doc *ast.QueryDocument, name string) (*ast.OperationDefinition, *gqlError) {
	if name == "" {
		if len(doc.Operations) == 1 {
			return doc.Operations[0], nil
		}
		return nil, &gqlError{message: "the query has several operations: set operationName", code: codeOperation}
	}
	i := slices.IndexFunc(doc.Operations, func(op *ast.OperationDefinition) bool { return op.Name == name })
	if i < 0 {
		return nil, &gqlError{message: fmt.Sprintf("the query has no operation named %q", name), code: codeOperation}
	}
	return doc.Operations[i], nil
}
