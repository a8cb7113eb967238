package indexing

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

// maxNesting is the maximum nesting of a document that is returned as JSON: parsers of many languages fail at about a
// thousand levels, and could then not read the letter.
const maxNesting = 500

// letterBody is a dead letter in JSON (CONTRACT section 1), without its version. It has at most one of Document, DocumentText and
// DocumentBase64, and none in a list. EngineReason is not hidden: only operators read dead letters.
type letterBody struct {
	core.DeadLetter
	Truncated      bool            `json:"truncated"`
	Document       json.RawMessage `json:"document,omitempty"`
	DocumentText   string          `json:"documentText,omitempty"`
	DocumentBase64 []byte          `json:"documentBase64,omitempty"`
}

// newLetterBody returns the body of a letter without its document.
func newLetterBody(l core.DeadLetter) letterBody {
	b := letterBody{DeadLetter: l, Truncated: l.Truncated}
	b.Version = 0
	b.FirstAt, b.LastAt = l.FirstAt.UTC(), l.LastAt.UTC()
	if l.Request != nil {
		request := *l.Request
		request.ReceivedAt, request.Part = request.ReceivedAt.UTC(), nil // its fields are the record's
		if !request.NotBefore.IsZero() {
			request.NotBefore = request.NotBefore.UTC()
		}
		b.Request = &request
	}
	return b
}

// wholeLetterBody returns the body of a letter with its document: as a JSON value if it is one, as text if isText, else as base64. It never
// grows to more than twice its size, because text with characters that JSON escapes in six bytes is base64.
func wholeLetterBody(l core.DeadLetter) letterBody {
	b := newLetterBody(l)
	text := l.Document
	if l.Truncated {
		text = trimPartialRune(text)
	}
	switch {
	case !l.Truncated && utf8.Valid(l.Document) && !jsontext.TooDeep(l.Document, maxNesting) && json.Valid(l.Document):
		b.Document = l.Document
	case isText(text):
		b.DocumentText = string(text)
	default:
		b.DocumentBase64 = l.Document
	}
	return b
}

// trimPartialRune removes an incomplete character at the end of a truncated text.
func trimPartialRune(text []byte) []byte {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

// isText reports whether b is UTF-8 without control characters other than white space.
func isText(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexFunc(b, func(c rune) bool {
		return c < ' ' && c != '\t' && c != '\n' && c != '\r'
	}) < 0
}
