package mapping

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
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
	doc, i := s.doc, s.pos+1
	start := i
	for {
		i = findSpecial(doc, i)
		if i >= len(doc) {
			s.pos = len(doc)
			return nil, false, s.fail("unterminated string")
		}
		switch c := doc[i]; {
		case c == '"':
			s.pos = i + 1
			return doc[start:i], escaped, true
		case c == '\\':
			n := escapeLength(doc[i:])
			if n == 0 {
				s.pos = i
				return nil, false, s.fail("invalid escape in a string")
			}
			escaped = true
			i += n
		case c < ' ':
			s.pos = i
			return nil, false, s.fail("control character in a string")
		default:
			i++
		}
	}
}

// findSpecial returns the position of the first byte at or after i that may end or escape a string, eight bytes at a time.
func findSpecial(doc []byte, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(doc); i += 8 {
		w := binary.LittleEndian.Uint64(doc[i:])
		q, b := w^(ones*'"'), w^(ones*'\\')
		hit := ((q - ones) & ^q) | ((b - ones) & ^b) | ((w - ones*' ') & ^w)
		if hit &= high; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(doc); i++ {
		if c := doc[i]; c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return i
}

// escapeLength returns the length of the escape at the start of b, 0 when it is invalid.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Unquote appends the text of a JSON string's inside, as in Sink.Value, to dst, with escapes resolved and unpaired surrogates as
// U+FFFD.
func Unquote(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' || i+1 >= len(raw) {
			dst = append(dst, c)
			i++
			continue
		}
		switch e := raw[i+1]; e {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(raw[i:])
			if utf16.IsSurrogate(r) {
				low, _ := hex4(raw[min(i+6, len(raw)):])
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
			i += 4
		default:
			dst = append(dst, e)
		}
		i += 2
	}
	return dst
}

// number reads a number and reports whether it has neither a fraction nor an exponent.
func (s *scanner) number() (raw []byte, integer, ok bool) {
	start, i, doc := s.pos, s.pos, s.doc
	if i < len(doc) && doc[i] == '-' {
		i++
	}
	first := i
	i = digits(doc, i)
	good := i > first && (doc[first] != '0' || i == first+1)
	integer = true
	if good && i < len(doc) && doc[i] == '.' {
		integer = false
		from := i + 1
		i = digits(doc, from)
		good = i > from
	}
	if good && i < len(doc) && doc[i]|0x20 == 'e' {
		integer = false
		i++
		if i < len(doc) && (doc[i] == '+' || doc[i] == '-') {
			i++
		}
		from := i
		i = digits(doc, from)
		good = i > from
	}
	s.pos = i
	if i-start > maxNumberBytes {
		return nil, false, s.fail("number too long")
	}
	if !good {
		return nil, false, s.fail("invalid number")
	}
	return doc[start:i], integer, true
}

func digits(doc []byte, i int) int {
	for i < len(doc) && doc[i]-'0' <= 9 {
		i++
	}
	return i
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
			name = Unquote(nil, name)
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
