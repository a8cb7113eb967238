package upstream

import (
	"errors"
	"slices"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

const (
	// maxCaptured bounds the bytes of a member's name, and of a requested value, in a record that is skipped. Longer ones match no
	// name, and are not valid ids of an index.
	maxCaptured = 8 << 10
	// maxEscape is the length of the longest escape: a surrogate pair.
	maxEscape = 12
)

// skipOversized reads the record at pos to its end, in memory that does not grow with it. It accepts what scanRecord accepts and finds
// the same members.
func (s *Scanner) skipOversized() (Item, error) {
	s.skipped, s.skippedFrom = &core.DeadLetterDocumentBuilder{}, s.pos
	defer func() { s.skipped = nil }()
	item := Item{Values: make([][]byte, len(s.format.Members))}
	if err := s.list('}', func() error { return s.skipMember(&item) }); err != nil {
		return Item{}, err
	}
	s.noteSkipped()
	item.TooLarge = s.skipped.Document()
	return item, nil
}

// skipMember reads a member of the record, and keeps its value if it is requested.
func (s *Scanner) skipMember(item *Item) error {
	name, err := s.captured()
	if err != nil {
		return err
	}
	c, err := s.afterColon()
	if err != nil {
		return err
	}
	switch n := slices.Index(s.format.Members, string(name)); {
	case n >= 0 && c == '"':
		item.Values[n], err = s.captured()
		return err
	case n >= 0:
		item.Values[n] = nil
	case s.format.BoolMember != "" && string(name) == s.format.BoolMember:
		item.Bool = optionalBoolOf(c)
	}
	return s.skipValue(1)
}

// noteSkipped adds what was consumed since it was last called to the excerpt of the record that is skipped.
func (w *window) noteSkipped() {
	if w.skipped != nil {
		w.skipped.Add(w.buf[w.skippedFrom:w.pos])
		w.skippedFrom = w.pos
	}
}

// captured reads the string at pos and returns its text, nil when it has more than maxCaptured bytes.
func (w *window) captured() ([]byte, error) {
	if w.buf[w.pos] != '"' {
		return nil, notJSON()
	}
	from, err := w.token(maxCaptured, func(buf []byte, i int) int {
		end, _ := scanString(buf, i)
		return end
	})
	if errors.Is(err, ErrTooLarge) {
		return nil, w.skipString()
	}
	if err != nil {
		return nil, err
	}
	return jsontext.AppendUnescaped([]byte{}, w.buf[from+1:w.pos-1]), nil
}

// afterColon reads the colon after a name and returns the first byte of the value.
func (w *window) afterColon() (byte, error) {
	c, err := w.next()
	if err != nil {
		return 0, err
	}
	if c != ':' {
		return 0, notJSON()
	}
	w.pos++
	return w.next()
}

// skipValue reads a value that is nested in depth objects and arrays.
func (w *window) skipValue(depth int) error {
	switch c := w.buf[w.pos]; c {
	case '"':
		return w.skipString()
	case '{', '[':
		if depth++; depth > maxDepth {
			return tooDeep()
		}
		return w.list(c+2, func() error { // '[' + 2 is ']', '{' + 2 is '}'
			if c == '[' {
				return w.skipValue(depth)
			}
			if err := w.skipString(); err != nil {
				return err
			}
			if _, err := w.afterColon(); err != nil {
				return err
			}
			return w.skipValue(depth)
		})
	default:
		_, err := w.token(w.maxOther, func(buf []byte, i int) int { return scanValue(buf, i, depth, nil) })
		return err
	}
}

// skipString reads the string at pos, which may be of any length.
func (w *window) skipString() error {
	if w.buf[w.pos] != '"' {
		return notJSON()
	}
	w.pos++
	for {
		w.pos = jsontext.PlainEnd(w.buf[:w.end], w.pos)
		switch {
		case w.pos == w.end:
			if err := w.refill(); err != nil {
				return err
			}
		case w.buf[w.pos] == '"':
			w.pos++
			return nil
		case w.buf[w.pos] != '\\':
			return notJSON()
		default:
			if _, err := w.token(maxEscape, scanEscape); err != nil {
				return err
			}
		}
	}
}

// scanEscape parses the escape at i.
func scanEscape(buf []byte, i int) int {
	_, end, state := jsontext.Escape(buf, i)
	return indexOf(end, state)
}
