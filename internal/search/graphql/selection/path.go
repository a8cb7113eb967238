package selection

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/index"
)

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

// appendPathsOf is AppendPaths for any value; the items of an array are reduced one by one.
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

// Document writes the document whose selected object starts at doc[at]. Dotted member names are rare: a document that has them is
// expanded and written again.
func (w *Writer) Document(s *Set, doc []byte, at int, hit *index.Hit) {
	start := w.Mark()
	w.Dotted = false
	if end := w.Object(s, doc, at, hit); w.Dotted {
		w.Rollback(start)
		w.Object(s, expandDotted(doc[at:end], s), 0, hit)
	}
}

// expandDotted returns an object in which dotted names of selected fields are replaced by objects.
func expandDotted(object []byte, s *Set) []byte {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return object
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(splitNames(value, []*Set{s})) != nil {
		return object
	}
	return b.Bytes()
}

// splitNames splits dotted member names where one of the selections selects a field of the first segment.
func splitNames(value any, sets []*Set) any {
	if list, ok := value.([]any); ok {
		for i := range list {
			list[i] = splitNames(list[i], sets)
		}
		return list
	}
	object, ok := value.(map[string]any)
	if !ok || len(sets) == 0 {
		return value
	}
	found := make(map[string]any, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		if slices.ContainsFunc(sets, func(s *Set) bool { return s.find([]byte(name)) < 0 && s.dotted([]byte(name)) }) {
			first, rest, _ := strings.Cut(name, ".")
			name, value = first, any(map[string]any{rest: value})
		}
		found[name] = mergeValues(found[name], value)
	}
	for name, value := range found {
		var below []*Set
		for _, s := range sets {
			below = s.appendNested(below, name)
		}
		found[name] = splitNames(value, below)
	}
	return found
}

// mergeValues merges two values of the same path, as engines do: objects are merged, other values become a list.
func mergeValues(a, b any) any {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	one, isObject := a.(map[string]any)
	other, isToo := b.(map[string]any)
	if !isObject || !isToo {
		return []any{a, b}
	}
	for name, value := range other {
		one[name] = mergeValues(one[name], value)
	}
	return one
}

// appendNested appends the selection sets below a member.
func (s *Set) appendNested(sets []*Set, name string) []*Set {
	i := s.find([]byte(name))
	if i < 0 {
		return sets
	}
	for _, wanted := range s.fieldsOf[i] {
		switch one := &s.fields[wanted]; one.kind {
		case fieldObject:
			sets = append(sets, one.selection)
		case fieldNested:
			sets = one.nested.nodes(sets)
		default:
		}
	}
	return sets
}

// nodes appends the selection sets of the elements.
func (n *nestedConnection) nodes(sets []*Set) []*Set {
	for i := range n.fields {
		one := &n.fields[i]
		if one.hits != nil {
			sets = one.hits.nodes(sets)
		}
		if one.edge != nil {
			sets = append(sets, one.edge.NodeSelections()...)
		}
	}
	return sets
}
