package graph

import (
	"bytes"
	"strconv"
)

// span is a value within a text of JSON; end is 0 when there is none.
type span struct{ start, end int }

func (s span) of(doc []byte) []byte { return doc[s.start:s.end] }

// Documents are JSON: whoever wrote them to the index saw to it. What follows never reads beyond one that is not, but does
// not say so either.

// skipSpace gives the next place from i on that is no white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString gives the place behind a string that begins at i, and whether it has escapes.
func skipString(b []byte, i int) (end int, escaped bool) {
	i++
	n := bytes.IndexByte(b[min(i, len(b)):], '"')
	switch {
	case n < 0:
		return len(b), false
	case bytes.IndexByte(b[i:i+n], '\\') < 0:
		return i + n + 1, false
	default:
		return min(skipEscapes(b, i)+1, len(b)), true
	}
}

// skipEscapes gives the place of the quote that ends a string, whose text goes on at i.
func skipEscapes(b []byte, i int) int {
	for i < len(b) && b[i] != '"' {
		if b[i] == '\\' {
			i++
		}
		i++
	}
	return min(i, len(b))
}

// skipValue gives the place behind the value that begins at i.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		end, _ := skipString(b, i)
		return end
	case '{', '[':
		return skipContainer(b, i)
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

func skipContainer(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i, _ = skipString(b, i)
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

// eachMember calls each with the names, as they are written between their quotes, and the values of an object that begins at
// doc[i], until it gives false. What is no object has no members.
func eachMember(doc []byte, i int, each func(name []byte, escaped bool, value span) bool) {
	if i = skipSpace(doc, i); i >= len(doc) || doc[i] != '{' {
		return
	}
	for i++; ; i++ {
		if i = skipSpace(doc, i); i >= len(doc) || doc[i] != '"' {
			return
		}
		end, escaped := skipString(doc, i)
		if end-1 <= i {
			return
		}
		name := doc[i+1 : end-1]
		if i = skipSpace(doc, end); i >= len(doc) || doc[i] != ':' {
			return
		}
		i = skipSpace(doc, i+1)
		v := span{i, skipValue(doc, i)}
		if v.end == v.start || !each(name, escaped, v) {
			return
		}
		if i = skipSpace(doc, v.end); i >= len(doc) || doc[i] != ',' {
			return
		}
	}
}

// inside gives where the object begins that a path of names leads to, the end of the document when there is none.
func inside(doc []byte, path []string) int {
	at := skipSpace(doc, 0)
	for _, name := range path {
		next := len(doc)
		eachMember(doc, at, func(found []byte, escaped bool, v span) bool {
			if string(found) == name || escaped && decodedName(found) == name {
				next = v.start
			}
			return true
		})
		at = next
	}
	return at
}

// eachItem calls each with the items of the array at v, those of arrays within it in their place, as engines see them. What is
// no array is one item. It ends when each gives false.
func eachItem(doc []byte, v span, each func(item span) bool) bool {
	if v.end <= v.start || doc[v.start] != '[' {
		return each(v)
	}
	for i := v.start + 1; ; i++ {
		if i = skipSpace(doc, i); i >= v.end || doc[i] == ']' {
			return true
		}
		item := span{i, skipValue(doc, i)}
		if item.end == item.start || !eachItem(doc, item, each) {
			return false
		}
		if i = skipSpace(doc, item.end); i >= v.end || doc[i] != ',' {
			return true
		}
	}
}

// unquoted gives the text of a string of JSON, its quotes left out.
func unquoted(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b[1 : len(b)-1])
	}
	return decoded(b)
}

// isNumber tells whether a text is a number as JSON has it.
func isNumber(b []byte) bool {
	i := 0
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	whole := i
	if !digits() || b[whole] == '0' && i > whole+1 {
		return false
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(b)
}

// isInt tells whether a text is a number that GraphQL's Int can hold, written without fraction.
func isInt(b []byte) bool {
	if len(b) == 0 || len(b) > len("-2147483648") {
		return false
	}
	_, err := strconv.ParseInt(string(b), 10, 32)
	return err == nil && isNumber(b)
}
