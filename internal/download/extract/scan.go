package extract

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Span is where a value stands in a document.
type Span struct{ Start, End int }

// Of gives the value.
func (s Span) Of(doc []byte) []byte { return doc[s.Start:s.End] }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// skipSpace gives the next place from i on that is no white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// skipString gives the place behind the string that begins at i.
func skipString(b []byte, i int) int {
	i++
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		escapes := 0
		for j := i + n - 1; j >= i && b[j] == '\\'; j-- {
			escapes++
		}
		i += n + 1
		if escapes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// skipScalar gives the place behind what is neither a string, an object nor an array.
func skipScalar(b []byte, i int) int {
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

// skipContainer gives the place behind the object or array that begins at i.
func skipContainer(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}

// skipValue gives the place behind the value that begins at i.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipContainer(b, i)
	default:
		return skipScalar(b, i)
	}
}

// decodedName gives a name with escapes.
func decodedName(raw []byte) string { return string(appendUnescaped(nil, raw)) }

// AppendText appends the text of a value that is no object and no array: that of a string without its quotes and escapes, any
// other as it is written.
func AppendText(dst, raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return append(dst, raw...)
	}
	return appendUnescaped(dst, raw[1:len(raw)-1])
}

// appendUnescaped appends what stands between the quotes of a string, its escapes resolved. Half a pair of surrogates is the
// replacement character, as encoding/json has it.
func appendUnescaped(dst, raw []byte) []byte {
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 || at+1 >= len(raw) {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:at]...)
		escape := raw[at+1]
		raw = raw[at+2:]
		switch escape {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'u':
			dst, raw = appendRune(dst, raw)
		default:
			dst = append(dst, escape)
		}
	}
}

// appendRune appends the character whose four hexadecimal digits raw begins with, and gives what is behind them and behind the
// other half of its pair.
func appendRune(dst, raw []byte) (text, rest []byte) {
	const digits = 4
	r, ok := hex(raw)
	if !ok {
		return utf8.AppendRune(dst, utf8.RuneError), raw
	}
	raw = raw[digits:]
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(dst, r), raw
	}
	if len(raw) >= digits+2 && raw[0] == '\\' && raw[1] == 'u' {
		if low, ok := hex(raw[2:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return utf8.AppendRune(dst, pair), raw[digits+2:]
			}
		}
	}
	return utf8.AppendRune(dst, utf8.RuneError), raw
}

func hex(raw []byte) (rune, bool) {
	const digits = 4
	if len(raw) < digits {
		return 0, false
	}
	var r rune
	for _, c := range raw[:digits] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// AppendCompact appends a value without the white space between its tokens, so that it has no line breaks. What is cut off in
// the middle is null.
func AppendCompact(dst, raw []byte) []byte {
	mark := len(dst)
	depth := 0
	for i := 0; i < len(raw); {
		c := raw[i]
		switch c {
		case '"':
			end := skipString(raw, i)
			dst = append(dst, raw[i:end]...)
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if !isSpace(c) {
			dst = append(dst, c)
		}
		i++
	}
	if depth != 0 || len(dst) == mark {
		return append(dst[:mark], "null"...)
	}
	return dst
}
