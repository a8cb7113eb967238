package segment

import (
	"hash/maphash"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// sharer lets columns and spaces use one slice where theirs are equal: ids that stand twice in a document, times that are the
// same in each, and fields that are always there.
type sharer struct {
	seed   maphash.Seed
	texts  map[uint64][]byte
	halves map[uint64][]uint32
	words  map[uint64][]uint64
}

var _ sections = (*sharer)(nil)

func newSharer() *sharer {
	return &sharer{
		seed: maphash.MakeSeed(), texts: map[uint64][]byte{}, halves: map[uint64][]uint32{}, words: map[uint64][]uint64{},
	}
}

// minShared is the length in bytes below which sharing is not worth it.
const minShared = 256

func (s *sharer) bytes(b *[]byte) {
	if len(*b) >= minShared {
		share(s.texts, maphash.Bytes(s.seed, *b), b)
	}
}

func (s *sharer) u32s(v *[]uint32) {
	if 4*len(*v) >= minShared {
		share(s.halves, maphash.Bytes(s.seed, encoded(*v)), v)
	}
}

func (s *sharer) u64s(v *[]uint64) {
	if 8*len(*v) >= minShared {
		share(s.words, maphash.Bytes(s.seed, encoded(*v)), v)
	}
}

// bitmaps has nothing to do: those that are equal are small mostly.
func (s *sharer) bitmaps(*[]*roaring.Bitmap) {}

// share puts an equal slice that was known in the place of v, or makes v known.
func share[T comparable](known map[uint64][]T, hash uint64, v *[]T) {
	if old, ok := known[hash]; !ok {
		known[hash] = *v
	} else if slices.Equal(old, *v) {
		*v = old
	}
}

// alone lets a space whose documents have one row each use the same numbers for both of its slices.
func (sp *space) alone() {
	n := len(sp.parents)
	if len(sp.span) == n+1 && slices.Equal(sp.parents, sp.span[:n]) {
		sp.parents = sp.span[:n:n]
	}
}
