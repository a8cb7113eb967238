package upstream

import (
	"errors"
	"fmt"
	"io"

	"tutti/internal/core"
)

const (
	initialBuffer = 64 << 10
	maxIdleBuffer = 1 << 20
	maxEmptyReads = 100
)

// window is the part of a streamed JSON text that is in memory: it slides over the text and grows to its largest token.
type window struct {
	// maxOther bounds a token that is not a record, in bytes; it is at least the limit of a record.
	maxOther int

	r        io.Reader
	buf      []byte
	pos, end int // buf[pos:end] is read and not yet consumed
	eof      bool
	// sized is set when the buffer was allocated for the whole input.
	sized bool
	// skipped is the excerpt of the record that is being skipped, nil for none; it contains the bytes before skippedFrom.
	skipped     *core.DeadLetterDocumentBuilder
	skippedFrom int
}

func (w *window) reset(r io.Reader) {
	w.r, w.pos, w.end, w.eof, w.sized = r, 0, 0, false, false
	if w.buf == nil {
		w.buf = make([]byte, initialBuffer)
	}
}

// release drops the reader, and a buffer that grew for a large record.
func (w *window) release() {
	w.r = nil
	if len(w.buf) > maxIdleBuffer {
		w.buf = nil
	}
}

// list reads the object or array at pos; element reads each member or element, whose first byte is at pos.
func (w *window) list(closing byte, element func() error) error {
	w.pos++
	for first := true; ; first = false {
		c, err := w.next()
		if err != nil {
			return err
		}
		if c == closing && first {
			w.pos++
			return nil
		}
		if err := element(); err != nil {
			return err
		}
		if c, err = w.next(); err != nil {
			return err
		}
		w.pos++
		switch c {
		case ',':
		case closing:
			return nil
		default:
			return notJSON()
		}
	}
}

// token applies scan at pos, reading until the token is complete, and moves pos after it. It returns the index of the token's first
// byte. scan sees the token at index 0. Before it scans again, token doubles the number of bytes read, so that a record of any size
// is scanned only a few times. A token over limit bytes is ErrTooLarge, and pos stays at its start.
func (w *window) token(limit int, scan func(buf []byte, i int) int) (from int, err error) {
	for {
		switch n := scan(w.buf[w.pos:w.end], 0); n {
		case incomplete:
			held := w.end - w.pos
			if held > limit {
				return 0, tooLarge(limit)
			}
			if err := w.fill(min(held, limit-held+1)); err != nil {
				return 0, err
			}
		case invalid:
			return 0, notJSON()
		case tooNested:
			return 0, tooDeep()
		default:
			if n > limit {
				return 0, tooLarge(limit)
			}
			from, w.pos = w.pos, w.pos+n
			return from, nil
		}
	}
}

// next returns the first non-space byte from pos on, and moves pos to it.
func (w *window) next() (byte, error) {
	for {
		w.pos = skipSpace(w.buf[:w.end], w.pos)
		if w.pos < w.end {
			return w.buf[w.pos], nil
		}
		if err := w.refill(); err != nil {
			return 0, err
		}
	}
}

// refill reads more after everything in the buffer was consumed. A record that is skipped does not need the buffer that grew for it.
func (w *window) refill() error {
	if w.skipped != nil {
		if err := w.shrink(); err != nil {
			return err
		}
	}
	return w.fill(1)
}

// finish reads to the end of r, where only white space is allowed.
func (w *window) finish() error {
	_, err := w.next()
	switch {
	case err == nil:
		return Malformed("the upstream's answer continues after its end", ErrMalformed)
	case errors.Is(err, ErrTruncated) && w.eof:
		return nil
	default:
		return err
	}
}

// fill reads at least want bytes, fewer only at the end of r. When nothing is left to read it returns ErrTruncated.
func (w *window) fill(want int) error {
	if w.eof {
		return Malformed(messageCut, ErrTruncated)
	}
	if free := len(w.buf) - w.end; w.sized && free > 0 {
		want = min(want, free)
	}
	want = max(want, 1)
	if err := w.grow(want); err != nil {
		return err
	}
	empty := 0
	for got := 0; got < want; {
		n, err := w.r.Read(w.buf[w.end:])
		w.end += n
		got += n
		switch {
		case err == io.EOF:
			w.eof = true
			return nil
		case err != nil:
			return readError(err)
		case n > 0:
			empty = 0
		default:
			if empty++; empty > maxEmptyReads {
				return readError(io.ErrNoProgress)
			}
		}
	}
	return nil
}

// grow makes space for want more bytes: first by sliding, then by growing the buffer.
func (w *window) grow(want int) error {
	held := w.end - w.pos
	if len(w.buf)-w.end >= want {
		return nil
	}
	into := w.buf
	if held+want > len(w.buf) {
		size := max(held+want, min(2*len(w.buf), w.maxOther+1))
		if err := w.reserve(size); err != nil {
			return err
		}
		into = make([]byte, size)
	}
	w.slide(into)
	return nil
}

// slide moves what is not yet consumed to the start of a buffer, which may be the current one.
func (w *window) slide(into []byte) {
	w.noteSkipped()
	w.end = copy(into, w.buf[w.pos:w.end])
	w.buf, w.pos, w.skippedFrom = into, 0, 0
}

// memoryReserver is a reader that bounds the memory of its content.
type memoryReserver interface {
	// Reserve replaces the memory reserved before by n bytes, and waits until they are available.
	Reserve(n int64) error
}

// reserve reserves the memory of a buffer of a given size, none for the initial size.
func (w *window) reserve(size int) error {
	if size <= initialBuffer {
		size = 0
	}
	if r, ok := w.r.(memoryReserver); ok {
		return r.Reserve(int64(size))
	}
	return nil
}

// shrink replaces a buffer that grew for a large record once little of it is in use.
func (w *window) shrink() error {
	if len(w.buf) <= maxIdleBuffer || w.end-w.pos > initialBuffer {
		return nil
	}
	w.slide(make([]byte, initialBuffer))
	return w.reserve(0)
}

func tooLarge(limit int) error {
	return core.WrapError(core.CodeUpstream, fmt.Sprintf("the upstream's answer contains a value of more than %d bytes", limit), ErrTooLarge)
}

func notJSON() error { return Malformed("the upstream's answer is not JSON", ErrMalformed) }

func tooDeep() error {
	return core.WrapError(core.CodeUpstream, "the upstream's answer is nested too deeply", ErrMalformed)
}

// readError returns a classified error unchanged.
func readError(err error) error {
	if _, classified := errors.AsType[*core.Error](err); classified {
		return err
	}
	return core.WrapError(core.CodeUnavailable, messageCut, errors.Join(ErrTruncated, err))
}
