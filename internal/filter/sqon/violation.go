package sqon

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tutti/internal/base/spelling"
	"tutti/internal/core"
)

// Values of core.Violation.Keyword in the errors of Parse and Check: what is not valid.
const (
	// KeywordJSON: the input is not valid JSON, or not valid UTF-8.
	KeywordJSON = "json"
	// KeywordNode: a filter is not an object.
	KeywordNode = "node"
	// KeywordMember: an object has an unknown or a duplicate member.
	KeywordMember = "member"
	// KeywordOp and the following: the member of this name is missing or not valid.
	KeywordOp        = "op"
	KeywordContent   = "content"
	KeywordFieldName = "fieldName"
	KeywordValue     = "value"
	KeywordPivot     = "pivot"
	// KeywordDepth, KeywordValues and KeywordNodes: the filter exceeds MaxDepth, MaxValues or MaxNodes.
	KeywordDepth  = "depth"
	KeywordValues = "values"
	KeywordNodes  = "nodes"
)

// Limits of what Parse accepts.
const (
	// MaxDepth is the maximum nesting depth of groups and clauses, counting the outermost.
	MaxDepth = 50
	// MaxValues is the maximum number of values in a filter; names in lists of field names count as values.
	MaxValues = 10_000
	// MaxNodes is the maximum number of groups and clauses in a filter.
	MaxNodes = 20_000
	// MaxViolations is the maximum number of violations in an error.
	MaxViolations = 20
)

// maxExcerpt is the maximum number of characters that a message quotes from the input.
const maxExcerpt = 40

// violations collects up to MaxViolations violations.
type violations struct {
	list []core.Violation
}

// add records a violation.
func (f *violations) add(pointer, keyword, message string) {
	if !f.full() {
		f.list = append(f.list, core.Violation{Pointer: pointer, Message: message, Keyword: keyword})
	}
}

// full reports whether the list is full: add ignores further violations, so the caller can stop.
func (f *violations) full() bool { return len(f.list) >= MaxViolations }

// err returns the violations as one error, nil for none.
func (f *violations) err() error {
	if len(f.list) == 0 {
		return nil
	}
	first := f.list[0]
	message := "the filter is not valid: " + first.Message
	if first.Pointer != "" {
		message = "the filter is not valid at " + pointerExcerpt(first.Pointer) + ": " + first.Message
	}
	if more := len(f.list) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	e := core.NewError(core.CodeInvalid, message)
	e.Violations = f.list
	return e
}

// pointerExcerpt returns a pointer, or the end of a long one, with unprintable characters escaped.
func pointerExcerpt(pointer string) string {
	const most = 120
	cut := max(0, len(pointer)-most)
	if i := strings.IndexByte(pointer[cut:], '/'); cut > 0 && i >= 0 {
		cut += i
	}
	quoted := strconv.Quote(pointer[cut:])
	if quoted = quoted[1 : len(quoted)-1]; cut > 0 {
		return "…" + quoted
	}
	return quoted
}

// excerpt quotes the start of an input text, with unprintable characters escaped.
func excerpt(text string) string {
	n := 0
	for i := range text {
		if n++; n > maxExcerpt {
			return strconv.Quote(text[:i] + "…")
		}
	}
	return strconv.Quote(text)
}

// pointerPart shortens a name that is too long for a pointer or a suggestion.
func pointerPart(name string) string {
	const most = 200
	if len(name) <= most {
		return name
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + "…"
}

// suggestWord returns the text that suggests the word closest to given, "" if none is close enough.
func suggestWord(given string, words ...string) string {
	return didYouMean(spelling.Suggest(given, slices.Values(words)))
}

// didYouMean returns the text that suggests word, "" if word is empty. It quotes more than maxExcerpt characters, so that readers can
// compare the word with the input.
func didYouMean(word string) string {
	if word == "" {
		return ""
	}
	return ", did you mean " + strconv.Quote(pointerPart(word)) + "?"
}
