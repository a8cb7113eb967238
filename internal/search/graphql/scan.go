package graphql

import (
	"bytes"
	"strconv"

	"tutti/internal/rawjson"
)

// span is the position of a value in a document.
type span = rawjson.Span

// inside returns the offset of the value at a path of names, len(doc) if there is none.
func inside(doc []byte, path []string) int {
	at := rawjson.Space(doc, 0)
	for _, name := range path {
		next := len(doc)
		rawjson.Members(doc, at, func(found []byte, escaped bool, v span) bool {
			if string(found) == name || escaped && decodedName(found) == name {
				next = v.Start
			}
			return true
		})
		at = next
	}
	return at
}

// unquoted decodes a JSON string.
func unquoted(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b[1 : len(b)-1])
	}
	return decoded(b)
}

// isNumber reports whether b is a JSON number.
func isNumber(b []byte) bool {
	i := 0
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	whole := i
	if !digits() || b[whole] == '0' && i > whole+1 {
		return false
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(b)
}

// isInt reports whether b is a number without fraction in the range of GraphQL's Int.
func isInt(b []byte) bool {
	if len(b) == 0 || len(b) > len("-2147483648") {
		return false
	}
	_, err := strconv.ParseInt(string(b), 10, 32)
	return err == nil && isNumber(b)
}
