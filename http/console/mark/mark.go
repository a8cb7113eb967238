// Package mark shows violations of a schema at the lines of a JSON text where their values begin.
package mark

import (
	"bytes"
	"strconv"
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

const (
	// maxLines is how many lines of a text are shown as a whole; of a longer one only contextLines on each side of a violation, and of
	// each line and each pointer maxLine bytes.
	maxLines, contextLines, maxLine = 500, 3, 500
	// maxNesting is how many levels of a text are searched for the values of violations.
	maxNesting = 256
)

// Line is one line of a text with its violations.
type Line struct {
	Number int
	Text   string
	Notes  []string
}

// Lines returns the lines of a JSON text, each with the violations of the values that begin there; whole is what a violation of the whole
// text is of. Of a long text it returns only the lines around violations. It returns nil without violations.
func Lines(text string, violations []core.Violation, whole string) []Line {
	if len(violations) == 0 {
		return nil
	}
	places := locate(text, violations)
	notes := map[int][]string{}
	for _, v := range violations {
		where := shortened(v.Pointer)
		if where == "" {
			where = whole
		}
		line := places.lineOf(v.Pointer)
		notes[line] = append(notes[line], where+": "+v.Message)
	}
	near := make(map[int]bool, (2*contextLines+1)*len(notes))
	for line := range notes {
		for n := line - contextLines; n <= line+contextLines; n++ {
			near[n] = true
		}
	}
	long := strings.Count(text, "\n") >= maxLines
	var marked []Line
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if long && !near[number] {
			continue
		}
		marked = append(marked, Line{Number: number, Text: shortened(strings.TrimSuffix(line, "\r")), Notes: notes[number]})
	}
	return marked
}

// shortened returns the start of a line or of a pointer that is too long to be read.
func shortened(line string) string {
	if len(line) <= maxLine {
		return line
	}
	return strings.ToValidUTF8(line[:maxLine], "") + " …"
}

// place is a value of a JSON text that a violation is of, or one around it.
type place struct {
	// line is the number of the line on which the value begins, 0 if the text lacks it.
	line int
	// inside are the places in it by the names of members and the indexes of items.
	inside map[string]*place
}

// segments returns the names and indexes of a JSON pointer.
func segments(pointer string) []string {
	names := strings.Split(pointer, "/")[1:]
	for i, name := range names {
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	}
	return names
}

// lineOf returns the number of the line on which the value of a pointer begins, or what is around it if the text lacks it.
func (p *place) lineOf(pointer string) int {
	line := max(1, p.line)
	for _, name := range segments(pointer) {
		if p = p.inside[name]; p == nil || p.line == 0 {
			break
		}
		line = p.line
	}
	return line
}

// locate returns the places of violations in a JSON text. It finds none in a text that nests more than maxNesting levels.
func locate(text string, violations []core.Violation) *place {
	root := &place{}
	l := locator{text: []byte(text), line: 1}
	if jsontext.TooDeep(l.text, maxNesting) {
		return root
	}
	for _, v := range violations {
		at := root
		for _, name := range segments(v.Pointer) {
			if at.inside[name] == nil {
				if at.inside == nil {
					at.inside = map[string]*place{}
				}
				at.inside[name] = &place{}
			}
			at = at.inside[name]
		}
	}
	l.value(jsontext.Space(l.text, 0), root)
	return root
}

type locator struct {
	text []byte
	// line is the number of the line at offset.
	line, offset int
}

// value reads the value that begins at i and returns the index after it. It looks only into values with places in them. What is not JSON
// ends the text.
func (l *locator) value(i int, at *place) int {
	if at == nil || i == len(l.text) {
		return jsontext.Value(l.text, i)
	}
	l.line += bytes.Count(l.text[l.offset:i], []byte("\n"))
	l.offset, at.line = i, l.line
	opening := l.text[i]
	if at.inside == nil || opening != '{' && opening != '[' {
		return jsontext.Value(l.text, i)
	}
	for n := 0; ; n++ {
		if i = jsontext.Space(l.text, i+1); i == len(l.text) || l.text[i] == opening+2 { // } and ] are two after { and [
			return min(i+1, len(l.text))
		}
		name := ""
		if opening == '[' {
			name = strconv.Itoa(n)
		} else {
			if l.text[i] != '"' {
				return len(l.text)
			}
			end, _ := jsontext.String(l.text, i)
			name = jsontext.Unquote(l.text[i:end])
			if i = jsontext.Space(l.text, end); i == len(l.text) || l.text[i] != ':' {
				return len(l.text)
			}
			i = jsontext.Space(l.text, i+1)
		}
		end := l.value(i, at.inside[name])
		if end == i {
			return len(l.text)
		}
		if i = jsontext.Space(l.text, end); i == len(l.text) || l.text[i] != ',' {
			return min(i+1, len(l.text))
		}
	}
}
