package document

import (
	"strconv"

	"tutti/internal/base/jsontext"
)

// MaxDepth is the maximum depth of objects and arrays in a document, as in Elasticsearch's JSON parser.
const MaxDepth = 1000

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
func (s *scanner) word(word string) (raw []byte, ok bool) {
	if len(s.doc)-s.pos < len(word) || string(s.doc[s.pos:s.pos+len(word)]) != word {
		return nil, s.fail("unexpected character")
	}
	s.pos += len(word)
	return s.doc[s.pos-len(word) : s.pos], true
}

// enter moves after the bracket that opens an object or an array; leave must follow.
func (s *scanner) enter() bool {
	s.pos++
	s.depth++
	if s.depth > MaxDepth {
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

// object reads an object: each is called with every member's name, unescaped, and must read the member's value.
func (s *scanner) object(each func(name []byte) bool) bool {
	if !s.enter() {
		return false
	}
	for first := true; ; first = false {
		more, ok := s.next(first, '}')
		if !ok || !more {
			return ok && s.leave()
		}
		if s.peek() != '"' {
			return s.fail("a member name is missing")
		}
		name, escaped, ok := s.str()
		if escaped {
			name = jsontext.AppendUnescaped(nil, name)
		}
		if !ok || !s.colon() || !each(name) {
			return false
		}
	}
}

// array reads an array: each must read one element.
func (s *scanner) array(each func() bool) bool {
	if !s.enter() {
		return false
	}
	for first := true; ; first = false {
		more, ok := s.next(first, ']')
		if !ok || !more {
			return ok && s.leave()
		}
		if !each() {
			return false
		}
	}
}

// scalar reads a value that starts with c, in the form of Sink.Value; an object is read as a whole.
func (s *scanner) scalar(c byte) (kind Kind, raw []byte, ok bool) {
	switch c {
	case '"':
		raw, _, ok = s.str()
		return KindString, raw, ok
	case '{':
		start := s.pos
		ok = s.skip()
		return KindObject, s.doc[start:s.pos], ok
	case 't':
		raw, ok = s.word("true")
		return KindBoolean, raw, ok
	case 'f':
		raw, ok = s.word("false")
		return KindBoolean, raw, ok
	case 'n':
		_, ok = s.word("null")
		return KindNull, nil, ok
	default:
		raw, _, ok = s.number()
		return KindNumber, raw, ok
	}
}

// skip skips one value, checking its syntax.
func (s *scanner) skip() bool {
	switch c := s.peek(); c {
	case '{':
		return s.object(func([]byte) bool { return s.skip() })
	case '[':
		return s.array(s.skip)
	default:
		_, _, ok := s.scalar(c)
		return ok
	}
}
