package draw

import (
	"maps"
	"slices"
	"strings"

	"tutti/internal/index/mapping"
)

// Document returns a random document of a mapping, whose uid is its id.
func Document(d Choices, tree *mapping.Field, id string) string {
	w := documentWriter{Choices: d}
	w.object(tree, map[string]string{"uid": Quoted(id), "constant": `"constant"`})
	return w.String()
}

// documentWriter writes a random document.
type documentWriter struct {
	Choices
	strings.Builder
	// below is the field of the root that is being written.
	below string
}

// object writes an object with random members of f; fixed ones have given values.
func (w *documentWriter) object(f *mapping.Field, fixed map[string]string) {
	w.WriteByte('{')
	first := true
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		child := f.Properties[name]
		given, isGiven := fixed[name]
		if !isGiven && (child.Type == "alias" || w.Percent(20)) {
			continue
		}
		if !first {
			w.WriteByte(',')
		}
		first = false
		if f.Properties["uid"] != nil {
			w.below = name
		}
		w.WriteString(Quoted(name) + ":")
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
	held := strings.HasPrefix(w.below, "held") || w.below == "one" // at most one value each
	switch n := w.IntN(100); {
	case n < 5:
		w.WriteString("null")
	case held:
		w.object(f, nil)
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
	for i := range w.Between(1, 3) {
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
	if strings.HasPrefix(w.below, "held") {
		if values := heldValues(f.Type); values != nil {
			w.WriteString(Pick(w.Choices, values))
		} else {
			w.WriteString("null")
		}
		return
	}
	n := w.IntN(100)
	if w.below == "one" && n >= 12 {
		n = 12
	}
	switch {
	case n < 5:
		w.WriteString("null")
	case n < 9:
		w.WriteString("[]")
	case n < 12:
		w.WriteString("[null]")
	case n < 65:
		w.WriteString(w.stored(f.Type))
	default:
		values := make([]string, w.Between(1, 4))
		for i := range values {
			values[i] = w.stored(f.Type)
			if w.Percent(5) {
				values[i] = "null"
			}
		}
		w.WriteString("[" + strings.Join(values, ",") + "]")
	}
}

// stored returns a value of a document: from the pool of the type, or from all of its range.
func (w *documentWriter) stored(t mapping.Type) string {
	if w.below == "near" {
		return Pick(w.Choices, nearValues(t))
	}
	if w.Percent(30) {
		if value := w.wide(t); value != "" && !w.beyond(t, value) {
			return value
		}
	}
	for {
		value := Pick(w.Choices, poolOf(t).stored)
		if !w.beyond(t, value) && !slices.Contains(w.Omitted[t], value) {
			return value
		}
	}
}

// beyond reports whether a value is not drawn: a number that documents have at most once, and what Plain excludes.
func (w *documentWriter) beyond(t mapping.Type, value string) bool {
	if t == "wildcard" && w.Plain {
		return value == `""` || strings.ContainsFunc(value, func(r rune) bool { return r == '\\' || r > '~' })
	}
	return t == "unsigned_long" && w.Low && w.below != "one" && (len(value) > 19 || len(value) == 19 && value > "9223372036854775807")
}
