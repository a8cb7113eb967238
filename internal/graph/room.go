package graph

import "sync"

const (
	// roomLeast and roomMost are how much room is kept for the next answers: less is made anew as cheaply, and more is seldom
	// needed.
	roomLeast = 4 << 10
	roomMost  = 8 << 20
)

// rooms keeps room for what is written, so that it is not made and cleared for each answer. The zero value has none.
type rooms struct{ pool sync.Pool }

// get returns room for so many bytes at least, empty.
func (r *rooms) get(bytes int) []byte {
	if kept, ok := r.pool.Get().(*[]byte); ok {
		if cap(*kept) >= bytes {
			return (*kept)[:0]
		}
		r.pool.Put(kept)
	}
	return make([]byte, 0, bytes)
}

// put takes room back, which nobody reads any more.
func (r *rooms) put(room []byte) {
	if cap(room) >= roomLeast && cap(room) <= roomMost {
		r.pool.Put(&room)
	}
}
