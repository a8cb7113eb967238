package request

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/base/jsontext"
	"tutti/internal/search/graphql/output"
)

// maxVariableBytes is the maximum length of an invalid value in a message.
const maxVariableBytes = 60

// variablesOf coerces the variables of a request to the types of the operation (GraphQL specification, section 6.1.2).
func variablesOf(types *ast.Schema, op *ast.OperationDefinition, raw json.RawMessage) (variables, []*output.Error) {
	given, bad := members(raw)
	if bad != nil {
		return nil, []*output.Error{bad}
	}
	vars := variables{}
	var faults []*output.Error
	for _, def := range op.VariableDefinitions {
		value, is := given[def.Variable]
		if !is && def.DefaultValue != nil {
			value, is = gjson.ParseBytes(appendLiteral(nil, def.DefaultValue, nil)), true
		}
		if !is && !def.Type.NonNull {
			continue
		}
		if !is {
			faults = append(faults, output.InputError(fmt.Sprintf("the variable $%s of type %s is missing", def.Variable, def.Type)).At(def.Position))
			continue
		}
		c := coercion{types: types}
		coerced := c.value(nil, def.Type, value)
		if c.why != "" {
			faults = append(faults, output.InputError(fmt.Sprintf("the variable $%s is not valid%s: %s", def.Variable, c.place(), c.why)).At(def.Position))
			continue
		}
		vars[def.Variable] = coerced
	}
	return vars, faults
}

// members returns the members of the JSON object of variables; of duplicates the last one.
func members(raw json.RawMessage) (map[string]gjson.Result, *output.Error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if !json.Valid(raw) || raw[0] != '{' {
		return nil, output.InputError("the variables are not a JSON object")
	}
	given := map[string]gjson.Result{}
	gjson.ParseBytes(raw).ForEach(func(name, value gjson.Result) bool {
		given[name.String()] = value
		return true
	})
	return given, nil
}

// coercion checks one value and encodes it in the form of its type.
type coercion struct {
	types *ast.Schema
	path  []string
	// why is the first error, "" for none.
	why string
}

// place returns the position of an error within the value.
func (c *coercion) place() string {
	if len(c.path) == 0 {
		return ""
	}
	return " at " + strings.TrimPrefix(strings.Join(c.path, ""), ".")
}

// value appends a value of a type.
func (c *coercion) value(dst []byte, t *ast.Type, v gjson.Result) []byte {
	if v.Type == gjson.Null {
		if t.NonNull {
			c.why = fmt.Sprintf("a value of type %s must not be null", t)
		}
		return append(dst, "null"...)
	}
	if t.Elem != nil {
		return c.list(dst, t.Elem, v)
	}
	def := c.types.Types[t.NamedType]
	if def == nil {
		c.why = "unknown type " + t.NamedType
		return dst
	}
	switch def.Kind {
	case ast.InputObject:
		return c.object(dst, def, v)
	case ast.Enum:
		if v.Type != gjson.String || def.EnumValues.ForName(v.Str) == nil {
			c.wrong(def.Name, v)
		}
	default:
		if text, ok := scalarInput(def.Name, v); ok {
			return append(dst, text...)
		}
		c.wrong(def.Name, v)
	}
	return append(dst, v.Raw...)
}

func (c *coercion) wrong(typeName string, v gjson.Result) {
	shown := v.Raw
	if len(shown) > maxVariableBytes {
		shown = strings.ToValidUTF8(shown[:maxVariableBytes], "") + "…"
	}
	c.why = fmt.Sprintf("%s cannot represent %s", typeName, shown)
}

// list appends a list; a value that is not a list is its only item.
func (c *coercion) list(dst []byte, item *ast.Type, v gjson.Result) []byte {
	if !v.IsArray() {
		return append(c.value(append(dst, '['), item, v), ']')
	}
	dst = append(dst, '[')
	i := 0
	v.ForEach(func(_, one gjson.Result) bool {
		if i > 0 {
			dst = append(dst, ',')
		}
		c.path = append(c.path, "["+strconv.Itoa(i)+"]")
		dst = c.value(dst, item, one)
		i++
		return c.leave()
	})
	return append(dst, ']')
}

func (c *coercion) object(dst []byte, def *ast.Definition, v gjson.Result) []byte {
	if !v.IsObject() {
		c.wrong(def.Name, v)
		return dst
	}
	given := map[string]bool{}
	dst = append(dst, '{')
	v.ForEach(func(name, value gjson.Result) bool {
		field := def.Fields.ForName(name.String())
		c.path = append(c.path, "."+name.String())
		if field == nil {
			c.why = "the type " + def.Name + " has no such field"
			return false
		}
		if len(given) > 0 {
			dst = append(dst, ',')
		}
		given[field.Name] = true
		dst = append(jsontext.AppendString(dst, field.Name), ':')
		dst = c.value(dst, field.Type, value)
		return c.leave()
	})
	for _, field := range def.Fields {
		if c.why == "" && field.Type.NonNull && field.DefaultValue == nil && !given[field.Name] {
			c.path = append(c.path, "."+field.Name)
			c.why = fmt.Sprintf("a value of type %s is missing", field.Type)
		}
	}
	return append(dst, '}')
}

// leave removes the last path element; after an error it keeps the path and returns false.
func (c *coercion) leave() bool {
	if c.why != "" {
		return false
	}
	c.path = c.path[:len(c.path)-1]
	return true
}

// scalarInput returns a value in the form of a scalar type, false if it has another type. Custom scalars accept everything.
func scalarInput(name string, v gjson.Result) (string, bool) {
	switch name {
	case "Int":
		n, ok := wholeNumber(v)
		return strconv.Itoa(n), ok
	case "Float":
		return v.Raw, v.Type == gjson.Number && !math.IsInf(v.Num, 0)
	case "String":
		return v.Raw, v.Type == gjson.String
	case "Boolean":
		return v.Raw, v.Type == gjson.True || v.Type == gjson.False
	case "ID":
		if n, ok := wholeNumber(v); ok {
			return strconv.Quote(strconv.Itoa(n)), true
		}
		return v.Raw, v.Type == gjson.String
	default:
		return v.Raw, true
	}
}
