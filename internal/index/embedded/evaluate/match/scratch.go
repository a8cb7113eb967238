package match

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"
)

// BatchSize is the number of documents processed between two checks of the context.
const BatchSize = 4096

// Scratch holds the reusable buffers of one goroutine.
type Scratch struct {
	// Docs holds a batch of documents or rows.
	Docs []uint32
	out  []uint32
	// rows and lifted are dense bitmaps, valid within one call that does not evaluate other clauses.
	rows, lifted []uint64
}

// NewScratch returns a Scratch.
func NewScratch() *Scratch {
	return &Scratch{Docs: make([]uint32, BatchSize), out: make([]uint32, BatchSize)}
}

// Batches calls do with each batch of a set of documents or rows, until ctx ends.
func (s *Scratch) Batches(ctx context.Context, bits *roaring.Bitmap, do func(docs []uint32)) {
	many := bits.ManyIterator()
	for ctx.Err() == nil {
		n := many.NextMany(s.Docs)
		if n == 0 {
			return
		}
		do(s.Docs[:n])
	}
}

// Zeroed returns a slice of n zeroes, reusing s if it is large enough.
func Zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// DenseWords writes bits to a cleared dense bitmap of n rows.
func DenseWords(into []uint64, bits *roaring.Bitmap, n int) []uint64 {
	into = Zeroed(into, (n+63)/64)
	bits.WriteDenseTo(into)
	return into
}
