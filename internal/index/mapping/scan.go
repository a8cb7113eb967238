package mapping

import (
	"strconv"

	"tutti/internal/jsontext"
)

// maxDepth is the maximum depth of objects and arrays in a document, as in Elasticsearch's JSON parser.
const maxDepth = 1000

// maxNumberBytes is the maximum length of a number, as in Elasticsearch's JSON parser.
const maxNumberBytes = 1000

// scanner parses one JSON text strictly, token by token, without copying. Its methods move pos after what they read. On an error
// they set problem and return false.
type scanner struct {
	doc     []byte
	pos     int
	depth   int
	problem string
}

func (s *scanner) fail(reason string) bool {
	if s.problem == "" {
		s.problem = reason + " at byte " + strconv.Itoa(s.pos)
	}
	return false
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.doc) {
		switch c := s.doc[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// str reads a string at its opening quote and returns its inside, with escapes.
func (s *scanner) str() (raw []byte, escaped, ok bool) {
	end, escaped, state := jsontext.ScanString(s.doc, s.pos)
	if state == jsontext.Valid {
		raw, s.pos = s.doc[s.pos+1:end-1], end
		return raw, escaped, true
	}
	s.pos = end
	switch {
	case state == jsontext.Incomplete:
		s.pos = len(s.doc)
		return nil, false, s.fail("unterminated string")
	case s.doc[end] == '\\':
		return nil, false, s.fail("invalid escape in a string")
	default:
		return nil, false, s.fail("control character in a string")
	}
}

// number reads a number and reports whether it has neither a fraction nor an exponent.
func (s *scanner) number() (raw []byte, integer, ok bool) {
	start := s.pos
	end, integer, state := jsontext.ScanNumber(s.doc, start)
	s.pos = end
	if end-start > maxNumberBytes {
		return nil, false, s.fail("number too long")
	}
	if state != jsontext.Valid {
		return nil, false, s.fail("invalid number")
	}
	return s.doc[start:end], integer, true
}

// word reads true, false or null.
func (s *scanner) word(word string) bool {
	if len(s.doc)-s.pos < len(word) || string(s.doc[s.pos:s.pos+len(word)]) != word {
		return s.fail("unexpected character")
	}
	s.pos += len(word)
	return true
}

// last returns the bytes of the word just read.
func (s *scanner) last(word string) []byte { return s.doc[s.pos-len(word) : s.pos] }

// enter moves after the bracket that opens an object or an array; leave must follow.
func (s *scanner) enter() bool {
	s.pos++
	s.depth++
	if s.depth > maxDepth {
		return s.fail("nested too deep")
	}
	return true
}

func (s *scanner) leave() bool {
	s.pos++
	s.depth--
	return true
}

// colon moves after the colon that follows a member's name.
func (s *scanner) colon() bool {
	if s.peek() != ':' {
		return s.fail("a colon is missing")
	}
	s.pos++
	return true
}

// next moves to the next element: more is false when the closing bracket is next.
func (s *scanner) next(first bool, closing byte) (more, ok bool) {
	c := s.peek()
	if c == closing {
		return false, true
	}
	if first {
		return true, true
	}
	if c != ',' {
		return false, s.fail("a comma or a closing bracket is missing")
	}
	s.pos++
	if s.peek() == closing {
		return false, s.fail("a value is missing after a comma")
	}
	return true, true
}

// members reads an object of valid syntax: each is called with every member's name, unescaped, and must read the member's value.
func (s *scanner) members(each func(name []byte)) {
	s.pos++
	for first := true; s.problem == ""; first = false {
		if more, _ := s.next(first, '}'); !more {
			break
		}
		s.peek()
		name, escaped, _ := s.str()
		if escaped {
			name = jsontext.AppendUnescaped(nil, name)
		}
		s.colon()
		each(name)
	}
	s.pos++
}

// elements reads an array of valid syntax: each must read one element.
func (s *scanner) elements(each func()) {
	s.pos++
	for first := true; s.problem == ""; first = false {
		if more, _ := s.next(first, ']'); !more {
			break
		}
		each()
	}
	s.pos++
}

// skip skips one value of valid syntax.
func (s *scanner) skip() {
	switch s.peek() {
	case '{':
		s.members(func([]byte) { s.skip() })
	case '[':
		s.elements(s.skip)
	case '"':
		s.str()
	case 't', 'n':
		s.pos += len("true")
	case 'f':
		s.pos += len("false")
	default:
		s.number()
	}
}
