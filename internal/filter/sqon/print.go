package sqon

import (
	"strings"
	"unicode/utf8"
)

// AppendJSON appends f in its canonical form: operators by their names, members in the order op, pivot, content; the values of
// clauses as a list, except for ranges and single patterns, whose value every SQON parser accepts as a scalar; numbers as written.
// Parsing it returns f, except for the pointers. A filter that matches everything is {}.
func (f Filter) AppendJSON(dst []byte) []byte {
	if f.Root == nil {
		return append(dst, "{}"...)
	}
	return f.Root.appendJSON(dst)
}

// MarshalJSON returns the result of AppendJSON.
func (f Filter) MarshalJSON() ([]byte, error) { return f.AppendJSON(nil), nil }

func (n *Node) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"op":`...)
	dst = appendString(dst, string(n.Op))
	if n.Pivot != "" {
		dst = append(dst, `,"pivot":`...)
		dst = appendString(dst, n.Pivot)
	}
	dst = append(dst, `,"content":`...)
	if !n.Group() {
		return append(n.appendClause(dst), '}')
	}
	dst = append(dst, '[')
	for i, member := range n.Content {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = member.appendJSON(dst)
	}
	return append(dst, "]}"...)
}

func (n *Node) appendClause(dst []byte) []byte {
	shape := n.Op.contentKind()
	if shape == patternContent {
		dst = append(dst, `{"fieldNames":[`...)
		for i, name := range n.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, name)
		}
		dst = append(dst, ']')
	} else {
		dst = append(dst, `{"fieldName":`...)
		dst = appendString(dst, strings.Join(n.Fields, ""))
	}
	dst = append(dst, `,"value":`...)
	if len(n.Values) == 1 && (shape == rangeContent || shape == patternContent) {
		return append(n.Values[0].appendJSON(dst), '}')
	}
	dst = append(dst, '[')
	for i, v := range n.Values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = v.appendJSON(dst)
	}
	return append(dst, "]}"...)
}

func (v Value) appendJSON(dst []byte) []byte {
	if v.Kind == String {
		return appendString(dst, v.Text)
	}
	return append(dst, v.Text...)
}

// appendString appends a text as a JSON string. Invalid UTF-8, which Parse never returns, becomes U+FFFD.
func appendString(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, string(utf8.RuneError))
	}
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
