package jsontext

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AppendUnescaped appends the inside of a string, without its quotes, with escapes decoded. Unpaired surrogates become U+FFFD. Bytes
// that are not UTF-8, and escapes that are not JSON, stay as they are.
func AppendUnescaped[T Text](dst []byte, inside T) []byte {
	from, i := 0, 0
	for {
		if i = PlainEnd(inside, i); i >= len(inside) {
			return append(dst, inside[from:]...)
		}
		r, next, state := rune(0), i, Invalid
		if inside[i] == '\\' {
			r, next, state = Escape(inside, i)
		}
		if state != Valid {
			i++
			continue
		}
		dst = append(dst, inside[from:i]...)
		dst = utf8.AppendRune(dst, r)
		i, from = next, next
	}
}

// AppendText appends the text of a string, given with its quotes, as AppendUnescaped does; any other value as it is.
func AppendText[T Text](dst []byte, raw T) []byte {
	if !quoted(raw) {
		return append(dst, raw...)
	}
	return AppendUnescaped(dst, raw[1:len(raw)-1])
}

func quoted[T Text](raw T) bool { return len(raw) >= 2 && raw[0] == '"' && raw[len(raw)-1] == '"' }

// Unquote returns the text of a string, given with its quotes, as AppendUnescaped does; "" for anything else.
func Unquote[T Text](raw T) string {
	if !quoted(raw) {
		return ""
	}
	return Unescape(raw[1 : len(raw)-1])
}

// Unescape returns the text of the inside of a string, as AppendUnescaped does.
func Unescape[T Text](inside T) string {
	if PlainEnd(inside, 0) == len(inside) {
		return string(inside)
	}
	return string(AppendUnescaped(make([]byte, 0, len(inside)), inside))
}

// AppendString appends text as a string. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, text string) []byte {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, string(utf8.RuneError))
	}
	return AppendRawString(dst, text)
}

// AppendRawString appends text as a string. Bytes that are not UTF-8 stay as they are, which is not JSON.
func AppendRawString(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, text[from:]...), '"')
}

// AppendCompact appends text without white space between tokens, and reports whether every object and array in it is closed.
func AppendCompact(dst, text []byte) (compact []byte, closed bool) {
	depth, from := 0, 0
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '"':
			i, _ = String(text, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ' ', '\t', '\n', '\r':
			dst = append(dst, text[from:i]...)
			from = i + 1
		}
		i++
	}
	return append(dst, text[from:]...), depth == 0
}

// TooDeep reports whether text nests more than limit objects and arrays.
func TooDeep(text []byte, limit int) bool {
	if bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) <= limit {
		return false
	}
	depth := 0
	for i := 0; i < len(text); {
		switch text[i] {
		case '"':
			i, _ = String(text, i)
			continue
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			depth--
		}
		i++
	}
	return false
}

// maxIndent is how many bytes of white space Indented adds at most, about.
const maxIndent = 16 << 20

// Indented returns JSON with one line for each value, indented by two spaces for each level. It reports false for anything but JSON, and
// for JSON that would grow by far more than people read: the indentation of text that nests deeply is many times its length.
func Indented(text []byte) (indented string, ok bool) {
	lines := bytes.Count(text, []byte(",")) + 2*bytes.Count(text, []byte("{")) + 2*bytes.Count(text, []byte("["))
	if TooDeep(text, maxIndent/(2*lines+1)) {
		return "", false
	}
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return "", false
	}
	return b.String(), true
}

// IsDay reports whether a text is a day such as 2026-03-01, up to the 28th of a month: a date of each calendar and format that has such days.
func IsDay[T Text](text T) bool {
	if len(text) != len("2006-01-02") || text[4] != '-' || text[7] != '-' || text[0] == '0' {
		return false
	}
	for _, i := range [...]int{0, 1, 2, 3, 5, 6, 8, 9} {
		if text[i]-'0' > 9 {
			return false
		}
	}
	month, day := (text[5]-'0')*10+text[6]-'0', (text[8]-'0')*10+text[9]-'0'
	return month-1 < 12 && day-1 < 28
}

// Number returns the shortest text of a number as JavaScript writes it, with an exponent below 1e-6 and from 1e21 on; but -0 stays.
func Number(v float64) string {
	if size := math.Abs(v); size == 0 || size >= 1e-6 && size < 1e21 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strings.Replace(strconv.FormatFloat(v, 'e', -1, 64), "e-0", "e-", 1)
}
