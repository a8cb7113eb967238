package console

import (
	"encoding/json"
	"strconv"
	"strings"

	"tutti/internal/core"
)

const (
	// maxLines is how many lines of a text are shown as a whole; of a longer one only contextLines on each side of a violation, and of
	// each line maxLine bytes.
	maxLines, contextLines, maxLine = 500, 3, 500
)

// mark returns the lines of a JSON text, each with the violations of the values that begin there; whole is what a violation of the whole
// text is of. Of a long text it returns only the lines around violations. It returns nil without violations.
func mark(text string, violations []core.Violation, whole string) []markedLine {
	if len(violations) == 0 {
		return nil
	}
	lines := locate(text)
	notes := map[int][]string{}
	for _, v := range violations {
		at := v.Pointer
		for {
			if _, known := lines[at]; known || at == "" {
				break
			}
			at = at[:strings.LastIndexByte(at, '/')]
		}
		line := max(1, lines[at])
		where := v.Pointer
		if where == "" {
			where = whole
		}
		notes[line] = append(notes[line], where+": "+v.Message)
	}
	near := make(map[int]bool, (2*contextLines+1)*len(notes))
	for line := range notes {
		for n := line - contextLines; n <= line+contextLines; n++ {
			near[n] = true
		}
	}
	long := strings.Count(text, "\n") >= maxLines
	var marked []markedLine
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if long && !near[number] {
			continue
		}
		line = strings.TrimSuffix(line, "\r")
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine], "") + " …"
		}
		marked = append(marked, markedLine{Number: number, Text: line, Notes: notes[number]})
	}
	return marked
}

// locate returns the number of the line on which each value of a JSON text begins, by its JSON pointer.
func locate(text string) map[string]int {
	l := locator{text: text, decoder: json.NewDecoder(strings.NewReader(text)), line: 1, lines: map[string]int{}}
	l.decoder.UseNumber()
	_ = l.value("") // what is not JSON has no more lines
	return l.lines
}

type locator struct {
	text    string
	decoder *json.Decoder
	// line is the number of the line at offset.
	line   int
	offset int64
	lines  map[string]int
}

// value reads one value, with those in it.
func (l *locator) value(pointer string) error {
	token, err := l.decoder.Token()
	if err != nil {
		return err
	}
	at := l.decoder.InputOffset()
	l.line += strings.Count(l.text[l.offset:at], "\n")
	l.offset = at
	l.lines[pointer] = l.line
	opening, is := token.(json.Delim)
	if !is {
		return nil
	}
	for i := 0; l.decoder.More(); i++ {
		name := strconv.Itoa(i)
		if opening == '{' {
			key, err := l.decoder.Token()
			if err != nil {
				return err
			}
			name, _ = key.(string)
			name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		}
		if err := l.value(pointer + "/" + name); err != nil {
			return err
		}
	}
	_, err = l.decoder.Token()
	return err
}
