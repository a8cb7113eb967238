package segment

import (
	"unsafe"

	"github.com/RoaringBitmap/roaring/v2"
)

// Size returns the approximate memory use of the segment in bytes, without what is computed lazily.
func (s *Segment) Size() int {
	const object = 512 // a column or a row space, with its name and map entry
	v := memorySizer{known: map[*byte]bool{}, total: object * (1 + len(s.spaces) + len(s.columns))}
	s.visitSections(&v)
	return v.total
}

// memorySizer adds up the sections of a segment, counting shared ones once.
type memorySizer struct {
	known map[*byte]bool
	total int
}

var _ sectionVisitor = (*memorySizer)(nil)

func (s *memorySizer) slice(raw []byte) {
	if first := unsafe.SliceData(raw); len(raw) > 0 && !s.known[first] {
		s.known[first] = true
		s.total += len(raw)
	}
}

func (s *memorySizer) bytes(b *[]byte)  { s.slice(*b) }
func (s *memorySizer) u32s(v *[]uint32) { s.slice(encoded(*v)) }
func (s *memorySizer) u64s(v *[]uint64) { s.slice(encoded(*v)) }

func (s *memorySizer) bitmaps(v *[]*roaring.Bitmap) {
	const object = 128 // without the containers
	for _, rows := range *v {
		s.total += object + int(rows.GetSizeInBytes())
	}
}
