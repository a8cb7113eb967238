package graphql

import "sync"

const (
	// minPooledBuffer and maxPooledBuffer limit the size of pooled buffers in bytes: smaller ones are as cheap to allocate,
	// larger ones are rarely needed.
	minPooledBuffer = 4 << 10
	maxPooledBuffer = 8 << 20
)

// bufferPool reuses buffers for responses. The zero value is an empty pool.
type bufferPool struct{ pool sync.Pool }

// get returns an empty buffer with a capacity of at least bytes.
func (r *bufferPool) get(bytes int) []byte {
	if kept, ok := r.pool.Get().(*[]byte); ok {
		if cap(*kept) >= bytes {
			return (*kept)[:0]
		}
		r.pool.Put(kept)
	}
	return make([]byte, 0, bytes)
}

// put returns a buffer to the pool; it must not be used afterwards.
func (r *bufferPool) put(buf []byte) {
	if cap(buf) >= minPooledBuffer && cap(buf) <= maxPooledBuffer {
		r.pool.Put(&buf)
	}
}
