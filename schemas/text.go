package schemas

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"tutti/internal/core"
)

// Lengths that a message shows of what a client sent or a schema says.
const (
	maxQuoted = 80
	maxListed = 20
)

// quoted shows a text in a message, shortened.
func quoted(s string) string {
	return strconv.Quote(shortened(s, maxQuoted))
}

func shortened(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit]) + "…"
}

// listed joins what a message enumerates, shortened.
func listed(words []string) string {
	more := ""
	if len(words) > maxListed {
		more = " and " + strconv.Itoa(len(words)-maxListed) + " more"
		words = words[:maxListed]
	}
	return strings.Join(words, ", ") + more
}

// counted gives a number with its noun.
func counted(n int, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return strconv.Itoa(n) + " " + plural
}

// pointerToken writes one token of a JSON pointer (RFC 6901) with its slash.
func pointerToken(dst []byte, token string) []byte {
	return core.AppendPointer(dst, token)
}

// appendJSON writes v as JSON. <, > and & stay as they are: no answer is read as HTML.
func appendJSON(dst []byte, v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...), nil
}

// appendString writes s as a JSON string.
func appendString(dst []byte, s string) []byte {
	dst, _ = appendJSON(dst, s) // a string always marshals
	return dst
}
