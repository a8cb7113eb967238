package plan

import (
	"strconv"

	"tutti/internal/filter/query"
)

// appendFilterKey encodes a filter so that two filters have the same encoding if and only if they are equal. Nil, which matches
// everything, is empty.
func appendFilterKey(dst []byte, n *query.Node) []byte {
	if n == nil {
		return dst
	}
	dst = strconv.AppendUint(append(dst, '('), uint64(n.Op), 10)
	dst = appendKeyPart(dst, n.Path)
	dst = appendKeyPart(dst, n.Field.Path)
	dst = appendKeyPart(dst, n.Field.Type)
	for _, term := range n.Terms {
		dst = appendKeyPart(dst, term)
	}
	dst = appendBoundKey(append(dst, '<'), n.From)
	dst = appendBoundKey(append(dst, '>'), n.To)
	for _, p := range n.Patterns {
		dst = appendKeyPart(dst, string(p))
	}
	if n.Fold {
		dst = append(dst, '~')
	}
	for _, child := range n.Children {
		dst = appendFilterKey(dst, child)
	}
	return append(dst, ')')
}

func appendKeyPart(dst []byte, s string) []byte {
	return append(append(strconv.AppendInt(append(dst, ':'), int64(len(s)), 10), ':'), s...)
}

func appendBoundKey(dst []byte, b query.Bound) []byte {
	if !b.Set {
		return dst
	}
	dst = strconv.AppendBool(dst, b.Inclusive)
	dst = appendKeyPart(dst, b.Number)
	return appendKeyPart(dst, strconv.FormatInt(b.Time.Unix(), 10)+"."+strconv.Itoa(b.Time.Nanosecond()))
}
