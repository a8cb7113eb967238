package sqon

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"tutti/internal/base/jsontext"
)

// maxSkipped is the maximum depth of a value that is skipped.
const maxSkipped = 100

// scanner reads JSON (RFC 8259) strictly, once, from start to end. Its methods return false when reading has stopped, after
// recording the violation.
type scanner struct {
	violations
	text string
	at   int
	// valid is set when the whole text is valid UTF-8, so that strings need no check.
	valid bool
	// pointer is that of the innermost filter being read.
	pointer string
}

// stop records the violation that stops reading.
func (s *scanner) stop(pointer, keyword, message string) bool {
	s.add(pointer, keyword, message)
	return false
}

// invalidJSON stops reading because the text is not JSON.
func (s *scanner) invalidJSON(what string) bool {
	if s.at >= len(s.text) {
		return s.stop(s.pointer, KeywordJSON, "invalid JSON: it ends too early")
	}
	return s.stop(s.pointer, KeywordJSON, fmt.Sprintf("invalid JSON at byte %d: %s", s.at, what))
}

// peek returns the next byte that is not white space, 0 at the end. A zero byte in the text is invalid too.
func (s *scanner) peek() byte {
	if s.at < len(s.text) && s.text[s.at] > ' ' {
		return s.text[s.at]
	}
	return s.afterSpace()
}

// afterSpace is peek after white space.
func (s *scanner) afterSpace() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// more moves to the next element of an array or member of an object that closing ends, after the opening bracket, and reports
// whether there is one.
func (s *scanner) more(first bool, closing byte) (more, ok bool) {
	c := s.peek()
	if c == closing {
		s.at++
		return false, true
	}
	if first {
		return true, true
	}
	if c != ',' {
		return false, s.invalidJSON(fmt.Sprintf("expected a comma or %q", closing))
	}
	s.at++
	if s.peek() == closing {
		return false, s.invalidJSON("nothing after a comma")
	}
	return true, true
}

// member moves to the value of an object's next member and returns its name.
func (s *scanner) member(first bool) (name string, more, ok bool) {
	if more, ok = s.more(first, '}'); !ok || !more {
		return "", false, ok
	}
	if s.peek() != '"' {
		return "", false, s.invalidJSON("expected the name of a member")
	}
	if name, ok = s.str(); !ok {
		return "", false, false
	}
	if s.peek() != ':' {
		return "", false, s.invalidJSON("expected a colon")
	}
	s.at++
	return name, true, true
}

// object reads an object that starts here: each is called with every member's name, and must read its value.
func (s *scanner) object(each func(name string) bool) bool {
	s.at++
	for first := true; ; first = false {
		name, more, ok := s.member(first)
		if !ok || !more {
			return ok
		}
		if !each(name) {
			return false
		}
	}
}

// array reads an array that starts here: each is called with the index of every element, and must read it.
func (s *scanner) array(each func(i int) bool) bool {
	s.at++
	for i := 0; ; i++ {
		more, ok := s.more(i == 0, ']')
		if !ok || !more {
			return ok
		}
		if !each(i) {
			return false
		}
	}
}

// str reads a string that starts here.
func (s *scanner) str() (string, bool) {
	from := s.at + 1
	s.at = jsontext.PlainEnd(s.text, from)
	if s.at >= len(s.text) {
		return "", s.invalidJSON("")
	}
	switch c := s.text[s.at]; {
	case c == '\\':
		return s.escaped(from)
	case c != '"':
		return "", s.invalidJSON("a control character in a string")
	case !s.valid && !utf8.ValidString(s.text[from:s.at]):
		s.at = from
		return "", s.invalidJSON("a string is not valid UTF-8")
	}
	s.at++
	return s.text[from : s.at-1], true
}

// escaped reads the rest of a string from its first backslash on.
func (s *scanner) escaped(from int) (string, bool) {
	var b strings.Builder
	b.WriteString(s.text[from:s.at])
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			s.at++
			text := b.String()
			if !s.valid && !utf8.ValidString(text) {
				s.at = from
				return "", s.invalidJSON("a string is not valid UTF-8")
			}
			return text, true
		case '\\':
			r, ok := s.escape()
			if !ok {
				return "", false
			}
			b.WriteRune(r)
		default:
			return "", s.invalidJSON("a control character in a string")
		}
		plain := s.at
		s.at = jsontext.PlainEnd(s.text, plain)
		b.WriteString(s.text[plain:s.at])
	}
	return "", s.invalidJSON("")
}

// escape reads one escape sequence.
func (s *scanner) escape() (rune, bool) {
	if s.at+1 >= len(s.text) {
		s.at = len(s.text)
		return 0, s.invalidJSON("")
	}
	r, end, state := jsontext.Escape(s.text, s.at)
	switch {
	case state != jsontext.Valid:
		return 0, s.invalidJSON("an unknown escape")
	case utf16.IsSurrogate(r):
		return 0, s.invalidJSON("an unpaired surrogate")
	}
	s.at = end
	return r, true
}

// number reads a number that starts here and returns it as written.
func (s *scanner) number() (string, bool) {
	end, _, state := jsontext.ScanNumber(s.text, s.at)
	if state != jsontext.Valid {
		return "", s.invalidJSON("expected a value")
	}
	text := s.text[s.at:end]
	s.at = end
	return text, true
}

// literal reads one of true, false and null.
func (s *scanner) literal(word string) bool {
	if !strings.HasPrefix(s.text[s.at:], word) {
		return s.invalidJSON("expected a value")
	}
	s.at += len(word)
	return true
}

// skip skips one value of any kind. depth counts from 0.
func (s *scanner) skip(depth int) bool {
	if depth > maxSkipped {
		return s.stop(s.pointer, KeywordDepth, fmt.Sprintf("a value is more than %d levels deep", maxSkipped))
	}
	switch c := s.peek(); c {
	case '{':
		return s.object(func(string) bool { return s.skip(depth + 1) })
	case '[':
		return s.array(func(int) bool { return s.skip(depth + 1) })
	case '"':
		_, ok := s.str()
		return ok
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		_, ok := s.number()
		return ok
	}
}

// kind returns the kind of value that starts with a byte, for a message.
func kind(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}
