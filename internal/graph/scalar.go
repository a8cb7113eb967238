package graph

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// scalarKind is how values of a scalar type are written.
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

// scalarWords says what a value must be.
func scalarWords(kind scalarKind) string {
	switch kind {
	case scalarString:
		return "a text"
	case scalarInt:
		return "a whole number of 32 bits"
	case scalarFloat:
		return "a number"
	case scalarBoolean:
		return "true or false"
	default:
		return "JSON"
	}
}

// appendScalar appends a value of a document, which is neither null nor an array, in the form of a type: as it is where that
// fits, else as what the index takes it for. False when it is nothing of the kind.
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
	case kind == scalarString: // of a number or a boolean, the text as it was written
		return append(append(append(dst, '"'), raw...), '"'), true
	case kind == scalarBoolean:
		return appendBoolean(dst, raw)
	}
	if text {
		raw = []byte(strings.TrimSpace(unquoted(raw)))
	}
	if kind == scalarFloat {
		return append(dst, raw...), isNumber(raw)
	}
	return appendInt(dst, raw)
}

// appendBoolean knows the texts that the index takes for booleans.
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

// appendInt appends a number without its fraction, as the index cuts it off.
func appendInt(dst, raw []byte) ([]byte, bool) {
	if isInt(raw) {
		return append(dst, raw...), true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !isNumber(raw) || math.Abs(f) > math.MaxInt32 {
		return dst, false
	}
	return strconv.AppendInt(dst, int64(f), 10), true
}

// decoded returns the text of a string of JSON with escapes.
func decoded(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// decodedName is decoded for what stands between the quotes.
func decodedName(name []byte) string {
	return decoded(append(append([]byte{'"'}, name...), '"'))
}

// maxSafeInteger is the largest integer up to which JavaScript tells all apart.
const maxSafeInteger = 1<<53 - 1

// unsafeInteger reports whether a value is an integer that JavaScript would round.
func unsafeInteger(raw []byte) bool {
	if len(raw) < 16 || !isNumber(raw) || bytes.ContainsAny(raw, ".eE") {
		return false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err != nil || n > maxSafeInteger || n < -maxSafeInteger
}
