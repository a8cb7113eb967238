package selection

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tutti/internal/index"
)

// Document writes the document whose selected object starts at doc[at]. Dotted member names are rare: a document that has them is
// expanded and written again.
func (w *Writer) Document(s *Set, doc []byte, at int, hit *index.Hit) bool {
	start := w.Mark()
	w.Dotted = false
	end, filled := w.Object(s, doc, at, hit)
	if !w.Dotted {
		return filled
	}
	w.Rollback(start)
	_, filled = w.Object(s, expandDotted(doc[at:end], s), 0, hit)
	return filled
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
func splitNames(value any, shapes []*Set) any {
	if list, ok := value.([]any); ok {
		for i := range list {
			list[i] = splitNames(list[i], shapes)
		}
		return list
	}
	object, ok := value.(map[string]any)
	if !ok || len(shapes) == 0 {
		return value
	}
	found := make(map[string]any, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		if slices.ContainsFunc(shapes, func(s *Set) bool { return s.find([]byte(name)) < 0 && s.dotted([]byte(name)) }) {
			first, rest, _ := strings.Cut(name, ".")
			name, value = first, any(map[string]any{rest: value})
		}
		found[name] = mergeValues(found[name], value)
	}
	for name, value := range found {
		var below []*Set
		for _, s := range shapes {
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
func (s *Set) appendNested(shapes []*Set, name string) []*Set {
	i := s.find([]byte(name))
	if i < 0 {
		return shapes
	}
	for _, wanted := range s.fieldsOf[i] {
		switch one := &s.fields[wanted]; one.kind {
		case fieldObject:
			shapes = append(shapes, one.selection)
		case fieldNested:
			shapes = one.nested.nodes(shapes)
		default:
		}
	}
	return shapes
}

// nodes appends the selection sets of the elements.
func (n *nestedConnection) nodes(shapes []*Set) []*Set {
	for i := range n.fields {
		one := &n.fields[i]
		if one.hits != nil {
			shapes = one.hits.nodes(shapes)
		}
		if one.edge != nil {
			shapes = append(shapes, one.edge.Nodes()...)
		}
	}
	return shapes
}
