package violation

import (
	"slices"
	"strconv"

	"tutti/internal/core"
)

// MaxViolations bounds the violations of one body that are reported.
const MaxViolations = 100

// List collects violations in the order in which they are found, each once.
type List struct {
	Violations []core.Violation
	// Truncated is set if there are more than Violations.
	Truncated bool
}

// NewList returns a list of one violation.
func NewList(pointer, keyword, message string) *List {
	return &List{Violations: []core.Violation{{Pointer: pointer, Message: message, Keyword: keyword}}}
}

// Add adds a violation unless it is known or the list is full.
func (l *List) Add(v core.Violation) {
	if l.Truncated || slices.Contains(l.Violations, v) {
		return
	}
	if len(l.Violations) == MaxViolations {
		l.Truncated = true
		return
	}
	l.Violations = append(l.Violations, v)
}

// Within returns the violations with their pointers below prefix.
func (l *List) Within(prefix string) *List {
	moved := &List{Truncated: l.Truncated}
	for _, v := range l.Violations {
		v.Pointer = prefix + v.Pointer
		moved.Violations = append(moved.Violations, v)
	}
	return moved
}

// Join adds the violations of another list.
func (l *List) Join(other *List) {
	for _, v := range other.Violations {
		l.Add(v)
	}
	l.Truncated = l.Truncated || other.Truncated
}

// Invalid returns the violations as a *core.Error with CodeInvalid. Its message begins with what, such as "the analysis does not
// match …".
func (l *List) Invalid(errorID, what string) error {
	e := &core.Error{Code: core.CodeInvalid, ErrorID: errorID, Message: what, Violations: l.Violations}
	if len(l.Violations) > 0 {
		first := l.Violations[0]
		where := first.Pointer
		if where == "" {
			where = "the whole"
		}
		e.Message += ": " + where + ": " + first.Message
	}
	switch {
	case l.Truncated:
		e.Message += ", and more; only the first " + strconv.Itoa(MaxViolations) + " violations are listed"
		e.Hint = "fix these and send it again to see the others"
	case len(l.Violations) > 1:
		e.Message += ", and " + Counted(len(l.Violations)-1, "more violation", "more violations")
	}
	return e
}
