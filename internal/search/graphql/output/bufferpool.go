package output

import "sync"

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
