package graph

import "sync"

const (
	// minPooledBuffer and roomMost are how much room is kept for the next answers: less is made anew as cheaply, and more is seldom
	// needed.
	minPooledBuffer = 4 << 10
	maxPooledBuffer = 8 << 20
)

// bufferPool keeps room for what is written, so that it is not made and cleared for each answer. The zero value has none.
type bufferPool struct{ pool sync.Pool }

// get returns room for so many bytes at least, empty.
func (r *bufferPool) get(bytes int) []byte {
	if kept, ok := r.pool.Get().(*[]byte); ok {
		if cap(*kept) >= bytes {
			return (*kept)[:0]
		}
		r.pool.Put(kept)
	}
	return make([]byte, 0, bytes)
}

// put takes room back, which nobody reads any more.
func (r *bufferPool) put(buf []byte) {
	if cap(buf) >= minPooledBuffer && cap(buf) <= maxPooledBuffer {
		r.pool.Put(&buf)
	}
}
