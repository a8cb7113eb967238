package graph

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

// ruleNoIntrospection is the rule that is in force where introspection is off.
const ruleNoIntrospection = "NoIntrospection"

// maxSuggestions is for how many unknown fields of a query the nearest name is looked for.
const maxSuggestions = 3

// document returns the parsed and checked document of a query.
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

// validate holds a document to the schema.
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

// rulesFor returns the rules of validation. Those of the library that look for similar names do so for every unknown one, and
// would tell the names of a schema that nobody may look at.
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

// knownFields refuses fields that a type does not have.
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
				if near := core.Meant(f.Name, names(f.ObjectDefinition.Fields)); near != "" {
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

// noIntrospection refuses __schema and __type; __typename stays.
func noIntrospection(observers *walk.Events, tell walk.AddErrFunc) {
	reported := map[*ast.Field]bool{}
	observers.OnField(func(_ *walk.Walker, f *ast.Field) {
		if (f.Name == "__schema" || f.Name == "__type") && !reported[f] {
			reported[f] = true
			tell(walk.Message("%s", notIntrospected), walk.At(f.Position))
		}
	})
}

// notIntrospected begins as the message of the server that clients know, so that they tell the case by it.
const notIntrospected = "GraphQL introspection is not allowed by this server, but the query contained __schema or __type."

// operation returns the operation of a name, the only one for "".
func operation(doc *ast.QueryDocument, name string) (*ast.OperationDefinition, *gqlError) {
	if name == "" {
		if len(doc.Operations) == 1 {
			return doc.Operations[0], nil
		}
		return nil, &gqlError{message: "the query has several operations: operationName must say which", code: codeOperation}
	}
	i := slices.IndexFunc(doc.Operations, func(op *ast.OperationDefinition) bool { return op.Name == name })
	if i < 0 {
		return nil, &gqlError{message: fmt.Sprintf("the query has no operation called %q", name), code: codeOperation}
	}
	return doc.Operations[i], nil
}
