package jsontext

import (
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is a JSON text, or a part of one.
type Text interface{ ~string | ~[]byte }

// State is the result of a scan that checks syntax (RFC 8259).
type State uint8

const (
	// Valid is the state of a complete token.
	Valid State = iota
	// Incomplete is the state of a token that the end of the text cuts.
	Incomplete
	// Invalid is the state of a text that is not JSON.
	Invalid
)

// PlainEnd returns the index of the first quote, backslash or control character from i on, len(text) when there is none.
// It examines eight bytes at a time: strings are most of a document, and most are too short for bytes.IndexByte to be faster.
func PlainEnd[T Text](text T, i int) int {
	const controls = ones * ' '
	for ; i+8 <= len(text); i += 8 {
		w := word(text[i : i+8])
		// A byte's top bit is set where w^quotes or w^slants is zero, or w below a space, and w's own top bit is clear.
		// Borrows reach only bytes above a hit, so the lowest hit is a true one.
		if hit := ((w ^ quotes - ones) | (w ^ slants - ones) | (w - controls)) & highs &^ w; hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for ; i < len(text); i++ {
		if c := text[i]; c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return i
}

// word returns the first eight bytes, the first in the lowest bits. The compiler turns it into one load.
func word[T Text](b T) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// ScanString checks the string whose opening quote is at i and returns the index after it, and whether it has escapes. Unless it is
// Valid, end is the index of the wrong byte, or of the backslash of a wrong escape.
func ScanString[T Text](text T, i int) (end int, escaped bool, state State) {
	for i++; ; {
		if i = PlainEnd(text, i); i >= len(text) {
			return i, escaped, Incomplete
		}
		switch text[i] {
		case '"':
			return i + 1, escaped, Valid
		case '\\':
			_, next, state := Escape(text, i)
			if state != Valid {
				return i, true, state
			}
			i, escaped = next, true
		default:
			return i, escaped, Invalid
		}
	}
}

// Escape decodes the escape whose backslash is at i, or the two of a surrogate pair, and returns the index after it. An unpaired
// surrogate is returned as it is: utf8.AppendRune makes U+FFFD of it, as encoding/json does.
func Escape[T Text](text T, i int) (r rune, end int, state State) {
	if i+1 >= len(text) {
		return 0, i, Incomplete
	}
	switch c := text[i+1]; c {
	case '"', '\\', '/':
		r = rune(c)
	case 'b':
		r = '\b'
	case 'f':
		r = '\f'
	case 'n':
		r = '\n'
	case 'r':
		r = '\r'
	case 't':
		r = '\t'
	case 'u':
		if r, state = codeUnit(text, i); state != Valid {
			return 0, i, state
		}
		if i += 6; utf16.IsSurrogate(r) {
			if low, state := codeUnit(text, i); state == Valid {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, i + 6, Valid
				}
			}
		}
		return r, i, Valid
	default:
		return 0, i, Invalid
	}
	return r, i + 2, Valid
}

// codeUnit decodes \uXXXX at i.
func codeUnit[T Text](text T, i int) (r rune, state State) {
	for n := range 6 {
		if i+n >= len(text) {
			return 0, Incomplete
		}
		c := text[i+n]
		switch {
		case n == 0 && c == '\\' || n == 1 && c == 'u':
			continue
		case n < 2:
			return 0, Invalid
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, Invalid
		}
		r = r<<4 | rune(c)
	}
	return r, Valid
}

// ScanNumber checks the number at i, and returns the index of the first byte that cannot be part of it, and whether it has neither a
// fraction nor an exponent. A leading zero is a number of its own. A Valid number that ends the text may continue in a text that does.
func ScanNumber[T Text](text T, i int) (end int, integer bool, state State) {
	if i < len(text) && text[i] == '-' {
		i++
	}
	integer, from := true, i
	if i = digits(text, i); i > from && text[from] == '0' {
		i = from + 1
	}
	if i > from && i < len(text) && text[i] == '.' {
		integer, from = false, i+1
		i = digits(text, from)
	}
	if i > from && i < len(text) && text[i]|0x20 == 'e' {
		integer = false
		if i++; i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		from = i
		i = digits(text, i)
	}
	switch {
	case i > from:
		return i, integer, Valid
	case i >= len(text):
		return i, integer, Incomplete
	default:
		return i, integer, Invalid
	}
}

// digits returns the index after the digits at i.
func digits[T Text](text T, i int) int {
	for i < len(text) && text[i]-'0' <= 9 {
		i++
	}
	return i
}

// IsNumber reports whether the whole of text is a number.
func IsNumber[T Text](text T) bool {
	end, _, state := ScanNumber(text, 0)
	return state == Valid && end == len(text)
}
