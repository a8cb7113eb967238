// Package rawjson finds its way through texts of JSON without decoding them: where values end, and what stands between the
// quotes of a string. Texts are JSON already, as whoever stored them saw to it; what is not is never read beyond its end, and
// not told of either.
package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// Span is where a value stands in a text; End is 0 where there is none.
type Span struct{ Start, End int }

// Of returns the value.
func (s Span) Of(b []byte) []byte { return b[s.Start:s.End] }

// Space returns the next place from i on that is no white space.
func Space(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && IsSpace(b[i]) {
		i++
	}
	return i
}

// IsSpace reports whether c is white space between tokens.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

const (
	ones   = 0x0101010101010101
	highs  = 0x8080808080808080
	quotes = ones * '"'
	slants = ones * '\\'
)

// String returns the place behind the string whose opening quote is at i, and whether there are escapes in it.
func String(b []byte, i int) (end int, escaped bool) {
	i++
	for i+8 <= len(b) {
		// A byte of x or y is zero where v has a quote or a backslash; what borrows lies behind the first of them.
		v := binary.LittleEndian.Uint64(b[i:])
		x, y := v^quotes, v^slants
		found := ((x-ones)&^x | (y-ones)&^y) & highs
		if found == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(found) / 8
		if b[i] == '"' {
			return i + 1, escaped
		}
		i, escaped = i+2, true
	}
	for ; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i, escaped = i+1, true
		}
	}
	return min(i+1, len(b)), escaped
}

// Value returns the place behind the value that begins at i; i itself where there is none.
func Value(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		end, _ := String(b, i)
		return end
	case '{', '[':
		return Container(b, i)
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

// Container returns the place behind the object or array that begins at i.
func Container(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			i, _ = String(b, i)
			continue
		case c|0x20 == '{': // or [
			depth++
		case c|0x20 == '}': // or ]
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}

// Members calls each with the names, as they are written between their quotes, and the values of the object that begins at i or
// behind white space there, until it returns false. What is no object has no members.
func Members(b []byte, i int, each func(name []byte, escaped bool, value Span) bool) {
	if i = Space(b, i); i >= len(b) || b[i] != '{' {
		return
	}
	for i++; ; i++ {
		if i = Space(b, i); i >= len(b) || b[i] != '"' {
			return
		}
		end, escaped := String(b, i)
		if end-1 <= i {
			return
		}
		name := b[i+1 : end-1]
		if i = Space(b, end); i >= len(b) || b[i] != ':' {
			return
		}
		i = Space(b, i+1)
		v := Span{i, Value(b, i)}
		if v.End == v.Start || !each(name, escaped, v) {
			return
		}
		if i = Space(b, v.End); i >= len(b) || b[i] != ',' {
			return
		}
	}
}

// Items calls each with the items of the array at v, those of arrays within it in their place, as search engines see them. What
// is no array is one item. It ends, and returns false, when each does.
func Items(b []byte, v Span, each func(item Span) bool) bool {
	if v.End <= v.Start || b[v.Start] != '[' {
		return each(v)
	}
	for i := v.Start + 1; ; i++ {
		if i = Space(b, i); i >= v.End || b[i] == ']' {
			return true
		}
		item := Span{i, Value(b, i)}
		if item.End == item.Start || !Items(b, item, each) {
			return false
		}
		if i = Space(b, item.End); i >= v.End || b[i] != ',' {
			return true
		}
	}
}
