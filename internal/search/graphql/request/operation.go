package request

import (
	"encoding/json"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
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
func (o *Operation) Arguments(f *ast.Field) Arguments { return Arguments{field: f, vars: o.vars} }

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
