package output

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/jsontext"
)

// Writer writes JSON, and collects errors with their response paths, and warnings. Methods that write a value report whether it is
// not null.
type Writer struct {
	// Buf is what has been written.
	Buf []byte
	// path is the response path of the field that is being planned or written.
	path   []step
	Errors []*Error
	// Dropped counts the errors beyond MaxErrors.
	Dropped int
	// Warnings are reported in extensions.warnings, each once.
	Warnings []Warning
}

// MaxBytes is the size limit of a response: lists that start beyond it, or reach it, are null.
const MaxBytes = 64 << 20

// Push enters a member of an object.
func (w *Writer) Push(name string) { w.path = append(w.path, step{name: name}) }

// PushIndex enters an item of a list.
func (w *Writer) PushIndex(i int) { w.path = append(w.path, step{index: i}) }

// Pop leaves the member or item entered last.
func (w *Writer) Pop() { w.path = w.path[:len(w.path)-1] }

// Null writes null.
func (w *Writer) Null() bool {
	w.Buf = append(w.Buf, "null"...)
	return false
}

// AddError records an error at the current path.
func (w *Writer) AddError(f *Error) {
	if len(w.Errors) >= MaxErrors {
		w.Dropped++
		return
	}
	f.path = slices.Clone(w.path)
	w.Errors = append(w.Errors, f)
}

// NullWithError records an error and writes null as the value.
func (w *Writer) NullWithError(f *Error) bool {
	w.AddError(f)
	return w.Null()
}

// Clear discards everything written, all errors and all warnings.
func (w *Writer) Clear() { w.Buf, w.Errors, w.Dropped, w.Warnings = nil, nil, 0, nil }

// Mark is a state of a Writer.
type Mark struct {
	// Bytes is the length of Buf.
	Bytes           int
	errors, dropped int
}

// Mark returns the current state.
func (w *Writer) Mark() Mark { return Mark{len(w.Buf), len(w.Errors), w.Dropped} }

// Rollback discards everything written and all errors since a mark.
func (w *Writer) Rollback(m Mark) {
	w.Buf, w.Errors, w.Dropped = w.Buf[:m.Bytes], w.Errors[:m.errors], m.dropped
}

// ErrorCount returns the number of errors, including those dropped.
func (w *Writer) ErrorCount() int { return len(w.Errors) + w.Dropped }

// Key returns the response key of a field as JSON, with its colon.
func Key(f *ast.Field) []byte { return append(jsontext.AppendString(nil, f.Alias), ':') }

// MissingValue returns the error of a non-null field without a value.
func MissingValue(f *ast.Field) *Error {
	name := f.Name
	if f.ObjectDefinition != nil {
		name = f.ObjectDefinition.Name + "." + name
	}
	return (&Error{Message: "the field " + name + " must not be null, but has no value", Code: CodeInternal}).At(f.Position)
}

// List writes a list of n items, or null if a required item is null.
func (w *Writer) List(n int, required bool, item func(i int) bool) bool {
	start := len(w.Buf)
	w.Buf = append(w.Buf, '[')
	for i := range n {
		if len(w.Buf) > MaxBytes {
			w.Buf = w.Buf[:start]
			return w.NullWithError(&Error{Message: "the response is too large: request fewer documents, or fewer buckets with their argument max", Code: CodeInput})
		}
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.PushIndex(i)
		filled := item(i)
		w.Pop()
		if !filled && required {
			w.Buf = w.Buf[:start]
			return w.Null()
		}
	}
	w.Buf = append(w.Buf, ']')
	return true
}

// Text writes a string.
func (w *Writer) Text(s string) bool {
	w.Buf = jsontext.AppendString(w.Buf, s)
	return true
}

// Int writes an integer.
func (w *Writer) Int(n int64) bool {
	w.Buf = strconv.AppendInt(w.Buf, n, 10)
	return true
}

// Bool writes a boolean.
func (w *Writer) Bool(b bool) bool {
	w.Buf = strconv.AppendBool(w.Buf, b)
	return true
}

// Number writes a number, or null if f is not finite.
func (w *Writer) Number(f float64) bool {
	start := len(w.Buf)
	w.Buf = appendNumber(w.Buf, f)
	return w.Buf[start] != 'n'
}

// Raw writes encoded JSON, or null if b is empty.
func (w *Writer) Raw(b []byte) bool {
	if len(b) == 0 {
		return w.Null()
	}
	w.Buf = append(w.Buf, b...)
	return string(b) != "null"
}

// ItemRequired reports whether the items of a list field are non-null.
func ItemRequired(f *ast.Field) bool {
	return f.Definition.Type.Elem != nil && f.Definition.Type.Elem.NonNull
}

// TimeLayout is the format of times.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// appendNumber appends a JSON number, null for infinities and NaN.
func appendNumber(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return append(dst, PlainNumber(f)...)
}

// PlainNumber formats a number as JavaScript does, except that -0 is 0.
func PlainNumber(f float64) string {
	if f == 0 {
		return "0"
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}

// maxSafeInteger is the largest integer that JavaScript represents exactly, together with all smaller ones.
const maxSafeInteger = 1<<53 - 1

// UnsafeInteger reports whether a value is an integer that JavaScript would round.
func UnsafeInteger(raw []byte) bool {
	if len(raw) < 16 || !jsontext.IsNumber(raw) || bytes.ContainsAny(raw, ".eE") {
		return false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err != nil || n > maxSafeInteger || n < -maxSafeInteger
}

const (
	// minPooledBuffer and maxPooledBuffer limit the size of pooled buffers in bytes: smaller ones are as cheap to allocate,
	// larger ones are rarely needed.
	minPooledBuffer = 4 << 10
	maxPooledBuffer = 8 << 20
)

// BufferPool reuses buffers for responses. The zero value is an empty pool.
type BufferPool struct{ pool sync.Pool }

// Get returns an empty buffer with a capacity of at least bytes.
func (r *BufferPool) Get(bytes int) []byte {
	if kept, ok := r.pool.Get().(*[]byte); ok {
		if cap(*kept) >= bytes {
			return (*kept)[:0]
		}
		r.pool.Put(kept)
	}
	return make([]byte, 0, bytes)
}

// Put returns a buffer to the pool; it must not be used afterwards.
func (r *BufferPool) Put(buf []byte) {
	if cap(buf) >= minPooledBuffer && cap(buf) <= maxPooledBuffer {
		r.pool.Put(&buf)
	}
}
