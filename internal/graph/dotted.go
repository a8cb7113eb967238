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
func (w *answer) document(s *shape, doc []byte, at int, hit *index.Hit) bool {
	start, told, dropped := len(w.dst), len(w.faults), w.dropped
	w.dotted = false
	end, filled := w.shaped(s, doc, at, hit)
	if !w.dotted {
		return filled
	}
	w.dst, w.faults, w.dropped = w.dst[:start], w.faults[:told], dropped
	_, filled = w.shaped(s, undotted(doc[at:end], s), 0, hit)
	return filled
}

// undotted returns an object in which no name stands for a path that leads to what a shape wants.
func undotted(object []byte, s *shape) []byte {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return object
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(parted(value, []*shape{s})) != nil {
		return object
	}
	return b.Bytes()
}

// parted returns a value with the names of its members parted at dots, where one of the shapes wants it so.
func parted(value any, shapes []*shape) any {
	if list, ok := value.([]any); ok {
		for i := range list {
			list[i] = parted(list[i], shapes)
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
		if slices.ContainsFunc(shapes, func(s *shape) bool { return s.find([]byte(name)) < 0 && s.dotted([]byte(name)) }) {
			first, rest, _ := strings.Cut(name, ".")
			name, value = first, any(map[string]any{rest: value})
		}
		found[name] = together(found[name], value)
	}
	for name, value := range found {
		var below []*shape
		for _, s := range shapes {
			below = s.below(below, name)
		}
		found[name] = parted(value, below)
	}
	return found
}

// together returns what engines see of two values of one path: the members of both, else both values.
func together(a, b any) any {
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
		one[name] = together(one[name], value)
	}
	return one
}

// below adds the shapes of what a member holds.
func (s *shape) below(shapes []*shape, name string) []*shape {
	i := s.find([]byte(name))
	if i < 0 {
		return shapes
	}
	for _, wanted := range s.of[i] {
		switch one := &s.wants[wanted]; one.kind {
		case wantPlain:
			shapes = append(shapes, one.shape)
		case wantNest:
			shapes = one.nest.nodes(shapes)
		default:
		}
	}
	return shapes
}

// nodes adds the shapes of the elements.
func (n *nest) nodes(shapes []*shape) []*shape {
	for i := range n.wants {
		one := &n.wants[i]
		if one.hits != nil {
			shapes = one.hits.nodes(shapes)
		}
		if one.edge != nil {
			shapes = append(shapes, one.edge.nodes()...)
		}
	}
	return shapes
}
