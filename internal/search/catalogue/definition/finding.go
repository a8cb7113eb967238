package definition

import (
	"fmt"
	"strings"
	"unicode"

	"tutti/internal/core"
)

// Limits of the findings of one catalogue: one unrelated file must not hide the others.
const (
	maxWarnings   = 50
	maxViolations = 50
	maxShownRunes = 80
	// maxShownBytes is how much of a string is processed for a message.
	maxShownBytes = 4096
)

// violation is one error that prevents building a catalogue.
type violation struct {
	pointer, message, hint string
}

// findings collects the problems of a catalogue. Warnings that differ only in list indices are combined.
type findings struct {
	// violations are the first ones, failed is the number of all.
	violations []violation
	failed     int
	warnings   []warning
	// at finds a warning by its text without indices.
	at      map[string]int
	omitted int
}

type warning struct {
	text    string
	repeats int
}

// fail adds a violation of a whole file or folder.
func (f *findings) fail(file, what, hint string) {
	f.addViolation(violation{"", file + " " + what, hint})
}

// failAt adds a violation at a pointer in a file.
func (f *findings) failAt(pointer, file, what, hint string) {
	if pointer == "" {
		f.fail(file, what, hint)
		return
	}
	if f.failed >= maxViolations {
		f.failed++
		return
	}
	f.addViolation(violation{pointer, locate(pointer, file, what), hint})
}

func (f *findings) addViolation(found violation) {
	if f.failed++; len(f.violations) < maxViolations {
		f.violations = append(f.violations, found)
	}
}

// warnAt adds a warning at a pointer in a file.
func (f *findings) warnAt(pointer, file, what string) {
	if f.full() {
		f.omitted++
		return
	}
	f.add(withoutIndices(pointer)+" "+file+" "+what, func() string { return locate(pointer, file, what) })
}

// locate returns a message with its location.
func locate(pointer, file, what string) string {
	if strings.HasPrefix(what, `"`) {
		return printable(pointer) + " in " + file + ": " + what
	}
	return printable(pointer) + " in " + file + " " + what
}

// warn adds a warning.
func (f *findings) warn(text string) {
	f.add(text, func() string { return text })
}

func (f *findings) add(key string, text func() string) {
	if i, is := f.at[key]; is {
		f.warnings[i].repeats++
		return
	}
	if f.full() {
		f.omitted++
		return
	}
	if f.at == nil {
		f.at = map[string]int{}
	}
	f.at[key] = len(f.warnings)
	f.warnings = append(f.warnings, warning{text: text()})
}

// full reports whether further warnings are only counted.
func (f *findings) full() bool { return len(f.warnings) >= maxWarnings }

// texts returns the warnings, nil for none.
func (f *findings) texts() []string {
	var texts []string
	for _, w := range f.warnings {
		if w.repeats > 0 {
			w.text += fmt.Sprintf(" (and %d more like it)", w.repeats)
		}
		texts = append(texts, w.text)
	}
	if f.omitted > 0 {
		texts = append(texts, fmt.Sprintf("%d more warnings are not listed", f.omitted))
	}
	return texts
}

// err returns the first violation with all of them as Violations; nil for none.
func (f *findings) err() *core.Error {
	if len(f.violations) == 0 {
		return nil
	}
	err := &core.Error{Code: core.CodeInvalid, Message: f.violations[0].message, Hint: f.violations[0].hint}
	for _, each := range f.violations[:min(len(f.violations), maxViolations)] {
		err.Violations = append(err.Violations, core.Violation{Pointer: printable(each.pointer), Message: each.message})
	}
	return err
}

// withoutIndices replaces each index in a pointer by a star.
func withoutIndices(pointer string) string {
	parts := strings.Split(pointer, "/")
	for i, part := range parts {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// printable makes a string from a file or a file name fit for a message: short, on one line, valid UTF-8.
func printable(text string) string {
	text = text[:min(len(text), maxShownBytes)]
	runes := []rune(strings.ToValidUTF8(text, "\uFFFD"))
	if len(runes) > maxShownRunes {
		runes = append(runes[:maxShownRunes-1], '…')
	}
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = '_'
		}
	}
	return string(runes)
}

// quoted returns the printable string in quotes.
func quoted(text string) string { return `"` + printable(text) + `"` }
