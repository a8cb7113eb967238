package indexing

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

// maxNesting is the maximum nesting of a document that is returned as JSON: parsers of many languages fail at about a
// thousand levels, and could then not read the letter.
const maxNesting = 500

// letterBody is a dead letter in JSON (CONTRACT section 1). It has at most one of Document, DocumentText and
// DocumentBase64, and none in a list. EngineReason is not hidden: only operators read dead letters.
type letterBody struct {
	ID           string        `json:"id"`
	Repository   string        `json:"repository"`
	Organization string        `json:"organization,omitempty"`
	RecordID     string        `json:"recordId,omitempty"`
	Reason       string        `json:"reason"`
	Hint         string        `json:"hint,omitempty"`
	EngineType   string        `json:"engineType,omitempty"`
	EngineReason string        `json:"engineReason,omitempty"`
	Attempts     int           `json:"attempts"`
	FirstAt      time.Time     `json:"firstAt"`
	LastAt       time.Time     `json:"lastAt"`
	JobID        string        `json:"jobId,omitempty"`
	Size         int           `json:"size,omitempty"`
	SHA256       string        `json:"sha256,omitempty"`
	Truncated    bool          `json:"truncated"`
	Source       string        `json:"source,omitempty"`
	Position     string        `json:"position,omitempty"`
	Request      *core.Request `json:"request,omitempty"`
	letterDocument
}

// letterDocument is the stored part of a document, in its most readable form.
type letterDocument struct {
	Document       json.RawMessage `json:"document,omitempty"`
	DocumentText   string          `json:"documentText,omitempty"`
	DocumentBase64 []byte          `json:"documentBase64,omitempty"`
}

// newLetterBody returns the body of a letter without its document.
func newLetterBody(l core.DeadLetter) letterBody {
	b := letterBody{
		ID: l.ID, Repository: l.Repository, Organization: l.Organization, RecordID: l.RecordID, Reason: l.Reason,
		Hint: l.Hint, EngineType: l.EngineType, EngineReason: l.EngineReason, Attempts: l.Attempts,
		FirstAt: l.FirstAt.UTC(), LastAt: l.LastAt.UTC(), JobID: l.JobID, Size: l.Size, SHA256: l.SHA256,
		Truncated: l.Truncated, Source: l.Source, Position: l.Position,
	}
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

// wholeLetterBody returns the body of a letter with its document.
func wholeLetterBody(l core.DeadLetter) letterBody {
	b := newLetterBody(l)
	b.letterDocument = newLetterDocument(l.Document, l.Truncated)
	return b
}

// newLetterDocument returns a document as a JSON value if it is one, as text if isText, else as base64. It never grows
// to more than twice its size, because text with characters that JSON escapes in six bytes is base64.
func newLetterDocument(document []byte, truncated bool) letterDocument {
	if !truncated && utf8.Valid(document) && !jsontext.TooDeep(document, maxNesting) && json.Valid(document) {
		return letterDocument{Document: document}
	}
	text := document
	if truncated {
		text = trimPartialRune(text)
	}
	if isText(text) {
		return letterDocument{DocumentText: string(text)}
	}
	return letterDocument{DocumentBase64: document}
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
