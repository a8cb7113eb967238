package graph

import (
	"strconv"

	"tutti/internal/index/query"
)

// appendNode writes a filter so that equal ones are written equally, and others not. Nil, which matches everything, is nothing.
func appendNode(dst []byte, n *query.Node) []byte {
	if n == nil {
		return dst
	}
	dst = strconv.AppendUint(append(dst, '('), uint64(n.Op), 10)
	dst = appendPart(dst, n.Path)
	dst = appendPart(dst, n.Field.Path)
	dst = appendPart(dst, n.Field.Type)
	for _, term := range n.Terms {
		dst = appendPart(dst, term)
	}
	dst = appendBound(append(dst, '<'), n.From)
	dst = appendBound(append(dst, '>'), n.To)
	for _, p := range n.Patterns {
		dst = appendPart(dst, string(p))
	}
	if n.Fold {
		dst = append(dst, '~')
	}
	for _, child := range n.Children {
		dst = appendNode(dst, child)
	}
	return append(dst, ')')
}

func appendPart(dst []byte, s string) []byte {
	return append(append(strconv.AppendInt(append(dst, ':'), int64(len(s)), 10), ':'), s...)
}

func appendBound(dst []byte, b query.Bound) []byte {
	if !b.Set {
		return dst
	}
	dst = strconv.AppendBool(dst, b.Inclusive)
	dst = appendPart(dst, b.Number)
	return appendPart(dst, strconv.FormatInt(b.Time.Unix(), 10)+"."+strconv.Itoa(b.Time.Nanosecond()))
}
