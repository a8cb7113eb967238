package graphql

import (
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/jsontext"
)

// outputWriter writes JSON, and collects errors with their response paths, and warnings.
type outputWriter struct {
	dst []byte
	// path is the response path of the field that is being planned or written.
	path   []step
	errors []*gqlError
	// dropped counts the errors beyond maxErrors.
	dropped int
	// warnings are reported in extensions.warnings, each once.
	warnings []warning
}

// maxAnswerBytes is the size limit of a response: lists that start beyond it, or reach it, are null.
const maxAnswerBytes = 64 << 20

func (w *outputWriter) push(name string) { w.path = append(w.path, step{name: name}) }
func (w *outputWriter) pushIndex(i int)  { w.path = append(w.path, step{index: i}) }
func (w *outputWriter) pop()             { w.path = w.path[:len(w.path)-1] }

func (w *outputWriter) null() bool {
	w.dst = append(w.dst, "null"...)
	return false
}

// addError records an error of the field at path.
func (w *outputWriter) addError(f *gqlError) {
	if len(w.errors) >= maxErrors {
		w.dropped++
		return
	}
	f.path = slices.Clone(w.path)
	w.errors = append(w.errors, f)
}

// nullWithError records an error and writes null as the value.
func (w *outputWriter) nullWithError(f *gqlError) bool {
	w.addError(f)
	return w.null()
}

// clear discards everything written, all errors and all warnings.
func (w *outputWriter) clear() { w.dst, w.errors, w.dropped, w.warnings = nil, nil, 0, nil }

// mark is a state of an outputWriter.
type mark struct{ bytes, errors, dropped int }

// mark returns the current state.
func (w *outputWriter) mark() mark { return mark{len(w.dst), len(w.errors), w.dropped} }

// rollback discards everything written and all errors since a mark.
func (w *outputWriter) rollback(m mark) {
	w.dst, w.errors, w.dropped = w.dst[:m.bytes], w.errors[:m.errors], m.dropped
}

// errorCount returns the number of errors, including those dropped.
func (w *outputWriter) errorCount() int { return len(w.errors) + w.dropped }

// missingValueError returns the error of a non-null field without a value.
func missingValueError(f *ast.Field) *gqlError {
	name := f.Name
	if f.ObjectDefinition != nil {
		name = f.ObjectDefinition.Name + "." + name
	}
	return (&gqlError{message: "the field " + name + " must not be null, but has no value", code: codeInternal}).at(f.Position)
}

// list writes a list of n items, or null if a required item is null.
func (w *outputWriter) list(n int, required bool, item func(i int) bool) bool {
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

func (w *outputWriter) text(s string) bool {
	w.dst = jsontext.AppendString(w.dst, s)
	return true
}

func (w *outputWriter) int(n int64) bool {
	w.dst = strconv.AppendInt(w.dst, n, 10)
	return true
}

func (w *outputWriter) flag(b bool) bool {
	w.dst = strconv.AppendBool(w.dst, b)
	return true
}

// number writes a number, or null if f is not finite.
func (w *outputWriter) number(f float64) bool {
	start := len(w.dst)
	w.dst = appendNumber(w.dst, f)
	return w.dst[start] != 'n'
}

// raw writes encoded JSON, or null if b is empty.
func (w *outputWriter) raw(b []byte) bool {
	if len(b) == 0 {
		return w.null()
	}
	w.dst = append(w.dst, b...)
	return string(b) != "null"
}

// itemRequired reports whether the items of a list field are non-null.
func itemRequired(f *ast.Field) bool {
	return f.Definition.Type.Elem != nil && f.Definition.Type.Elem.NonNull
}
