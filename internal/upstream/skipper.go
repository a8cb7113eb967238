package upstream

import (
	"tutti/internal/core"
	"tutti/internal/jsontext"
)

// maxCaptured bounds the bytes of a key, and of a requested value, that a skipper keeps. Longer ones match no name, and are not
// valid ids of an index.
const maxCaptured = 8 << 10

// skipState is what a skipper expects next.
type skipState uint8

const (
	wantValue     skipState = iota // a value
	wantFirst                      // a value or the end of an empty array
	wantKey                        // a key
	wantFirstKey                   // a key or the end of an empty object
	wantColon                      // the colon after a key
	wantSeparator                  // a comma or the end of the object or array
	inString
	inEscape // after a backslash
	inHex    // in the digits of \u
	inLiteral
	inSign // after a number's minus
	inZero // after a number's leading zero
	inDigits
	inPoint // after a decimal point
	inFraction
	inExponent // after e or E
	inExponentSign
	inExponentDigits
)

// skipper parses one record that is too large to keep, in pieces that may end anywhere. It accepts what scanRecord accepts and finds
// the same members, in memory that does not grow with the record.
type skipper struct {
	format *Format
	state  skipState
	// open holds the open objects and arrays, '{' or '[' each.
	open []byte
	// rest is the remainder of a literal, hex the number of remaining digits of an escape.
	rest string
	hex  int
	// isKey: the string is a key. escaped: it contains an escape. capture: text collects it, with quotes, up to maxCaptured.
	isKey, escaped, capture bool
	text                    []byte
	// wanted is the index of the requested member being read, -1 for none; isBool: it is Format.BoolMember.
	wanted    int
	isBool    bool
	values    [][]byte
	boolValue OptionalBool
}

// skip parses buf and returns how many of its bytes belong to the record. end is incomplete when the record continues after buf,
// invalid or tooNested for errors, and 0 at the record's end. Line breaks between values become spaces.
func (s *skipper) skip(buf []byte) (n, end int) {
	for i := 0; i < len(buf); {
		switch {
		case s.state == inString:
			i = s.stringRun(buf, i)
			continue
		case s.state < inString:
			if i = skipSpace(buf, i); i >= len(buf) {
				return i, incomplete
			}
		}
		again, fault := s.step(buf[i])
		if fault < 0 {
			return i, fault
		}
		if !again {
			i++
		}
		if len(s.open) == 0 {
			return i, 0
		}
	}
	return len(buf), incomplete
}

// stringRun reads plain text of a string from i on, up to a special byte.
func (s *skipper) stringRun(buf []byte, i int) int {
	end := jsontext.PlainEnd(buf, i)
	s.appendText(buf[i:end])
	if end < len(buf) && buf[end] < 0x20 {
		s.state = inEscape // a control character is invalid there
	} else if end < len(buf) {
		s.special(buf[end])
		end++
	}
	return end
}

// special handles the quote that ends a string, or a backslash.
func (s *skipper) special(c byte) {
	s.appendText([]byte{c})
	if c == '\\' {
		s.state, s.escaped = inEscape, true
		return
	}
	captured := s.capture && len(s.text) <= maxCaptured
	switch {
	case s.isKey:
		s.state = wantColon
		if captured {
			s.matchKey()
		}
	default:
		s.state = wantSeparator
		if captured && s.escaped {
			s.values[s.wanted] = jsontext.AppendUnescaped(nil, s.text[1:len(s.text)-1])
		} else if captured {
			s.values[s.wanted] = append([]byte{}, s.text[1:len(s.text)-1]...)
		}
	}
	s.capture = false
}

// matchKey sets the member whose key is in text.
func (s *skipper) matchKey() {
	k := key{start: 1, end: len(s.text) - 1, escaped: s.escaped}
	for n, name := range s.format.Members {
		if k.is(s.text, name) {
			s.wanted = n
		}
	}
	s.isBool = s.wanted < 0 && s.format.BoolMember != "" && k.is(s.text, s.format.BoolMember)
}

func (s *skipper) appendText(b []byte) {
	if s.capture && len(s.text) <= maxCaptured {
		s.text = append(s.text, b...)
	}
}

// step handles one byte outside the plain text of strings. again is true when the byte ended a number and must be handled once more.
func (s *skipper) step(c byte) (again bool, end int) {
	switch s.state {
	case wantFirst, wantFirstKey:
		if closing := s.open[len(s.open)-1] + 2; c == closing { // '[' + 2 is ']', '{' + 2 is '}'
			s.close()
			return false, 0
		}
		if s.state == wantFirst {
			return false, s.value(c)
		}
		return false, s.key(c)
	case wantValue:
		return false, s.value(c)
	case wantKey:
		return false, s.key(c)
	case wantColon:
		s.state = wantValue
		return false, expect(c == ':')
	case wantSeparator:
		return false, s.separator(c)
	case inEscape:
		return false, s.escape(c)
	case inHex:
		s.appendText([]byte{c})
		if s.hex--; s.hex == 0 {
			s.state = inString
		}
		return false, expect(isHex(c))
	case inLiteral:
		ok := c == s.rest[0]
		if s.rest = s.rest[1:]; s.rest == "" {
			s.state = wantSeparator
		}
		return false, expect(ok)
	default:
		return s.number(c)
	}
}

// expect returns invalid unless ok.
func expect(ok bool) int {
	if ok {
		return 0
	}
	return invalid
}

func (s *skipper) close() {
	s.open = s.open[:len(s.open)-1]
	s.state = wantSeparator
}

func (s *skipper) separator(c byte) int {
	in := s.open[len(s.open)-1]
	switch {
	case c == ',' && in == '{':
		s.state = wantKey
	case c == ',':
		s.state = wantValue
	case c == in+2:
		s.close()
	default:
		return invalid
	}
	return 0
}

// key starts a key.
func (s *skipper) key(c byte) int {
	s.beginString(true, len(s.open) == 1)
	s.wanted, s.isBool = -1, false
	return expect(c == '"')
}

func (s *skipper) beginString(isKey, capture bool) {
	s.state, s.isKey, s.capture, s.escaped = inString, isKey, capture, false
	if capture {
		s.text = append(s.text[:0], '"')
	}
}

// value starts a value.
func (s *skipper) value(c byte) int {
	top := len(s.open) == 1
	wanted := top && s.wanted >= 0
	if wanted {
		s.values[s.wanted] = nil
	}
	if top && s.isBool {
		s.boolValue = BoolMissing
	}
	switch c {
	case '"':
		s.beginString(false, wanted)
	case '{', '[':
		if s.state = wantFirst; c == '{' {
			s.state = wantFirstKey
		}
		if s.open = append(s.open, c); len(s.open) > maxDepth {
			return tooNested
		}
	case 't', 'f', 'n':
		s.state, s.rest = inLiteral, restOf(c)
		if top && s.isBool {
			s.boolValue = optionalBoolOf(c)
		}
	default:
		return s.beginNumber(c)
	}
	return 0
}

// restOf returns the rest of a literal after its first byte.
func restOf(c byte) string {
	switch c {
	case 't':
		return "rue"
	case 'f':
		return "alse"
	default:
		return "ull"
	}
}

func (s *skipper) escape(c byte) int {
	s.appendText([]byte{c})
	s.state = inString
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 0
	case 'u':
		s.state, s.hex = inHex, 4
		return 0
	default:
		return invalid
	}
}

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// beginNumber handles the first byte of a number, or of its digits after a minus.
func (s *skipper) beginNumber(c byte) int {
	switch {
	case c == '-' && s.state != inSign:
		s.state = inSign
	case c == '0':
		s.state = inZero
	case isDigit(c):
		s.state = inDigits
	default:
		return invalid
	}
	return 0
}

// number handles a byte in or after a number.
func (s *skipper) number(c byte) (again bool, end int) {
	switch s.state {
	case inSign:
		return false, s.beginNumber(c)
	case inPoint, inExponent, inExponentSign:
		return false, s.firstDigit(c)
	default:
	}
	switch {
	case isDigit(c) && s.state != inZero: // more of the same digits
	case c == '.' && (s.state == inZero || s.state == inDigits):
		s.state = inPoint
	case (c == 'e' || c == 'E') && s.state != inExponentDigits:
		s.state = inExponent
	default:
		s.state = wantSeparator
		return true, 0
	}
	return false, 0
}

// firstDigit handles the first digit of a fraction or an exponent, or the exponent's sign.
func (s *skipper) firstDigit(c byte) int {
	switch {
	case isDigit(c) && s.state == inPoint:
		s.state = inFraction
	case isDigit(c):
		s.state = inExponentDigits
	case (c == '+' || c == '-') && s.state == inExponent:
		s.state = inExponentSign
	default:
		return invalid
	}
	return 0
}

// skipOversized reads the record at pos to its end without keeping it.
func (s *Scanner) skipOversized() (Item, error) {
	skip := skipper{format: &s.format, state: wantValue, values: make([][]byte, len(s.format.Members)), wanted: -1}
	var kept core.DeadLetterDocumentBuilder
	for {
		n, end := skip.skip(s.buf[s.pos:s.end])
		kept.Add(s.buf[s.pos : s.pos+n])
		s.pos += n
		switch end {
		case 0:
			return Item{Values: skip.values, Bool: skip.boolValue, TooLarge: kept.Document()}, nil
		case invalid:
			return Item{}, Malformed("the upstream's answer is not JSON", ErrMalformed)
		case tooNested:
			return Item{}, tooDeep()
		}
		if err := s.shrink(); err != nil { // nothing is left in the buffer
			return Item{}, err
		}
		if err := s.fill(1); err != nil {
			return Item{}, err
		}
	}
}
