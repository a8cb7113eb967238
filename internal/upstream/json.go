package upstream

import (
	"tutti/internal/base/jsontext"
	"tutti/internal/core"
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

// scanValue parses the value at i, with leading white space, and notes it in of, unless that is nil.
func scanValue(buf []byte, i, depth int, of *form) int {
	if i = skipSpace(buf, i); i >= len(buf) {
		return incomplete
	}
	if buf[i] != '"' {
		of.value(buf[i])
	}
	switch buf[i] {
	case '"':
		return of.scanText(buf, i)
	case '{', '[':
		return scanContainer(buf, i, depth+1, nil, of)
	case 't':
		return scanLiteral(buf, i, "true")
	case 'f':
		return scanLiteral(buf, i, "false")
	case 'n':
		return scanLiteral(buf, i, "null")
	default:
		end := scanNumber(buf, i)
		if of != nil && end-i >= core.LongNumber {
			of.long = true
		}
		return end
	}
}

// scanContainer parses the object or array at i. The members of a record are passed to record, which is nil for anything else;
// of is that of scanValue.
func scanContainer(buf []byte, i, depth int, record *Scanner, of *form) int {
	if depth > maxDepth {
		return tooNested
	}
	closing := buf[i] + 2 // '[' + 2 is ']', '{' + 2 is '}'
	i++
	for first := true; ; first = false {
		if i = skipSpace(buf, i); i >= len(buf) {
			return incomplete
		}
		if buf[i] == closing && first {
			of.value(closing)
			return i + 1
		}
		var k key
		if closing == '}' {
			if i, k = scanKey(buf, i); i < 0 {
				return i
			}
			of.name(buf[k.start:k.end])
		}
		switch {
		case record != nil:
			i = record.scanMember(buf, i, k)
		case i < len(buf) && buf[i] == '"': // most values
			i = of.scanText(buf, i)
		default:
			i = scanValue(buf, i, depth, of)
		}
		if i < 0 {
			return i
		}
		if i = skipSpace(buf, i); i >= len(buf) {
			return incomplete
		}
		switch buf[i] {
		case ',':
			i++
		case closing:
			of.value(closing)
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
		return jsontext.Unescape(buf[k.start:k.end]) == name
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
	if end = jsontext.PlainEnd(buf, i+1); end < len(buf) && buf[end] == '"' { // most strings
		return end + 1, false
	}
	end, escaped, state := jsontext.ScanString(buf, i)
	return indexOf(end, state), escaped
}

// scanNumber parses a number. A number at the end of the slice is incomplete, since it may continue: a number is never the whole
// text here.
func scanNumber(buf []byte, i int) int {
	end, _, state := jsontext.ScanNumber(buf, i)
	if end >= len(buf) {
		return incomplete
	}
	return indexOf(end, state)
}

// indexOf returns the result for a token that ends at end: end itself, or one of the negative results.
func indexOf(end int, state jsontext.State) int {
	switch state {
	case jsontext.Incomplete:
		return incomplete
	case jsontext.Invalid:
		return invalid
	default:
		return end
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
