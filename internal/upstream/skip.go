package upstream

import "tutti/internal/core"

// maxCaptured bounds the bytes of a key, and of a wanted value, that a skipper keeps. Longer ones match no name, and are
// no id that an index takes.
const maxCaptured = 8 << 10

// skipState is what a skipper expects next.
type skipState uint8

const (
	wantValue     skipState = iota // a value
	wantFirst                      // a value, or the end of an empty array
	wantKey                        // a key
	wantFirstKey                   // a key, or the end of an empty object
	wantColon                      // the colon behind a key
	wantSeparator                  // a comma, or the end of the object or array
	inString
	inEscape // behind a backslash
	inHex    // in the digits of \u
	inLiteral
	inSign // behind a number's minus
	inZero // behind a number's leading zero
	inDigits
	inPoint // behind a decimal point
	inFraction
	inExponent // behind e or E
	inExponentSign
	inExponentDigits
)

// skipper reads one record that is too large to be held, in pieces that may end anywhere. It accepts what scanRecord
// accepts and finds the same members, in memory that does not grow with the record.
type skipper struct {
	shape *Shape
	state skipState
	// open are the objects and arrays that are open, '{' or '[' each.
	open []byte
	// rest is what is left of a literal, hex how many digits of an escape.
	rest string
	hex  int
	// isKey: the string is a key. escaped: it holds an escape. capture: text takes it, quotes included, up to maxCaptured.
	isKey, escaped, capture bool
	text                    []byte
	// wanted is the index of the member that is read, -1 for none; flag: it is Shape.Flag.
	wanted int
	flag   bool
	values [][]byte
	truth  Truth
}

// skip reads on and returns how many bytes of buf belong to the record. end is short when it goes on behind buf, broken
// or deep for faults, and 0 at the record's end. Line breaks between values become spaces.
func (s *skipper) skip(buf []byte) (n, end int) {
	for i := 0; i < len(buf); {
		switch {
		case s.state == inString:
			i = s.stringRun(buf, i)
			continue
		case s.state < inString:
			if i = skipSpace(buf, i); i >= len(buf) {
				return i, short
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
	return len(buf), short
}

// stringRun reads plain text of a string from i on, up to a byte that is special.
func (s *skipper) stringRun(buf []byte, i int) int {
	end := plainEnd(buf, i)
	s.take(buf[i:end])
	if end < len(buf) && buf[end] < 0x20 {
		s.state = inEscape // which a control character ends in no way; some are space between values
	} else if end < len(buf) {
		s.special(buf[end])
		end++
	}
	return end
}

// special reads the quote that ends a string, or a backslash.
func (s *skipper) special(c byte) {
	s.take([]byte{c})
	if c == '\\' {
		s.state, s.escaped = inEscape, true
		return
	}
	captured := s.capture && len(s.text) <= maxCaptured
	switch {
	case s.isKey:
		s.state = wantColon
		if captured {
			s.named()
		}
	default:
		s.state = wantSeparator
		if captured && s.escaped {
			s.values[s.wanted] = unescape(s.text)
		} else if captured {
			s.values[s.wanted] = append([]byte{}, s.text[1:len(s.text)-1]...)
		}
	}
	s.capture = false
}

// named notes which member the key in text begins.
func (s *skipper) named() {
	k := key{start: 1, end: len(s.text) - 1, escaped: s.escaped}
	for n, name := range s.shape.Members {
		if k.is(s.text, name) {
			s.wanted = n
		}
	}
	s.flag = s.wanted < 0 && s.shape.Flag != "" && k.is(s.text, s.shape.Flag)
}

func (s *skipper) take(b []byte) {
	if s.capture && len(s.text) <= maxCaptured {
		s.text = append(s.text, b...)
	}
}

// step reads one byte outside the plain text of strings. again is true when the byte ended a number, and has to be read
// once more as what follows.
func (s *skipper) step(c byte) (again bool, end int) {
	switch s.state {
	case wantFirst, wantFirstKey:
		if closing := s.open[len(s.open)-1] + 2; c == closing { // '[' and '{' stand two before their closing bytes
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
		s.take([]byte{c})
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

// expect returns broken unless ok.
func expect(ok bool) int {
	if ok {
		return 0
	}
	return broken
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
		return broken
	}
	return 0
}

// key begins a key.
func (s *skipper) key(c byte) int {
	s.beginString(true, len(s.open) == 1)
	s.wanted, s.flag = -1, false
	return expect(c == '"')
}

func (s *skipper) beginString(isKey, capture bool) {
	s.state, s.isKey, s.capture, s.escaped = inString, isKey, capture, false
	if capture {
		s.text = append(s.text[:0], '"')
	}
}

// value begins a value.
func (s *skipper) value(c byte) int {
	top := len(s.open) == 1
	wanted := top && s.wanted >= 0
	if wanted {
		s.values[s.wanted] = nil
	}
	if top && s.flag {
		s.truth = TruthNone
	}
	switch c {
	case '"':
		s.beginString(false, wanted)
	case '{', '[':
		if s.state = wantFirst; c == '{' {
			s.state = wantFirstKey
		}
		if s.open = append(s.open, c); len(s.open) > maxDepth {
			return deep
		}
	case 't', 'f', 'n':
		s.state, s.rest = inLiteral, restOf(c)
		if top && s.flag {
			s.truth = truthOf(c)
		}
	default:
		return s.beginNumber(c)
	}
	return 0
}

// restOf returns what follows the first byte of a literal.
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
	s.take([]byte{c})
	s.state = inString
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 0
	case 'u':
		s.state, s.hex = inHex, 4
		return 0
	default:
		return broken
	}
}

// beginNumber reads the first byte of a number, or of its digits behind a minus.
func (s *skipper) beginNumber(c byte) int {
	switch {
	case c == '-' && s.state != inSign:
		s.state = inSign
	case c == '0':
		s.state = inZero
	case isDigit(c):
		s.state = inDigits
	default:
		return broken
	}
	return 0
}

// number reads a byte in or behind a number.
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

// firstDigit reads the first digit of a fraction or an exponent, or the exponent's sign.
func (s *skipper) firstDigit(c byte) int {
	switch {
	case isDigit(c) && s.state == inPoint:
		s.state = inFraction
	case isDigit(c):
		s.state = inExponentDigits
	case (c == '+' || c == '-') && s.state == inExponent:
		s.state = inExponentSign
	default:
		return broken
	}
	return 0
}

// oversize reads the record at pos to its end without holding it.
func (s *Scanner) oversize() (Item, error) {
	skip := skipper{shape: &s.shape, state: wantValue, values: make([][]byte, len(s.shape.Members)), wanted: -1}
	var kept core.Keeper
	for {
		n, end := skip.skip(s.buf[s.pos:s.end])
		kept.Add(s.buf[s.pos : s.pos+n])
		s.pos += n
		switch end {
		case 0:
			return Item{Values: skip.values, Flag: skip.truth, TooLarge: kept.Kept()}, nil
		case broken:
			return Item{}, Malformed("the upstream's answer is not JSON", ErrMalformed)
		case deep:
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
