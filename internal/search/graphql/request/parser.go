package request

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	walk "github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"tutti/internal/base/cache"
	"tutti/internal/base/spelling"
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
	doc, errs := p.document(r.Query)
	if doc != nil && r.ReadOnly { // also a mutation that is not valid
		definition, _ := selectOperation(doc.QueryDocument, r.OperationName)
		if definition != nil && definition.Operation == ast.Mutation {
			return nil, []*output.Error{output.MutationError().At(definition.Position)}
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return p.operation(doc, r)
}

// ParseTrusted is Parse for queries that this process has built: the limits are for clients.
func (p *Parser) ParseTrusted(r core.GraphQLRequest) (*Operation, []*output.Error) {
	doc, err := parser.ParseQuery(&ast.Source{Input: r.Query})
	if err != nil {
		return nil, errorsOf(err, output.CodeParse)
	}
	if errs := p.validate(doc, false); len(errs) > 0 {
		return nil, errs
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
	if exceeded := withinLimits(parsed, p.limits.Aliases, p.limits.Depth); exceeded != nil {
		return nil, []*output.Error{exceeded}
	}
	doc := &document{QueryDocument: parsed}
	if errs := p.validate(parsed, p.limits.Introspection); len(errs) > 0 {
		return doc, errs
	}
	if len(text) <= maxCachedQuery { // the minimum cost limits the cache to maxQueries
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
	vars, errs := variablesOf(p.types, definition, r.Variables)
	if len(errs) > 0 {
		return nil, errs
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

// Limits of the cached queries of a catalogue. A parsed query takes about thirty times the memory of its text.
const (
	maxQueries     = 1000
	maxCachedBytes = 128 << 10
	maxCachedQuery = 32 << 10
)

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
	var errs []*output.Error
	for _, e := range list {
		if len(errs) == output.MaxErrors {
			break
		}
		f := &output.Error{Message: e.Message, Code: code}
		if e.Rule == ruleNoIntrospection {
			f.Detail = introspectionDisabled
		}
		if len(e.Locations) > 0 && e.Locations[0].Line > 0 {
			f.Line, f.Column = e.Locations[0].Line, e.Locations[0].Column
		}
		errs = append(errs, f)
	}
	return errs
}

// Limits of a query, checked before validation. All are far above what clients send; a query within them is validated in well
// under a second.
const (
	maxQueryBytes = 1 << 20
	maxTokens     = 100_000
	maxOperations = 50
	maxFragments  = 200
	maxVariables  = 500
	// maxDepth is the default and the upper limit of the nesting depth.
	maxDepth = 100
	// maxCost limits the fields of an operation with its fragments expanded.
	maxCost = 20_000
	// maxVisits limits the fields that validation visits: it walks everything reachable from each definition.
	maxVisits = 100_000
)

// measure is the size of an operation or a fragment with its fragments expanded.
type measure struct {
	fields, aliases, depth int
}

// meter measures the parts of a document. Each fragment is measured once, so that nested fragments cost no more than their text.
type meter struct {
	fragments map[string]*ast.FragmentDefinition
	measured  map[*ast.FragmentDefinition]measure
	// inProgress are the fragments being measured: a recursive spread counts 0, and validation rejects it.
	inProgress map[*ast.FragmentDefinition]bool
}

func newMeter(doc *ast.QueryDocument) *meter {
	m := &meter{
		fragments:  make(map[string]*ast.FragmentDefinition, len(doc.Fragments)),
		measured:   make(map[*ast.FragmentDefinition]measure, len(doc.Fragments)),
		inProgress: map[*ast.FragmentDefinition]bool{},
	}
	for _, f := range doc.Fragments {
		if m.fragments[f.Name] == nil {
			m.fragments[f.Name] = f
		}
	}
	return m
}

// set measures a selection set. Introspection does not count towards the depth: tools need it, and it is bounded by itself.
func (m *meter) set(set ast.SelectionSet) measure {
	var all measure
	for _, selection := range set {
		var one measure
		switch s := selection.(type) {
		case *ast.Field:
			one = m.set(s.SelectionSet)
			one.fields++
			one.depth++
			if s.Alias != s.Name {
				one.aliases++
			}
			if strings.HasPrefix(s.Name, "__") {
				one.depth = 0
			}
		case *ast.InlineFragment:
			one = m.set(s.SelectionSet)
		case *ast.FragmentSpread:
			one = m.fragment(m.fragments[s.Name])
		}
		all.fields = saturate(all.fields + one.fields)
		all.aliases = saturate(all.aliases + one.aliases)
		all.depth = max(all.depth, one.depth)
	}
	return all
}

func (m *meter) fragment(f *ast.FragmentDefinition) measure {
	if f == nil || m.inProgress[f] {
		return measure{}
	}
	if known, is := m.measured[f]; is {
		return known
	}
	m.inProgress[f] = true
	one := m.set(f.SelectionSet)
	delete(m.inProgress, f)
	m.measured[f] = one
	return one
}

// saturate limits a sum to math.MaxInt32, so that sums do not overflow.
func saturate(n int) int { return min(n, math.MaxInt32) }

// visits counts the fields that a walk from each definition visits if it enters each fragment once.
func (m *meter) visits(doc *ast.QueryDocument) int {
	all := 0
	for _, op := range doc.Operations {
		all = saturate(all + m.reach(op.SelectionSet, map[*ast.FragmentDefinition]bool{}))
	}
	for _, f := range doc.Fragments {
		all = saturate(all + m.reach(f.SelectionSet, map[*ast.FragmentDefinition]bool{f: true}))
		if all > maxVisits {
			break
		}
	}
	return all
}

func (m *meter) reach(set ast.SelectionSet, seen map[*ast.FragmentDefinition]bool) int {
	n := 0
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			n += 1 + m.reach(s.SelectionSet, seen)
		case *ast.InlineFragment:
			n += 1 + m.reach(s.SelectionSet, seen)
		case *ast.FragmentSpread:
			n++
			if f := m.fragments[s.Name]; f != nil && !seen[f] {
				seen[f] = true
				n += m.reach(f.SelectionSet, seen)
			}
		}
		if n > maxVisits {
			break
		}
	}
	return n
}

// withinLimits returns an error if a document exceeds a limit.
func withinLimits(doc *ast.QueryDocument, aliases, depth int) *output.Error {
	exceeded := func(format string, args ...any) *output.Error {
		return &output.Error{Message: fmt.Sprintf(format, args...), Code: output.CodeValidation}
	}
	if n := len(doc.Operations); n > maxOperations {
		return exceeded("the query has %d operations, at most %d are allowed", n, maxOperations)
	}
	if n := len(doc.Fragments); n > maxFragments {
		return exceeded("the query has %d fragments, at most %d are allowed", n, maxFragments)
	}
	if depth <= 0 || depth > maxDepth {
		depth = maxDepth
	}
	m := newMeter(doc)
	for _, op := range doc.Operations {
		if n := len(op.VariableDefinitions); n > maxVariables {
			return exceeded("the operation has %d variables, at most %d are allowed", n, maxVariables).At(op.Position)
		}
		one := m.set(op.SelectionSet)
		switch {
		case one.depth > depth:
			return exceeded("the operation is %d fields deep, at most %d are allowed", one.depth, depth).At(op.Position)
		case one.aliases > aliases:
			return exceeded("the operation has %s aliases, at most %d are allowed", count(one.aliases), aliases).At(op.Position)
		case one.fields > maxCost:
			return exceeded("the operation requests %s fields, at most %d are allowed", count(one.fields), maxCost).At(op.Position)
		}
	}
	if m.visits(doc) > maxVisits {
		return exceeded("the operations and fragments of the query are too large in total")
	}
	return nil
}

// count formats a number that may be saturated.
func count(n int) string {
	if n >= math.MaxInt32 {
		return "billions of"
	}
	return fmt.Sprint(n)
}

// ruleNoIntrospection is the validation rule that applies if introspection is off.
const ruleNoIntrospection = "NoIntrospection"

// maxSuggestions limits the unknown fields of a query for which a similar name is searched.
const maxSuggestions = 3

// rulesFor returns the validation rules. It replaces the library's rules with suggestions: they search similar names for every unknown
// name, and reveal names of the schema although introspection is off.
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

// variablesInAllowedPosition is the library's rule, but also accepts a String variable where an enum is expected, because Arranger's
// components send one to save sets. It gives the variable the type of the enum, so that the value is checked.
func variablesInAllowedPosition(observers *walk.Events, addError walk.AddErrFunc) {
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
	rules.VariablesInAllowedPositionRule.RuleFunc(observers, addError)
}

// knownFields rejects fields that a type does not have.
func knownFields(introspection bool) walk.RuleFunc {
	return func(observers *walk.Events, addError walk.AddErrFunc) {
		reported := map[*ast.Field]bool{}
		observers.OnField(func(_ *walk.Walker, f *ast.Field) {
			if f.ObjectDefinition == nil || f.Definition != nil || reported[f] {
				return
			}
			reported[f] = true
			message := fmt.Sprintf("Cannot query field %q on type %q.", f.Name, f.ObjectDefinition.Name)
			if introspection && len(reported) <= maxSuggestions {
				if near := spelling.Suggest(f.Name, names(f.ObjectDefinition.Fields)); near != "" {
					message += fmt.Sprintf(" Did you mean %q?", near)
				}
			}
			addError(walk.Message("%s", message), walk.At(f.Position))
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
func noIntrospection(observers *walk.Events, addError walk.AddErrFunc) {
	reported := map[*ast.Field]bool{}
	observers.OnField(func(_ *walk.Walker, f *ast.Field) {
		if (f.Name == "__schema" || f.Name == "__type") && !reported[f] {
			reported[f] = true
			addError(walk.Message("%s", introspectionMessage), walk.At(f.Position))
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
