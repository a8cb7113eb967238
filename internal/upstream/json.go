package upstream

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// The functions of this file parse JSON (RFC 8259) in a slice that may end anywhere. Each returns the index after what it parsed,
// or one of these negative results. They accept exactly what encoding/json accepts.
const (
	// incomplete: the slice ended first.
	incomplete = -1
	// invalid: this is not JSON.
	invalid = -2
	// tooNested: nested more than maxDepth times.
	tooNested = -3
)

// maxDepth is the limit of encoding/json.
const maxDepth = 10000

// skipSpace returns the index of the first non-space byte from i on, len(buf) when there is none. It replaces line breaks by
// spaces, so that no record contains a raw one.
func skipSpace(buf []byte, i int) int {
	for ; i < len(buf); i++ {
		switch buf[i] {
		case ' ', '\t':
		case '\n', '\r':
			buf[i] = ' '
		default:
			return i
		}
	}
	return i
}

// scanValue parses the value at i, with leading white space.
func scanValue(buf []byte, i, depth int) int {
	if i = skipSpace(buf, i); i >= len(buf) {
		return incomplete
	}
	switch buf[i] {
	case '"':
		i, _ = scanString(buf, i)
		return i
	case '{':
		return scanObject(buf, i+1, depth+1)
	case '[':
		return scanArray(buf, i+1, depth+1)
	case 't':
		return scanLiteral(buf, i, "true")
	case 'f':
		return scanLiteral(buf, i, "false")
	case 'n':
		return scanLiteral(buf, i, "null")
	default:
		return scanNumber(buf, i)
	}
}

// scanObject parses an object after its opening brace.
func scanObject(buf []byte, i, depth int) int {
	if depth > maxDepth {
		return tooNested
	}
	for first := true; ; first = false {
		if i = skipSpace(buf, i); i >= len(buf) {
			return incomplete
		}
		if buf[i] == '}' && first {
			return i + 1
		}
		if i, _ = scanKey(buf, i); i < 0 {
			return i
		}
		if i = scanValue(buf, i, depth); i < 0 {
			return i
		}
		if i = skipSpace(buf, i); i >= len(buf) {
			return incomplete
		}
		switch buf[i] {
		case ',':
			i++
		case '}':
			return i + 1
		default:
			return invalid
		}
	}
}

// scanArray parses an array after its opening bracket.
func scanArray(buf []byte, i, depth int) int {
	if depth > maxDepth {
		return tooNested
	}
	for first := true; ; first = false {
		if i = skipSpace(buf, i); i >= len(buf) {
			return incomplete
		}
		if buf[i] == ']' && first {
			return i + 1
		}
		if i = scanValue(buf, i, depth); i < 0 {
			return i
		}
		if i = skipSpace(buf, i); i >= len(buf) {
			return incomplete
		}
		switch buf[i] {
		case ',':
			i++
		case ']':
			return i + 1
		default:
			return invalid
		}
	}
}

// key is the name of a member: buf[start:end], without quotes.
type key struct {
	start, end int
	escaped    bool
}

// is reports whether the decoded key equals name.
func (k key) is(buf []byte, name string) bool {
	if k.escaped {
		return string(unescape(buf[k.start-1:k.end+1])) == name
	}
	return string(buf[k.start:k.end]) == name
}

// scanKey parses a key at i, which is not white space, and the colon after it.
func scanKey(buf []byte, i int) (int, key) {
	if buf[i] != '"' {
		return invalid, key{}
	}
	k := key{start: i + 1}
	if i, k.escaped = scanString(buf, i); i < 0 {
		return i, k
	}
	k.end = i - 1
	if i = skipSpace(buf, i); i >= len(buf) {
		return incomplete, k
	}
	if buf[i] != ':' {
		return invalid, k
	}
	return i + 1, k
}

// scanString parses the string whose opening quote is at i, and reports whether it contains an escape.
func scanString(buf []byte, i int) (end int, escaped bool) {
	for i++; ; {
		i = plainEnd(buf, i)
		if i >= len(buf) {
			return incomplete, escaped
		}
		switch buf[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			if i = scanEscape(buf, i+1); i < 0 {
				return i, true
			}
		default:
			return invalid, escaped
		}
	}
}

// plainEnd returns the index of the first quote, backslash or control character from i on, len(buf) when there is none.
// It examines eight bytes at a time: strings are most of a record, and most are too short for bytes.IndexByte to be faster.
func plainEnd(buf []byte, i int) int {
	const (
		ones      = 0x0101010101010101
		tops      = 0x8080808080808080
		quotes    = '"' * ones
		slashes   = '\\' * ones
		firstText = 0x20 * ones
	)
	for ; i+8 <= len(buf); i += 8 {
		w := binary.LittleEndian.Uint64(buf[i:])
		// A byte's top bit is set where w^quotes or w^slashes is zero, or w below 0x20, and w's own top bit is clear.
		// Borrows reach only bytes above a hit, so the lowest hit is a true one.
		if hit := ((w ^ quotes - ones) | (w ^ slashes - ones) | (w - firstText)) & tops &^ w; hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for ; i < len(buf); i++ {
		if c := buf[i]; c == '"' || c == '\\' || c < 0x20 {
			return i
		}
	}
	return i
}

// scanEscape parses an escape after its backslash.
func scanEscape(buf []byte, i int) int {
	if i >= len(buf) {
		return incomplete
	}
	switch buf[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		for n := 1; n <= 4; n++ {
			if i+n >= len(buf) {
				return incomplete
			}
			if !isHex(buf[i+n]) {
				return invalid
			}
		}
		return i + 5
	default:
		return invalid
	}
}

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// scanNumber parses a number. A number at the end of the slice is incomplete, since it may continue: a number is never the whole
// text here.
func scanNumber(buf []byte, i int) int {
	if buf[i] == '-' {
		if i++; i >= len(buf) {
			return incomplete
		}
	}
	switch c := buf[i]; {
	case c == '0':
		i++
	case c >= '1' && c <= '9':
		for i++; i < len(buf) && isDigit(buf[i]); i++ {
		}
	default:
		return invalid
	}
	if i < len(buf) && buf[i] == '.' {
		if i = scanDigits(buf, i+1); i < 0 {
			return i
		}
	}
	if i < len(buf) && (buf[i] == 'e' || buf[i] == 'E') {
		if i++; i < len(buf) && (buf[i] == '+' || buf[i] == '-') {
			i++
		}
		if i = scanDigits(buf, i); i < 0 {
			return i
		}
	}
	if i >= len(buf) {
		return incomplete
	}
	return i
}

// scanDigits parses one or more digits.
func scanDigits(buf []byte, i int) int {
	from := i
	for ; i < len(buf) && isDigit(buf[i]); i++ {
	}
	switch {
	case i >= len(buf):
		return incomplete
	case i == from:
		return invalid
	default:
		return i
	}
}

// scanLiteral parses true, false or null.
func scanLiteral(buf []byte, i int, word string) int {
	for n := range len(word) {
		if i+n >= len(buf) {
			return incomplete
		}
		if buf[i+n] != word[n] {
			return invalid
		}
	}
	return i + len(word)
}

// unescape decodes a quoted string that was scanned before. It is the slow path: few keys and ids have escapes.
func unescape(quoted []byte) []byte {
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return nil
	}
	return []byte(s)
}
