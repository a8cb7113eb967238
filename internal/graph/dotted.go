package graph

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tutti/internal/index"
)

// document writes the whole document whose wanted object begins at doc[at]. Names that are paths are rare: such a document is
// looked at once more, with objects in their place.
func (w *responseWriter) document(s *selectionSet, doc []byte, at int, hit *index.Hit) bool {
	start, errorsBefore, dropped := len(w.dst), len(w.errors), w.dropped
	w.dotted = false
	end, filled := w.selectedObject(s, doc, at, hit)
	if !w.dotted {
		return filled
	}
	w.dst, w.errors, w.dropped = w.dst[:start], w.errors[:errorsBefore], dropped
	_, filled = w.selectedObject(s, expandDotted(doc[at:end], s), 0, hit)
	return filled
}

// expandDotted returns an object in which no name stands for a path that leads to what a shape wants.
func expandDotted(object []byte, s *selectionSet) []byte {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return object
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(splitNames(value, []*selectionSet{s})) != nil {
		return object
	}
	return b.Bytes()
}

// splitNames returns a value with the names of its members parted at dots, where one of the shapes wants it so.
func splitNames(value any, shapes []*selectionSet) any {
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
		if slices.ContainsFunc(shapes, func(s *selectionSet) bool { return s.find([]byte(name)) < 0 && s.dotted([]byte(name)) }) {
			first, rest, _ := strings.Cut(name, ".")
			name, value = first, any(map[string]any{rest: value})
		}
		found[name] = mergeValues(found[name], value)
	}
	for name, value := range found {
		var below []*selectionSet
		for _, s := range shapes {
			below = s.appendNested(below, name)
		}
		found[name] = splitNames(value, below)
	}
	return found
}

// mergeValues returns what engines see of two values of one path: the members of both, else both values.
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

// appendNested adds the shapes of what a member holds.
func (s *selectionSet) appendNested(shapes []*selectionSet, name string) []*selectionSet {
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

// nodes adds the shapes of the elements.
func (n *nestedConnection) nodes(shapes []*selectionSet) []*selectionSet {
	for i := range n.fields {
		one := &n.fields[i]
		if one.hits != nil {
			shapes = one.hits.nodes(shapes)
		}
		if one.edge != nil {
			shapes = append(shapes, one.edge.nodes()...)
		}
	}
	return shapes
}
