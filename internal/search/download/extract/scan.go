package extract

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"tutti/internal/rawjson"
)

// Span is the position of a value in a document.
type Span = rawjson.Span

// decodedName decodes a name with escapes.
func decodedName(raw []byte) string { return string(appendUnescaped(nil, raw)) }

// AppendText appends the text of a value that is neither an object nor an array: a string without quotes and escapes, any other
// value as it is written.
func AppendText(dst, raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return append(dst, raw...)
	}
	return appendUnescaped(dst, raw[1:len(raw)-1])
}

// appendUnescaped appends the text between the quotes of a string with its escapes decoded. An unpaired surrogate becomes the
// replacement character, as in encoding/json.
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

// appendRune decodes the four hexadecimal digits at the start of raw, with the second half of a surrogate pair, appends the
// character, and returns the rest of raw.
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

// AppendCompact appends a value without white space between tokens, so that it has no line breaks. A truncated value is null.
func AppendCompact(dst, raw []byte) []byte {
	mark := len(dst)
	depth := 0
	for i := 0; i < len(raw); {
		c := raw[i]
		switch c {
		case '"':
			end, _ := rawjson.String(raw, i)
			dst = append(dst, raw[i:end]...)
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if !rawjson.IsSpace(c) {
			dst = append(dst, c)
		}
		i++
	}
	if depth != 0 || len(dst) == mark {
		return append(dst[:mark], "null"...)
	}
	return dst
}
