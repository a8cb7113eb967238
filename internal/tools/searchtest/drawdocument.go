package searchtest

import (
	"maps"
	"slices"
	"strings"

	"tutti/internal/index/mapping"
)

func parentOf(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// drawDocument returns a random document of a mapping, whose uid is its id.
func drawDocument(d draw, tree *mapping.Field, id string) string {
	w := documentWriter{draw: d}
	w.object(tree, map[string]string{"uid": quoted(id)})
	return w.String()
}

// documentWriter writes a random document.
type documentWriter struct {
	draw
	strings.Builder
}

// object writes an object with random members of f; fixed ones have given values.
func (w *documentWriter) object(f *mapping.Field, fixed map[string]string) {
	w.WriteByte('{')
	first := true
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		child := f.Properties[name]
		given, isGiven := fixed[name]
		if !isGiven && (child.Type == "alias" || w.percent(20)) {
			continue
		}
		if !first {
			w.WriteByte(',')
		}
		first = false
		w.WriteString(quoted(name) + ":")
		switch {
		case isGiven:
			w.WriteString(given)
		case child.Container():
			w.container(child)
		default:
			w.leaf(child)
		}
	}
	w.WriteByte('}')
}

// container writes the value of an object or a nested field.
func (w *documentWriter) container(f *mapping.Field) {
	switch n := w.IntN(100); {
	case n < 5:
		w.WriteString("null")
	case n < 10:
		w.WriteString("[]")
	case n < 13:
		w.WriteString("[null]")
	case n < 16:
		w.WriteString("{}")
	case n < 35 || f.Type == mapping.Object && n < 75:
		w.object(f, nil)
	case n < 40:
		w.list([]string{"[", "],[", "]"}, f)
	default:
		w.list([]string{"", ",", ""}, f)
	}
}

// list writes an array of objects; around are the texts before, between and after them.
func (w *documentWriter) list(around []string, f *mapping.Field) {
	w.WriteString("[" + around[0])
	for i := range w.between(1, 3) {
		if i > 0 {
			w.WriteString(around[1])
		}
		switch w.IntN(12) {
		case 0:
			w.WriteString("null")
		case 1:
			w.WriteString("{}")
		default:
			w.object(f, nil)
		}
	}
	w.WriteString(around[2] + "]")
}

// leaf writes the value of any other field.
func (w *documentWriter) leaf(f *mapping.Field) {
	stored := slices.DeleteFunc(poolOf(f.Type).stored, func(value string) bool { return slices.Contains(w.omitted[f.Type], value) })
	switch n := w.IntN(100); {
	case n < 5:
		w.WriteString("null")
	case n < 9:
		w.WriteString("[]")
	case n < 12:
		w.WriteString("[null]")
	case n < 65:
		w.WriteString(pick(w.draw, stored))
	default:
		values := make([]string, w.between(1, 4))
		for i := range values {
			values[i] = pick(w.draw, stored)
			if w.percent(5) {
				values[i] = "null"
			}
		}
		w.WriteString("[" + strings.Join(values, ",") + "]")
	}
}
