package request

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/search/graphql/output"
)

// Arguments reads the arguments of a field. An argument that is absent or null has the default of the schema.
type Arguments struct {
	field *ast.Field
	vars  variables
}

// Raw returns an argument as JSON; nil if it is absent or null and has no default.
func (a Arguments) Raw(name string) json.RawMessage {
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
func (a Arguments) Given(name string) json.RawMessage {
	if arg := a.field.Arguments.ForName(name); arg != nil {
		if raw := appendLiteral(nil, arg.Value, a.vars); string(raw) != "null" {
			return raw
		}
	}
	return nil
}

// Value returns an argument; a value that does not exist if it is absent or null and has no default.
func (a Arguments) Value(name string) gjson.Result { return gjson.ParseBytes(a.Raw(name)) }

// Invalid returns the error of an argument.
func (a Arguments) Invalid(name, why string) *output.Error {
	f := output.InputError(fmt.Sprintf("the argument %s %s", name, why))
	if arg := a.field.Arguments.ForName(name); arg != nil {
		return f.At(arg.Position)
	}
	return f.At(a.field.Position)
}

// Int returns an argument of type Int, without if it is absent.
func (a Arguments) Int(name string, without int) (int, *output.Error) {
	v := a.Value(name)
	if !v.Exists() {
		return without, nil
	}
	n, ok := wholeNumber(v)
	if !ok {
		return 0, a.Invalid(name, "is not a 32-bit integer")
	}
	return n, nil
}

// Number returns an argument of type Float, without if it is absent.
func (a Arguments) Number(name string, without float64) (float64, *output.Error) {
	v := a.Value(name)
	if !v.Exists() {
		return without, nil
	}
	if v.Type != gjson.Number {
		return 0, a.Invalid(name, "is not a number")
	}
	return v.Num, nil
}

// Bool returns an argument of type Boolean, without if it is absent.
func (a Arguments) Bool(name string, without bool) (bool, *output.Error) {
	v := a.Value(name)
	if !v.Exists() {
		return without, nil
	}
	if !v.IsBool() {
		return false, a.Invalid(name, "is not a boolean")
	}
	return v.Bool(), nil
}

// List returns the items of a list; a value that is not a list is its only item.
func (a Arguments) List(name string) []gjson.Result {
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

// Texts returns a list of strings.
func (a Arguments) Texts(name string) ([]string, *output.Error) {
	var texts []string
	for _, item := range a.List(name) {
		if item.Type == gjson.Null {
			continue
		}
		if item.Type != gjson.String {
			return nil, a.Invalid(name, "is not a list of strings")
		}
		texts = append(texts, item.Str)
	}
	return texts, nil
}
