package output

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/base/jsontext"
)

// Writer writes JSON, and collects errors with their response paths, and warnings.
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
func (w *Writer) Null() { w.Buf = append(w.Buf, "null"...) }

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
func (w *Writer) NullWithError(f *Error) {
	w.AddError(f)
	w.Null()
}

// Clear discards everything written, all errors and all warnings.
func (w *Writer) Clear() { w.Buf, w.Errors, w.Dropped, w.Warnings = nil, nil, 0, nil }

// Mark is a state of a Writer.
type Mark struct {
	// Bytes is the length of Buf.
	Bytes                     int
	errors, dropped, warnings int
}

// Mark returns the current state.
func (w *Writer) Mark() Mark { return Mark{len(w.Buf), len(w.Errors), w.Dropped, len(w.Warnings)} }

// Rollback discards everything written, all errors and all warnings since a mark.
func (w *Writer) Rollback(m Mark) {
	w.Buf, w.Errors, w.Dropped, w.Warnings = w.Buf[:m.Bytes], w.Errors[:m.errors], m.dropped, w.Warnings[:m.warnings]
}

// ErrorCount returns the number of errors, including those dropped.
func (w *Writer) ErrorCount() int { return len(w.Errors) + w.Dropped }

// Key returns the response key of a field as JSON, with its colon.
func Key(f *ast.Field) []byte { return append(jsontext.AppendString(nil, f.Alias), ':') }

// List writes a list of n items.
func (w *Writer) List(n int, item func(i int)) {
	start := len(w.Buf)
	w.Buf = append(w.Buf, '[')
	for i := range n {
		if !w.NextItem(start, i) {
			return
		}
		item(i)
		w.Pop()
	}
	w.Buf = append(w.Buf, ']')
}

// NextItem enters the i-th item of the list that begins at start. If the response is too large, it writes null with an error instead
// of the list, and returns false.
func (w *Writer) NextItem(start, i int) bool {
	if len(w.Buf) > MaxBytes {
		w.Buf = w.Buf[:start]
		w.NullWithError(TooLarge())
		return false
	}
	if i > 0 {
		w.Buf = append(w.Buf, ',')
	}
	w.PushIndex(i)
	return true
}

// TooLarge returns the error of a response that would exceed MaxBytes.
func TooLarge() *Error {
	return &Error{Message: "the response is too large: request fewer documents, or fewer buckets with their argument max", Code: CodeInput}
}

// Text writes a string.
func (w *Writer) Text(s string) { w.Buf = jsontext.AppendString(w.Buf, s) }

// Int writes an integer.
func (w *Writer) Int(n int64) { w.Buf = strconv.AppendInt(w.Buf, n, 10) }

// Number writes a number, null for infinities and NaN; -0 is 0.
func (w *Writer) Number(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.Null()
		return
	}
	w.Buf = append(w.Buf, jsontext.Number(f+0)...)
}

// Raw writes encoded JSON, or null if b is empty.
func (w *Writer) Raw(b []byte) {
	if len(b) == 0 {
		w.Null()
		return
	}
	w.Buf = append(w.Buf, b...)
}

// TimeLayout is the format of times.
const TimeLayout = "2006-01-02T15:04:05.000Z"

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
