package graphql

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/search/graphql/output"
)

// arguments reads the arguments of a field. An argument that is absent or null has the default of the schema.
type arguments struct {
	field *ast.Field
	vars  variables
}

// raw returns an argument as JSON; nil if it is absent or null and has no default.
func (a arguments) raw(name string) json.RawMessage {
	if raw := a.given(name); raw != nil {
		return raw
	}
	if def := a.field.Definition.Arguments.ForName(name); def != nil && def.DefaultValue != nil {
		if raw := appendLiteral(nil, def.DefaultValue, nil); string(raw) != "null" {
			return raw
		}
	}
	return nil
}

// given returns an argument as JSON, without its default; nil if it is absent or null.
func (a arguments) given(name string) json.RawMessage {
	if arg := a.field.Arguments.ForName(name); arg != nil {
		if raw := appendLiteral(nil, arg.Value, a.vars); string(raw) != "null" {
			return raw
		}
	}
	return nil
}

func (a arguments) value(name string) gjson.Result { return gjson.ParseBytes(a.raw(name)) }

// invalid returns the error of an argument.
func (a arguments) invalid(name, why string) *output.Error {
	f := output.InputError(fmt.Sprintf("the argument %s %s", name, why))
	if arg := a.field.Arguments.ForName(name); arg != nil {
		return f.At(arg.Position)
	}
	return f.At(a.field.Position)
}

// int returns an argument of type Int.
func (a arguments) int(name string, without int) (int, *output.Error) {
	v := a.value(name)
	if !v.Exists() {
		return without, nil
	}
	n, ok := wholeNumber(v)
	if !ok {
		return 0, a.invalid(name, "is not a 32-bit integer")
	}
	return n, nil
}

func (a arguments) number(name string, without float64) (float64, *output.Error) {
	v := a.value(name)
	if !v.Exists() {
		return without, nil
	}
	if v.Type != gjson.Number {
		return 0, a.invalid(name, "is not a number")
	}
	return v.Num, nil
}

func (a arguments) flag(name string, without bool) (bool, *output.Error) {
	v := a.value(name)
	if !v.Exists() {
		return without, nil
	}
	if !v.IsBool() {
		return false, a.invalid(name, "is not a boolean")
	}
	return v.Bool(), nil
}

// list returns the items of a list; a value that is not a list is its only item.
func (a arguments) list(name string) []gjson.Result {
	v := a.value(name)
	switch {
	case !v.Exists():
		return nil
	case v.IsArray():
		return v.Array()
	default:
		return []gjson.Result{v}
	}
}

// texts returns a list of strings.
func (a arguments) texts(name string) ([]string, *output.Error) {
	var texts []string
	for _, item := range a.list(name) {
		if item.Type == gjson.Null {
			continue
		}
		if item.Type != gjson.String {
			return nil, a.invalid(name, "is not a list of strings")
		}
		texts = append(texts, item.Str)
	}
	return texts, nil
}
