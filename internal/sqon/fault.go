package sqon

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tutti/internal/core"
)

// Keywords of the violations that Parse and Check tell (core.Violation).
const (
	// KeywordJSON: what was given is not JSON, or not text.
	KeywordJSON = "json"
	// KeywordNode: a filter is not an object.
	KeywordNode = "node"
	// KeywordMember: an object has a member that means nothing there, or one twice.
	KeywordMember    = "member"
	KeywordOp        = "op"
	KeywordContent   = "content"
	KeywordFieldName = "fieldName"
	KeywordValue     = "value"
	KeywordPivot     = "pivot"
	// KeywordDepth, KeywordValues and KeywordNodes: the filter is over MaxDepth, MaxValues, MaxNodes.
	KeywordDepth  = "depth"
	KeywordValues = "values"
	KeywordNodes  = "nodes"
)

// Limits of what Parse accepts.
const (
	// MaxDepth is how many groups and clauses may be inside each other, the outermost counted.
	MaxDepth = 50
	// MaxValues is how many values, and names in lists of field names, a filter may have together.
	MaxValues = 10_000
	// MaxNodes is how many groups and clauses a filter may have.
	MaxNodes = 20_000
	// MaxFaults is how many faults are told at once.
	MaxFaults = 20
)

// maxExcerpt is how much of the input a message repeats, in characters.
const maxExcerpt = 40

// faults collects violations, MaxFaults at most.
type faults struct {
	list []core.Violation
}

// add tells a fault.
func (f *faults) add(pointer, keyword, message string) {
	if !f.full() {
		f.list = append(f.list, core.Violation{Pointer: pointer, Message: message, Keyword: keyword})
	}
}

// full tells that no more faults are kept, so that there is no use in looking for them.
func (f *faults) full() bool { return len(f.list) >= MaxFaults }

// err returns the faults as one error, nil when there are none.
func (f *faults) err() error {
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

// pointerExcerpt shortens a pointer to its end, with everything escaped that does not print.
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

// excerpt quotes the beginning of a text of the input, with everything escaped that does not print.
func excerpt(text string) string {
	n := 0
	for i := range text {
		if n++; n > maxExcerpt {
			return strconv.Quote(text[:i] + "…")
		}
	}
	return strconv.Quote(text)
}

// pointerPart shortens a name that is too long to be told in a pointer or a suggestion.
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

// meant returns the end of a message that names the nearest valid word, "" when none is near.
func meant(given string, words ...string) string {
	return suggested(core.Suggest(given, slices.Values(words)))
}

// suggested returns the end of a message that names a word, "" for none. Unlike an excerpt the word is whole, as far as one who
// compares it with what was given needs it.
func suggested(word string) string {
	if word == "" {
		return ""
	}
	return ", did you mean " + strconv.Quote(pointerPart(word)) + "?"
}
