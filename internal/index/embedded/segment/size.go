package segment

import (
	"unsafe"

	"github.com/RoaringBitmap/roaring/v2"
)

// Size returns about how many bytes of memory the segment takes, without what is made of it when somebody asks.
func (s *Segment) Size() int {
	const object = 512 // a column or a space with its name and its entry
	v := scales{known: map[*byte]bool{}, total: object * (1 + len(s.spaces) + len(s.columns))}
	s.directory(&v)
	return v.total
}

// scales adds up the sections of a segment, those that are shared once.
type scales struct {
	known map[*byte]bool
	total int
}

var _ sections = (*scales)(nil)

func (s *scales) slice(raw []byte) {
	if first := unsafe.SliceData(raw); len(raw) > 0 && !s.known[first] {
		s.known[first] = true
		s.total += len(raw)
	}
}

func (s *scales) bytes(b *[]byte)  { s.slice(*b) }
func (s *scales) u32s(v *[]uint32) { s.slice(encoded(*v)) }
func (s *scales) u64s(v *[]uint64) { s.slice(encoded(*v)) }

func (s *scales) bitmaps(v *[]*roaring.Bitmap) {
	const object = 128 // beside the containers
	for _, rows := range *v {
		s.total += object + int(rows.GetSizeInBytes())
	}
}
