package sqon

import (
	"strings"

	"tutti/internal/base/jsontext"
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
	dst = jsontext.AppendString(dst, string(n.Op))
	if n.Pivot != "" {
		dst = append(dst, `,"pivot":`...)
		dst = jsontext.AppendString(dst, n.Pivot)
	}
	dst = append(dst, `,"content":`...)
	if !n.Group() {
		return append(n.appendClause(dst), '}')
	}
	return append(appendList(dst, n.Content, (*Node).appendJSON), '}')
}

func (n *Node) appendClause(dst []byte) []byte {
	shape := n.Op.contentKind()
	if shape == patternContent {
		dst = append(dst, `{"fieldNames":`...)
		dst = appendList(dst, n.Fields, func(name string, dst []byte) []byte { return jsontext.AppendString(dst, name) })
	} else {
		dst = append(dst, `{"fieldName":`...)
		dst = jsontext.AppendString(dst, strings.Join(n.Fields, ""))
	}
	dst = append(dst, `,"value":`...)
	if len(n.Values) == 1 && (shape == rangeContent || shape == patternContent) {
		return append(n.Values[0].appendJSON(dst), '}')
	}
	return append(appendList(dst, n.Values, Value.appendJSON), '}')
}

// appendList appends items as a JSON array.
func appendList[T any](dst []byte, items []T, appendItem func(item T, dst []byte) []byte) []byte {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendItem(item, dst)
	}
	return append(dst, ']')
}

func (v Value) appendJSON(dst []byte) []byte {
	if v.Kind == String {
		return jsontext.AppendString(dst, v.Text)
	}
	return append(dst, v.Text...)
}
