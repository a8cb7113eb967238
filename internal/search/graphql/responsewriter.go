package graphql

import (
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
)

// responseWriter writes a response and collects its errors and warnings.
type responseWriter struct {
	dst []byte
	// path is the response path of the field that is being planned or written.
	path   []step
	errors []*gqlError
	// dropped counts the errors beyond maxErrors.
	dropped int
	// warnings are reported in extensions.warnings, each once.
	warnings []warning
	// spans is scratch space for the nested elements, written for the members of objects.
	spans   []span
	written []writtenValue
	// pendingList is the encoded list of nested elements, written before the connection around it; nil for none.
	pendingList []byte
	// counting is set while nested elements are counted before they are written.
	counting bool
	// dotted is set when a document has member names that are dotted paths.
	dotted bool
}

// maxAnswerBytes is the size limit of a response: lists that start beyond it, or reach it, are null.
const maxAnswerBytes = 64 << 20

// writeFunc appends one JSON value and reports whether it is not null.
type writeFunc func(w *responseWriter) bool

// member is a field of an object of the response.
type member struct {
	key string
	// required is set for a non-null field: if its value is null, the whole object is null.
	required bool
	field    *ast.Field
	write    writeFunc
}

// memberOf returns the member of a field.
func memberOf(f *ast.Field, do writeFunc) member {
	return member{key: f.Alias, required: f.Definition.Type.NonNull, field: f, write: do}
}

func (w *responseWriter) push(name string) { w.path = append(w.path, step{name: name}) }
func (w *responseWriter) pushIndex(i int)  { w.path = append(w.path, step{index: i}) }
func (w *responseWriter) pop()             { w.path = w.path[:len(w.path)-1] }

func (w *responseWriter) null() bool {
	w.dst = append(w.dst, "null"...)
	return false
}

// addError records an error of the field at path.
func (w *responseWriter) addError(f *gqlError) {
	if len(w.errors) >= maxErrors {
		w.dropped++
		return
	}
	f.path = slices.Clone(w.path)
	w.errors = append(w.errors, f)
}

// nullWithError records an error and writes null as the value.
func (w *responseWriter) nullWithError(f *gqlError) bool {
	w.addError(f)
	return w.null()
}

// errorCount returns the number of errors, including those dropped.
func (w *responseWriter) errorCount() int { return len(w.errors) + w.dropped }

// object writes an object, or null if a required member is null.
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

// missingValueError returns the error of a non-null field without a value.
func missingValueError(f *ast.Field) *gqlError {
	name := f.Name
	if f.ObjectDefinition != nil {
		name = f.ObjectDefinition.Name + "." + name
	}
	return (&gqlError{message: "the field " + name + " must not be null, but has no value", code: codeInternal}).at(f.Position)
}

// list writes a list of n items, or null if a required item is null.
func (w *responseWriter) list(n int, required bool, item func(i int) bool) bool {
	start := len(w.dst)
	w.dst = append(w.dst, '[')
	for i := range n {
		if len(w.dst) > maxAnswerBytes {
			w.dst = w.dst[:start]
			return w.nullWithError(&gqlError{message: "the response is too large: request fewer documents, or fewer buckets with their argument max", code: codeInput})
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

// number writes a number, or null if f is not finite.
func (w *responseWriter) number(f float64) bool {
	start := len(w.dst)
	w.dst = appendNumber(w.dst, f)
	return w.dst[start] != 'n'
}

// raw writes encoded JSON, or null if b is empty.
func (w *responseWriter) raw(b []byte) bool {
	if len(b) == 0 {
		return w.null()
	}
	w.dst = append(w.dst, b...)
	return string(b) != "null"
}

func writeNull(w *responseWriter) bool { return w.null() }

// writeText returns a writeFunc for a constant string.
func writeText(s string) writeFunc { return func(w *responseWriter) bool { return w.text(s) } }

// itemRequired reports whether the items of a list field are non-null.
func itemRequired(f *ast.Field) bool {
	return f.Definition.Type.Elem != nil && f.Definition.Type.Elem.NonNull
}
