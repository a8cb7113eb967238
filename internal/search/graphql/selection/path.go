package selection

import (
	"strings"

	"tutti/internal/jsontext"
)

// Segments returns the names of a path below the prefix.
func Segments(path string, prefix []string) []string {
	return strings.Split(path, ".")[len(prefix):]
}

// Inside returns the offset of the value at a path of names, len(doc) if there is none.
func Inside(doc []byte, path []string) int {
	at := jsontext.Space(doc, 0)
	for _, name := range path {
		next := len(doc)
		jsontext.Members(doc, at, func(found []byte, escaped bool, v span) bool {
			if string(found) == name || escaped && jsontext.Unescape(found) == name {
				next = v.Start
			}
			return true
		})
		at = next
	}
	return at
}

// AppendPaths appends the object at doc[at], reduced to the given paths; without paths, the whole object. Engines may return
// more than was requested. A value that is not an object becomes {}.
func AppendPaths(dst, doc []byte, at int, paths [][]string) []byte {
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
		dst = appendPathsOf(dst, doc, v, below)
		return true
	})
	return append(dst, '}')
}

// appendPathsOf is appendProjection for any value; an array is projected item by item.
func appendPathsOf(dst, doc []byte, v span, paths [][]string) []byte {
	if doc[v.Start] != '[' {
		return AppendPaths(dst, doc, v.Start, paths)
	}
	dst = append(dst, '[')
	first := true
	jsontext.Items(doc, v, func(item span) bool {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = AppendPaths(dst, doc, item.Start, paths)
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
