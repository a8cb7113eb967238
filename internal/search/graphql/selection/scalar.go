package selection

import (
	"math"
	"strconv"
	"strings"

	"tutti/internal/base/jsontext"
)

// scalarKind is the encoding of values of a scalar type.
type scalarKind uint8

const (
	scalarJSON scalarKind = iota
	scalarString
	scalarInt
	scalarFloat
	scalarBoolean
)

func scalarOf(typeName string) scalarKind {
	switch typeName {
	case "String", "ID", "Date":
		return scalarString
	case "Int":
		return scalarInt
	case "Float":
		return scalarFloat
	case "Boolean":
		return scalarBoolean
	default:
		return scalarJSON
	}
}

// scalarWords describes the valid values of a kind.
func scalarWords(kind scalarKind) string {
	switch kind {
	case scalarString:
		return "a string"
	case scalarInt:
		return "a 32-bit integer"
	case scalarFloat:
		return "a number"
	case scalarBoolean:
		return "a boolean"
	default:
		return "JSON"
	}
}

// appendScalar appends a value of a document, which is neither null nor an array, as the given kind: unchanged if it fits,
// otherwise converted as the index does. It returns false if the value cannot be converted.
func appendScalar(dst []byte, kind scalarKind, raw []byte) ([]byte, bool) {
	if len(raw) == 0 {
		return dst, false
	}
	text := raw[0] == '"'
	switch {
	case kind == scalarJSON, kind == scalarString && text:
		return append(dst, raw...), true
	case raw[0] == '{':
		return dst, false
	case kind == scalarString: // the literal of a number or a boolean
		return append(append(append(dst, '"'), raw...), '"'), true
	case kind == scalarBoolean:
		return appendBoolean(dst, raw)
	}
	if text {
		raw = []byte(strings.TrimSpace(jsontext.Unquote(raw)))
	}
	if kind == scalarFloat {
		return append(dst, raw...), jsontext.IsNumber(raw)
	}
	return appendInt(dst, raw)
}

// appendBoolean converts the strings that the index accepts as booleans.
func appendBoolean(dst, raw []byte) ([]byte, bool) {
	switch string(raw) {
	case "true", `"true"`:
		return append(dst, "true"...), true
	case "false", `"false"`, `""`:
		return append(dst, "false"...), true
	default:
		return dst, false
	}
}

// appendInt appends a number without its fraction, as the index truncates it.
func appendInt(dst, raw []byte) ([]byte, bool) {
	if isInt(raw) {
		return append(dst, raw...), true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !jsontext.IsNumber(raw) || math.Abs(f) > math.MaxInt32 {
		return dst, false
	}
	return strconv.AppendInt(dst, int64(f), 10), true
}

// isInt reports whether b is a number without fraction in the range of GraphQL's Int.
func isInt(b []byte) bool {
	if len(b) == 0 || len(b) > len("-2147483648") {
		return false
	}
	_, err := strconv.ParseInt(string(b), 10, 32)
	return err == nil && jsontext.IsNumber(b)
}
