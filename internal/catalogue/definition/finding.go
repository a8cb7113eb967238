package definition

import (
	"fmt"
	"strings"
	"unicode"

	"tutti/internal/core"
)

// Bounds of what is told of one catalogue: a foreign file among the others must not bury the rest.
const (
	maxWarnings   = 50
	maxViolations = 50
	maxShownRunes = 80
	// maxShownBytes is how much of a text is looked at in order to show it.
	maxShownBytes = 4096
)

// violation is one thing that keeps a catalogue from being built.
type violation struct {
	pointer, message, hint string
}

// findings collects what is wrong with a catalogue. Warnings that differ only in the index of a list are told once.
type findings struct {
	// violations are the first of them, failed counts all.
	violations []violation
	failed     int
	warnings   []warning
	// at finds a warning again by its text without indices.
	at      map[string]int
	omitted int
}

type warning struct {
	text    string
	repeats int
}

// fail adds a fault of a whole file or folder.
func (f *findings) fail(file, what, hint string) {
	f.addViolation(violation{"", file + " " + what, hint})
}

// failAt adds a fault at a pointer in a file.
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

// locate says where something is, and what is said of it or of its value.
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

// full reports whether another warning would only be counted.
func (f *findings) full() bool { return len(f.warnings) >= maxWarnings }

// texts returns the warnings, nil when there are none.
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

// err returns the first fault, with all of them as its violations; nil when there is none.
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

// withoutIndices returns a pointer with a star for each index.
func withoutIndices(pointer string) string {
	parts := strings.Split(pointer, "/")
	for i, part := range parts {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// printable makes a text of a file or a name of the disk fit for a message: short, on one line, and text.
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

// quoted is shown between quotes.
func quoted(text string) string { return `"` + printable(text) + `"` }
