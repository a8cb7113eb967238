package graphql

import (
	"strings"

	"tutti/internal/jsontext"
)

// segments returns the names of a path below the prefix.
func segments(path string, prefix []string) []string {
	return strings.Split(path, ".")[len(prefix):]
}

// appendProjection appends the object at doc[at], reduced to the given paths; without paths, the whole object. Engines may return
// more than was requested. A value that is not an object becomes {}.
func appendProjection(dst, doc []byte, at int, paths [][]string) []byte {
	if at >= len(doc) || doc[at] != '{' {
		return append(dst, "{}"...)
	}
	if len(paths) == 0 {
		return append(dst, doc[at:jsontext.Value(doc, at)]...)
	}
	dst = append(dst, '{')
	first := true
	jsontext.Members(doc, at, func(name []byte, escaped bool, v span) bool {
		plain := string(name)
		if escaped {
			plain = jsontext.Unescape(name)
		}
		below, whole := projectedBelow(paths, plain)
		if !whole && len(below) == 0 {
			return true
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(dst, '"'), name...), '"', ':')
		if whole {
			dst = append(dst, v.Of(doc)...)
			return true
		}
		dst = appendProjectedValue(dst, doc, v, below)
		return true
	})
	return append(dst, '}')
}

// appendProjectedValue is appendProjection for any value; an array is projected item by item.
func appendProjectedValue(dst, doc []byte, v span, paths [][]string) []byte {
	if doc[v.Start] != '[' {
		return appendProjection(dst, doc, v.Start, paths)
	}
	dst = append(dst, '[')
	first := true
	jsontext.Items(doc, v, func(item span) bool {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendProjection(dst, doc, item.Start, paths)
		return true
	})
	return append(dst, ']')
}

// projectedBelow returns the paths below a member, and reports whether the whole member is selected.
func projectedBelow(paths [][]string, name string) (below [][]string, whole bool) {
	for _, path := range paths {
		if path[0] != name {
			continue
		}
		if len(path) == 1 {
			return nil, true
		}
		below = append(below, path[1:])
	}
	return below, false
}
