package jsontext

import (
	"encoding/binary"
	"math/bits"
)

// Span is the position of a value in a text; End is 0 when there is none.
type Span struct{ Start, End int }

// Of returns the bytes of the value in b.
func (s Span) Of(b []byte) []byte { return b[s.Start:s.End] }

// Space returns the index of the first byte from i on that is not white space.
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

// String returns the index after the string whose opening quote is at i, and whether it has escapes.
func String(b []byte, i int) (end int, escaped bool) {
	i++
	for i+8 <= len(b) {
		// A byte of x or y is zero where v has a quote or a backslash. Borrows only affect bytes after the first of them.
		v := binary.LittleEndian.Uint64(b[i : i+8])
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

// StringEnd returns what String does, without looking for escapes: the first quote ends the string, unless a backslash is before it.
func StringEnd(b []byte, i int) int {
	for at := i + 1; at+8 <= len(b); at += 8 {
		// A byte of x is zero where b has a quote. Borrows only affect bytes after the first of them.
		x := binary.LittleEndian.Uint64(b[at:at+8]) ^ quotes
		found := (x - ones) &^ x & highs
		if found == 0 {
			continue
		}
		if at += bits.TrailingZeros64(found) / 8; b[at-1] == '\\' {
			break
		}
		return at + 1
	}
	end, _ := String(b, i)
	return end
}

// Value returns the index after the value that starts at i; i when there is none.
func Value(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return StringEnd(b, i)
	case '{', '[':
		return Container(b, i)
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

// Container returns the index after the object or array that starts at i.
func Container(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			i = StringEnd(b, i)
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

// Members calls each with the names, as written between their quotes, and the values of the object that starts at i or after white
// space, until it returns false. Anything but an object has no members.
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

// Elements calls each with the elements of the array at i, until it returns false. Anything but an array has none.
func Elements(b []byte, i int, each func(element Span) bool) {
	if i >= len(b) || b[i] != '[' {
		return
	}
	for i++; ; i++ {
		if i = Space(b, i); i >= len(b) || b[i] == ']' {
			return
		}
		v := Span{i, Value(b, i)}
		if v.End == v.Start || !each(v) {
			return
		}
		if i = Space(b, v.End); i >= len(b) || b[i] != ',' {
			return
		}
	}
}

// Items calls each with the items of the array at v, with nested arrays flattened, as search engines do. Anything but an array is
// one item. It stops, and returns false, when each returns false.
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
