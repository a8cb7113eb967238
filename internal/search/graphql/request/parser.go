package request

import (
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"tutti/internal/core"
	"tutti/internal/search/graphql/output"
)

// Limits are the configurable limits of operations.
type Limits struct {
	// Aliases and Depth are the maximum number of aliases and the maximum depth; 0 for the default depth.
	Aliases, Depth int
	// Introspection allows __schema and __type.
	Introspection bool
}

// Parser parses and validates operations against a schema. It is safe for concurrent use.
type Parser struct {
	types     *ast.Schema
	limits    Limits
	documents documentCache
}

// NewParser returns a Parser.
func NewParser(types *ast.Schema, limits Limits) *Parser {
	return &Parser{types: types, limits: limits, documents: newDocumentCache()}
}

// Parse returns the operation of a request with its variables, or the errors for which the request must be rejected.
func (p *Parser) Parse(r core.GraphQLRequest) (*Operation, []*output.Error) {
	doc, faults := p.document(r.Query)
	if len(faults) > 0 {
		return nil, faults
	}
	return p.operation(doc, r)
}

// ParseTrusted is Parse for queries that this process has built: the limits are for clients.
func (p *Parser) ParseTrusted(r core.GraphQLRequest) (*Operation, []*output.Error) {
	doc, err := parser.ParseQuery(&ast.Source{Input: r.Query})
	if err != nil {
		return nil, errorsOf(err, output.CodeParse)
	}
	if faults := p.validate(doc, false); len(faults) > 0 {
		return nil, faults
	}
	return p.operation(&document{QueryDocument: doc}, r)
}

// document returns the parsed and validated document of a query.
func (p *Parser) document(text string) (*document, []*output.Error) {
	if doc, ok := p.documents.Get(text); ok {
		return doc, nil
	}
	if len(text) > maxQueryBytes {
		return nil, []*output.Error{{Message: fmt.Sprintf("the query has %d bytes, at most %d are allowed", len(text), maxQueryBytes), Code: output.CodeValidation}}
	}
	parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, maxTokens)
	if err != nil {
		return nil, errorsOf(err, output.CodeParse)
	}
	if len(parsed.Operations) == 0 {
		return nil, []*output.Error{{Message: "the query has no operation", Code: output.CodeParse}}
	}
	if over := withinLimits(parsed, p.limits.Aliases, p.limits.Depth); over != nil {
		return nil, []*output.Error{over}
	}
	if faults := p.validate(parsed, p.limits.Introspection); len(faults) > 0 {
		return nil, faults
	}
	doc := &document{QueryDocument: parsed}
	p.documents.put(text, doc)
	return doc, nil
}

// validate validates a document against the schema.
func (p *Parser) validate(doc *ast.QueryDocument, introspection bool) []*output.Error {
	if errs := validator.ValidateWithRules(p.types, doc, rulesFor(introspection)); len(errs) > 0 {
		return errorsOf(errs, output.CodeValidation)
	}
	var m mergeRule
	for _, op := range doc.Operations {
		m.check([]ast.SelectionSet{op.SelectionSet})
	}
	return m.errors
}

// operation returns the operation that a request selects, with its variables.
func (p *Parser) operation(doc *document, r core.GraphQLRequest) (*Operation, []*output.Error) {
	definition, bad := selectOperation(doc.QueryDocument, r.OperationName)
	if bad == nil && definition.Operation == ast.Mutation && r.ReadOnly { // subscriptions are not in the schema
		bad = (&output.Error{Message: "a mutation must be sent by POST", Code: output.CodeRequest}).At(definition.Position)
	}
	if bad != nil {
		return nil, []*output.Error{bad}
	}
	vars, faults := variablesOf(p.types, definition, r.Variables)
	if len(faults) > 0 {
		return nil, faults
	}
	return &Operation{document: doc, definition: definition, vars: vars, types: p.types}, nil
}

// selectOperation returns the operation of a name; for "" the only one.
func selectOperation(doc *ast.QueryDocument, name string) (*ast.OperationDefinition, *output.Error) {
	if name == "" {
		if len(doc.Operations) == 1 {
			return doc.Operations[0], nil
		}
		return nil, &output.Error{Message: "the query has several operations: set operationName", Code: output.CodeOperation}
	}
	i := slices.IndexFunc(doc.Operations, func(op *ast.OperationDefinition) bool { return op.Name == name })
	if i < 0 {
		return nil, &output.Error{Message: fmt.Sprintf("the query has no operation named %q", name), Code: output.CodeOperation}
	}
	return doc.Operations[i], nil
}
