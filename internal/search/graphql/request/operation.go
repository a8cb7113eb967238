package request

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/base/jsontext"
	"tutti/internal/search/graphql/output"
)

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

// wholeNumber returns a number that GraphQL's Int can represent.
func wholeNumber(v gjson.Result) (int, bool) {
	if v.Type != gjson.Number || v.Num != math.Trunc(v.Num) || math.Abs(v.Num) > math.MaxInt32 {
		return 0, false
	}
	return int(v.Num), true
}

// Arguments reads the arguments of a field. An argument that is absent or null has the default of the schema.
// The first invalid argument is its error.
type Arguments struct {
	field *ast.Field
	vars  variables
	bad   *output.Error
}

// Err returns the error of the first invalid argument, nil for none.
func (a *Arguments) Err() *output.Error { return a.bad }

// Reject records that an argument is invalid.
func (a *Arguments) Reject(name, why string) {
	a.Fail(name, output.InputError(fmt.Sprintf("the argument %s %s", name, why)))
}

// Fail records the error of an argument, or of the field for "".
func (a *Arguments) Fail(name string, bad *output.Error) {
	if a.bad != nil {
		return
	}
	a.bad = bad.At(a.field.Position)
	if arg := a.field.Arguments.ForName(name); arg != nil {
		a.bad.At(arg.Position)
	}
}

// Raw returns an argument as JSON; nil if it is absent or null and has no default.
func (a *Arguments) Raw(name string) json.RawMessage {
	if raw := a.Given(name); raw != nil {
		return raw
	}
	if def := a.field.Definition.Arguments.ForName(name); def != nil && def.DefaultValue != nil {
		if raw := appendLiteral(nil, def.DefaultValue, nil); string(raw) != "null" {
			return raw
		}
	}
	return nil
}

// Given returns an argument as JSON, without its default; nil if it is absent or null.
func (a *Arguments) Given(name string) json.RawMessage {
	if arg := a.field.Arguments.ForName(name); arg != nil {
		if raw := appendLiteral(nil, arg.Value, a.vars); string(raw) != "null" {
			return raw
		}
	}
	return nil
}

// Value returns an argument; a value that does not exist if it is absent or null and has no default.
func (a *Arguments) Value(name string) gjson.Result { return gjson.ParseBytes(a.Raw(name)) }

// Int returns an argument of type Int, without if it is absent.
func (a *Arguments) Int(name string, without int) int {
	v := a.Value(name)
	if !v.Exists() {
		return without
	}
	n, ok := wholeNumber(v)
	if !ok {
		a.Reject(name, "is not a 32-bit integer")
		return without
	}
	return n
}

// Number returns an argument of type Float, without if it is absent.
func (a *Arguments) Number(name string, without float64) float64 {
	if v := a.Value(name); v.Exists() {
		return v.Num
	}
	return without
}

// Bool returns an argument of type Boolean, without if it is absent.
func (a *Arguments) Bool(name string, without bool) bool {
	if v := a.Value(name); v.Exists() {
		return v.Bool()
	}
	return without
}

// List returns the items of a list; a value that is not a list is its only item.
func (a *Arguments) List(name string) []gjson.Result {
	v := a.Value(name)
	switch {
	case !v.Exists():
		return nil
	case v.IsArray():
		return v.Array()
	default:
		return []gjson.Result{v}
	}
}

// Texts returns the strings of a list.
func (a *Arguments) Texts(name string) []string {
	var texts []string
	for _, item := range a.List(name) {
		if item.Type != gjson.Null {
			texts = append(texts, item.String())
		}
	}
	return texts
}

// variables are the variables of an operation as JSON, with numbers as they were written. Absent variables without a default have
// no entry.
type variables map[string]json.RawMessage

// appendLiteral appends a value of the query as JSON, with its variables substituted. Enum values become strings.
func appendLiteral(dst []byte, v *ast.Value, vars variables) []byte {
	switch v.Kind {
	case ast.Variable:
		if raw, given := vars[v.Raw]; given {
			return append(dst, raw...)
		}
		return append(dst, "null"...)
	case ast.IntValue, ast.FloatValue, ast.BooleanValue:
		return append(dst, v.Raw...)
	case ast.StringValue, ast.BlockValue, ast.EnumValue:
		return jsontext.AppendString(dst, v.Raw)
	case ast.ListValue:
		dst = append(dst, '[')
		for i, child := range v.Children {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendLiteral(dst, child.Value, vars)
		}
		return append(dst, ']')
	case ast.ObjectValue:
		return appendLiteralObject(dst, v, vars)
	default:
		return append(dst, "null"...)
	}
}

// appendLiteralObject appends an object and leaves out members whose variable is absent.
func appendLiteralObject(dst []byte, v *ast.Value, vars variables) []byte {
	dst = append(dst, '{')
	first := true
	for _, child := range v.Children {
		if child.Value.Kind == ast.Variable {
			if _, given := vars[child.Value.Raw]; !given {
				continue
			}
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(jsontext.AppendString(dst, child.Name), ':')
		dst = appendLiteral(dst, child.Value, vars)
	}
	return append(dst, '}')
}
