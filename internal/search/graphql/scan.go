package graphql

import (
	"strconv"

	"tutti/internal/jsontext"
)

// span is the position of a value in a document.
type span = jsontext.Span

// inside returns the offset of the value at a path of names, len(doc) if there is none.
func inside(doc []byte, path []string) int {
	at := jsontext.Space(doc, 0)
	for _, name := range path {
		next := len(doc)
		jsontext.Members(doc, at, func(found []byte, escaped bool, v span) bool {
			if string(found) == name || escaped && jsontext.Unescape(found) == name {
				next = v.Start
			}
			return true
		})
		at = next
	}
	return at
}

// isInt reports whether b is a number without fraction in the range of GraphQL's Int.
func isInt(b []byte) bool {
	if len(b) == 0 || len(b) > len("-2147483648") {
		return false
	}
	_, err := strconv.ParseInt(string(b), 10, 32)
	return err == nil && jsontext.IsNumber(b)
}
