package segment

import (
	"hash/maphash"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// sliceDeduper makes columns and row spaces share equal slices: ids that a document has twice, times that are equal, fields that
// every document has.
type sliceDeduper struct {
	seed       maphash.Seed
	byteSlices map[uint64][]byte
	u32Slices  map[uint64][]uint32
	u64Slices  map[uint64][]uint64
}

var _ sectionVisitor = (*sliceDeduper)(nil)

func newSliceDeduper() *sliceDeduper {
	return &sliceDeduper{
		seed: maphash.MakeSeed(), byteSlices: map[uint64][]byte{}, u32Slices: map[uint64][]uint32{}, u64Slices: map[uint64][]uint64{},
	}
}

// minDedupBytes is the length in bytes below which slices are not compared.
const minDedupBytes = 256

func (s *sliceDeduper) bytes(b *[]byte) {
	if len(*b) >= minDedupBytes {
		dedup(s.byteSlices, maphash.Bytes(s.seed, *b), b)
	}
}

func (s *sliceDeduper) u32s(v *[]uint32) {
	if 4*len(*v) >= minDedupBytes {
		dedup(s.u32Slices, maphash.Bytes(s.seed, encoded(*v)), v)
	}
}

func (s *sliceDeduper) u64s(v *[]uint64) {
	if 8*len(*v) >= minDedupBytes {
		dedup(s.u64Slices, maphash.Bytes(s.seed, encoded(*v)), v)
	}
}

// bitmaps does nothing: equal bitmaps are mostly small.
func (s *sliceDeduper) bitmaps(*[]*roaring.Bitmap) {}

// dedup replaces v by an equal known slice, or adds v to the known slices.
func dedup[T comparable](known map[uint64][]T, hash uint64, v *[]T) {
	if old, ok := known[hash]; !ok {
		known[hash] = *v
	} else if slices.Equal(old, *v) {
		*v = old
	}
}

// shareSpanAndParents makes span and parents one slice when each document has one row.
func (sp *rowSpace) shareSpanAndParents() {
	n := len(sp.parents)
	if len(sp.span) == n+1 && slices.Equal(sp.parents, sp.span[:n]) {
		sp.parents = sp.span[:n:n]
	}
}
