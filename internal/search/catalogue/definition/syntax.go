package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// syntaxError returns where and why data is not valid JSON, with a hint for the most common cause.
func syntaxError(data []byte, err error) *fileError {
	syntax, is := errors.AsType[*json.SyntaxError](err)
	if !is {
		return &fileError{"is not valid JSON", "fix the file"}
	}
	at := min(max(int(syntax.Offset)-1, 0), len(data))
	if strings.HasPrefix(syntax.Error(), "unexpected end") {
		at = len(data)
	}
	line, column := position(data, at)
	return &fileError{
		fmt.Sprintf("is not valid JSON at line %d, column %d: %s", line, column, syntax.Error()),
		syntaxHint(data, at, syntax.Error()),
	}
}

func syntaxHint(data []byte, at int, message string) string {
	before := bytes.TrimRight(data[:at], " \t\r\n")
	follows := func(c byte) bool { return len(before) > 0 && before[len(before)-1] == c }
	var c byte
	if at < len(data) {
		c = data[at]
	}
	switch {
	case at >= len(data):
		return "a quote or a closing bracket is missing"
	case strings.Contains(message, "after top-level value"):
		return "a file holds one object: put everything into it"
	case (c == '}' || c == ']') && follows(','):
		return "remove the comma before it"
	case c == '/' || c == '#':
		return "JSON has no comments: remove them"
	case c == '\'':
		return "strings and keys need double quotes"
	case strings.Contains(message, "in string literal"):
		return `a string cannot contain line breaks or tabs: write \n or \t`
	case c == '"' && strings.Contains(message, "after "):
		return "a comma is missing before it"
	default:
		return "fix the file there"
	}
}

// position returns the line and the column, in characters, of an offset; both start at 1.
func position(data []byte, offset int) (line, column int) {
	before := data[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[start:]) + 1
}
