package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"tutti/internal/cache"
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
	types  *ast.Schema
	limits Limits
	// documents caches validated queries by their texts, so that repeated queries are parsed and validated once.
	documents *cache.LRU[string, *document]
}

// NewParser returns a Parser.
func NewParser(types *ast.Schema, limits Limits) *Parser {
	return &Parser{types: types, limits: limits, documents: cache.NewLRU[string, *document](maxCachedBytes)}
}

// Parse returns the operation of a request with its variables, or the errors for which the request must be rejected.
func (p *Parser) Parse(r core.GraphQLRequest) (*Operation, []*output.Error) {
	doc, faults := p.document(r.Query)
	if doc != nil && r.ReadOnly { // also a mutation that is not valid
		definition, _ := selectOperation(doc.QueryDocument, r.OperationName)
		if definition != nil && definition.Operation == ast.Mutation {
			return nil, []*output.Error{output.MutationError().At(definition.Position)}
		}
	}
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

// document returns the parsed and validated document of a query; with errors, the document if it could be parsed.
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
	doc := &document{QueryDocument: parsed}
	if faults := p.validate(parsed, p.limits.Introspection); len(faults) > 0 {
		return doc, faults
	}
	if len(text) <= maxCachedQuery { // a short text costs as much as maxQueries allows
		p.documents.Put(text, doc, int64(max(len(text), maxCachedBytes/maxQueries)))
	}
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

// Operation is a validated operation with its variables.
type Operation struct {
	document   *document
	definition *ast.OperationDefinition
	vars       variables
	types      *ast.Schema
	// collected counts the fields that Fields has returned.
	collected int
}

// Root returns the selected fields of the query or the mutation.
func (o *Operation) Root() []*ast.Field {
	root := o.types.Query
	if o.definition.Operation == ast.Mutation {
		root = o.types.Mutation
	}
	if root == nil {
		return nil
	}
	return o.Fields(root.Name, o.definition.SelectionSet)
}

// Below returns the selected fields of the value of f.
func (o *Operation) Below(f *ast.Field) []*ast.Field {
	return o.Fields(f.Definition.Type.Name(), f.SelectionSet)
}

// Fields returns the selected fields of a type in the order of their first occurrence. Fields of the same response key are merged;
// fields excluded by @skip or @include are left out (GraphQL specification, section 6.3.2).
func (o *Operation) Fields(typeName string, set ast.SelectionSet) []*ast.Field {
	var into collected
	o.gather(&into, typeName, set)
	o.collected += len(into.fields)
	return into.fields
}

// Collected returns the number of fields that Fields has returned so far.
func (o *Operation) Collected() int { return o.collected }

// Arguments returns the arguments of a field.
func (o *Operation) Arguments(f *ast.Field) *Arguments { return &Arguments{field: f, vars: o.vars} }

// Variables returns the decoded variables.
func (o *Operation) Variables() map[string]any {
	values := make(map[string]any, len(o.vars))
	for name, raw := range o.vars {
		var v any
		if json.Unmarshal(raw, &v) == nil {
			values[name] = v
		}
	}
	return values
}

// Derived returns the value that Derive has stored for a field of the same document, nil for none.
func (o *Operation) Derived(f *ast.Field) any { return o.document.load(f) }

// Derive stores a value for all operations of the same document, if the selection of the field does not depend on variables.
func (o *Operation) Derive(f *ast.Field, value any) {
	if independentOfVariables(f.SelectionSet, map[*ast.FragmentDefinition]bool{}) {
		o.document.store(f, value)
	}
}

// independentOfVariables reports whether a selection is the same for all variables. seen are the fragments visited before.
func independentOfVariables(set ast.SelectionSet, seen map[*ast.FragmentDefinition]bool) bool {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			if len(s.Directives) > 0 || !independentOfVariables(s.SelectionSet, seen) || slices.ContainsFunc(s.Arguments, usesVariable) {
				return false
			}
		case *ast.InlineFragment:
			if len(s.Directives) > 0 || !independentOfVariables(s.SelectionSet, seen) {
				return false
			}
		case *ast.FragmentSpread:
			if len(s.Directives) > 0 || s.Definition == nil {
				return false
			}
			if !seen[s.Definition] {
				seen[s.Definition] = true
				if !independentOfVariables(s.Definition.SelectionSet, seen) {
					return false
				}
			}
		}
	}
	return true
}

// usesVariable reports whether an argument contains a variable.
func usesVariable(a *ast.Argument) bool { return hasVariable(a.Value) }

func hasVariable(v *ast.Value) bool {
	return v.Kind == ast.Variable || slices.ContainsFunc(v.Children, func(c *ast.ChildValue) bool { return hasVariable(c.Value) })
}

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

// Limits of the cached queries of a catalogue. A parsed query takes about thirty times the memory of its text.
const (
	maxQueries     = 1000
	maxCachedBytes = 128 << 10
	maxCachedQuery = 32 << 10
)

// document is a validated document.
type document struct {
	*ast.QueryDocument

	mu sync.Mutex
	// derived are values derived from fields that do not depend on variables.
	derived map[*ast.Field]any
}

// maxDerived limits the derived values of one document: one for each list of documents that it selects. Merged fields are new in
// each request and would fill the cache.
const maxDerived = 32

// load returns the value derived from a field, nil for none.
func (d *document) load(f *ast.Field) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.derived[f]
}

func (d *document) store(f *ast.Field, value any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.derived == nil {
		d.derived = map[*ast.Field]any{}
	}
	if len(d.derived) < maxDerived {
		d.derived[f] = value
	}
}

// introspectionDisabled is in extensions.validationErrorCode if introspection is off: federating servers check for it.
const introspectionDisabled = "INTROSPECTION_DISABLED"

// errorsOf converts errors of the parser or of validation rules.
func errorsOf(err error, code string) []*output.Error {
	var list gqlerror.List
	if one, ok := errors.AsType[*gqlerror.Error](err); ok {
		list = gqlerror.List{one}
	} else if !errors.As(err, &list) {
		return []*output.Error{{Message: "the query cannot be parsed", Code: code}}
	}
	var faults []*output.Error
	for _, e := range list {
		if len(faults) == output.MaxErrors {
			break
		}
		f := &output.Error{Message: e.Message, Code: code}
		if e.Rule == ruleNoIntrospection {
			f.Detail = introspectionDisabled
		}
		if len(e.Locations) > 0 && e.Locations[0].Line > 0 {
			f.Line, f.Column = e.Locations[0].Line, e.Locations[0].Column
		}
		faults = append(faults, f)
	}
	return faults
}
