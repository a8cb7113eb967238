package graph

import (
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
)

// responseWriter is a response that is being written, and what went wrong on the way.
type responseWriter struct {
	dst []byte
	// path is where the field that is being planned or written stands in the response.
	path   []step
	errors []*gqlError
	// dropped counts the faults beyond maxFaults.
	dropped int
	// warnings are what the response says beside its data, each once.
	warnings []warning
	// spans is the room in which nested elements are noted, written that for the members of objects.
	spans   []span
	written []writtenValue
	// pendingList is what was written of nested elements before what stands around it; nil for nothing.
	pendingList []byte
	// counting is set while nested elements are counted before they are written.
	counting bool
	// dotted is set when a document has members whose names are paths.
	dotted bool
}

// maxAnswerBytes is how large an answer may become: lists that begin behind that, or reach it, are null.
const maxAnswerBytes = 64 << 20

// writeFunc appends one value of JSON; false when that is null.
type writeFunc func(w *responseWriter) bool

// member is a field of an object of the response.
type member struct {
	key string
	// required is set where null is not allowed: then the object is null in its place.
	required bool
	field    *ast.Field
	write    writeFunc
}

// memberOf makes the member of a field.
func memberOf(f *ast.Field, do writeFunc) member {
	return member{key: f.Alias, required: f.Definition.Type.NonNull, field: f, write: do}
}

func (w *responseWriter) push(name string) { w.path = append(w.path, step{name: name}) }
func (w *responseWriter) pushIndex(i int)  { w.path = append(w.path, step{index: i}) }
func (w *responseWriter) pop()             { w.path = w.path[:len(w.path)-1] }

// null writes null.
func (w *responseWriter) null() bool {
	w.dst = append(w.dst, "null"...)
	return false
}

// addError notes a fault of the field that the path leads to.
func (w *responseWriter) addError(f *gqlError) {
	if len(w.errors) >= maxErrors {
		w.dropped++
		return
	}
	f.path = slices.Clone(w.path)
	w.errors = append(w.errors, f)
}

// nullWithError notes a fault and writes null in the place of the value.
func (w *responseWriter) nullWithError(f *gqlError) bool {
	w.addError(f)
	return w.null()
}

// errorCount counts all faults.
func (w *responseWriter) errorCount() int { return len(w.errors) + w.dropped }

// object writes an object. It is null when a member is that must not be.
func (w *responseWriter) object(members []member) bool {
	start := len(w.dst)
	w.dst = append(w.dst, '{')
	for i := range members {
		m := &members[i]
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(appendText(w.dst, m.key), ':')
		w.push(m.key)
		errorsBefore := w.errorCount()
		filled := m.write(w)
		if !filled && m.required {
			if w.errorCount() == errorsBefore {
				w.addError(missingValueError(m.field))
			}
			w.pop()
			w.dst = w.dst[:start]
			return w.null()
		}
		w.pop()
	}
	w.dst = append(w.dst, '}')
	return true
}

// missingValueError is the fault of a field that has no value and must have one.
func missingValueError(f *ast.Field) *gqlError {
	name := f.Name
	if f.ObjectDefinition != nil {
		name = f.ObjectDefinition.Name + "." + name
	}
	return (&gqlError{message: "the field " + name + " must not be null, and has no value", code: codeInternal}).at(f.Position)
}

// list writes a list of n items. It is null when an item is that must not be.
func (w *responseWriter) list(n int, required bool, item func(i int) bool) bool {
	start := len(w.dst)
	w.dst = append(w.dst, '[')
	for i := range n {
		if len(w.dst) > maxAnswerBytes {
			w.dst = w.dst[:start]
			return w.nullWithError(&gqlError{message: "the answer is too large: ask for fewer documents, or for fewer buckets by their argument max", code: codeInput})
		}
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.pushIndex(i)
		filled := item(i)
		w.pop()
		if !filled && required {
			w.dst = w.dst[:start]
			return w.null()
		}
	}
	w.dst = append(w.dst, ']')
	return true
}

func (w *responseWriter) text(s string) bool {
	w.dst = appendText(w.dst, s)
	return true
}

func (w *responseWriter) int(n int64) bool {
	w.dst = strconv.AppendInt(w.dst, n, 10)
	return true
}

func (w *responseWriter) flag(b bool) bool {
	w.dst = strconv.AppendBool(w.dst, b)
	return true
}

// number writes a number, null for what is none.
func (w *responseWriter) number(f float64) bool {
	start := len(w.dst)
	w.dst = appendNumber(w.dst, f)
	return w.dst[start] != 'n'
}

// raw writes what is JSON already.
func (w *responseWriter) raw(b []byte) bool {
	if len(b) == 0 {
		return w.null()
	}
	w.dst = append(w.dst, b...)
	return string(b) != "null"
}

// writeNull writes null.
func writeNull(w *responseWriter) bool { return w.null() }

// writeText writes the same text every time.
func writeText(s string) writeFunc { return func(w *responseWriter) bool { return w.text(s) } }

// itemRequired reports whether the items of a list must not be null.
func itemRequired(f *ast.Field) bool {
	return f.Definition.Type.Elem != nil && f.Definition.Type.Elem.NonNull
}
