package request

import (
	"encoding/json"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/jsontext"
)

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
