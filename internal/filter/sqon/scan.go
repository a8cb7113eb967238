package sqon

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
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

// str reads a string that starts here.
func (s *scanner) str() (string, bool) {
	s.at++
	rest := s.text[s.at:]
	// A local index makes this loop fast: values are most of a filter.
	for i := range len(rest) {
		c := rest[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		from := s.at
		s.at += i
		switch {
		case c == '\\':
			return s.escaped(from)
		case c != '"':
			return "", s.invalidJSON("a control character in a string")
		case !s.valid && !utf8.ValidString(rest[:i]):
			s.at = from
			return "", s.invalidJSON("a string is not valid UTF-8")
		}
		s.at++
		return rest[:i], true
	}
	s.at = len(s.text)
	return "", s.invalidJSON("")
}

// escaped reads the rest of a string from its first backslash on.
func (s *scanner) escaped(from int) (string, bool) {
	var b strings.Builder
	b.WriteString(s.text[from:s.at])
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			text := b.String()
			if !s.valid && !utf8.ValidString(text) {
				s.at = from
				return "", s.invalidJSON("a string is not valid UTF-8")
			}
			return text, true
		case c == '\\':
			r, ok := s.escape()
			if !ok {
				return "", false
			}
			b.WriteRune(r)
		case c < ' ':
			return "", s.invalidJSON("a control character in a string")
		default:
			b.WriteByte(c)
			s.at++
		}
	}
	return "", s.invalidJSON("")
}

// escape reads one escape sequence.
func (s *scanner) escape() (rune, bool) {
	if s.at+1 >= len(s.text) {
		s.at = len(s.text)
		return 0, s.invalidJSON("")
	}
	const plain, meaning = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	c := s.text[s.at+1]
	if i := strings.IndexByte(plain, c); i >= 0 {
		s.at += 2
		return rune(meaning[i]), true
	}
	r, ok := s.hex(s.at)
	if !ok {
		return 0, s.invalidJSON("an unknown escape")
	}
	if !utf16.IsSurrogate(r) {
		s.at += 6
		return r, true
	}
	low, _ := s.hex(s.at + 6)
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, s.invalidJSON("an unpaired surrogate")
	}
	s.at += 12
	return r, true
}

// hex returns the code unit of a \u escape at a position.
func (s *scanner) hex(at int) (rune, bool) {
	if at+6 > len(s.text) || s.text[at] != '\\' || s.text[at+1] != 'u' {
		return 0, false
	}
	r := rune(0)
	for _, c := range []byte(s.text[at+2 : at+6]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number reads a number that starts here and returns it as written.
func (s *scanner) number() (string, bool) {
	n := numberLength(s.text[s.at:])
	if n == 0 {
		return "", s.invalidJSON("expected a value")
	}
	text := s.text[s.at : s.at+n]
	s.at += n
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
		s.at++
		for first := true; ; first = false {
			_, more, ok := s.member(first)
			if !ok || !more {
				return ok
			}
			if !s.skip(depth + 1) {
				return false
			}
		}
	case '[':
		s.at++
		for first := true; ; first = false {
			more, ok := s.more(first, ']')
			if !ok || !more {
				return ok
			}
			if !s.skip(depth + 1) {
				return false
			}
		}
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

// numberLength returns the length of the JSON number at the start of text, 0 when there is none.
func numberLength(text string) int {
	at := 0
	digits := func() bool {
		from := at
		for at < len(text) && '0' <= text[at] && text[at] <= '9' {
			at++
		}
		return at > from
	}
	if at < len(text) && text[at] == '-' {
		at++
	}
	if at < len(text) && text[at] == '0' {
		at++
	} else if !digits() {
		return 0
	}
	if at < len(text) && text[at] == '.' {
		at++
		if !digits() {
			return 0
		}
	}
	if at < len(text) && (text[at] == 'e' || text[at] == 'E') {
		at++
		if at < len(text) && (text[at] == '+' || text[at] == '-') {
			at++
		}
		if !digits() {
			return 0
		}
	}
	return at
}
