package dictionary

import (
	"encoding/binary"
	"math"
	"sort"

	"tutti/internal/index/embedded/segment/sectionfile"
)

// Texts holds the distinct texts of a column in byte order, which are numbered from 0 by their ordinals.
type Texts interface {
	// Size returns the number of texts.
	Size() int
	// At returns a text, either in buf, which it overwrites, or in the dictionary's memory.
	At(buf []byte, ordinal uint32) []byte
	// Find returns the first ordinal whose text is at or above text, and whether it is equal.
	Find(text string) (ordinal uint32, equal bool)
	// Packed reports whether the texts are packed.
	Packed() bool
	// Visit visits the sections of the texts, none if they are written already.
	Visit(v sectionfile.Visitor)
	// Consistent reports whether all texts are within bounds. It relies on the checksums for their contents.
	Consistent() bool
}

// New returns texts whose sections are to be read with Visit, count if they are packed.
func New(count int, packed bool) Texts {
	if packed {
		return &packedTexts{count: count}
	}
	return &plainTexts{}
}

// plainTexts stores texts contiguously: that of ordinal o is data[starts[o]:starts[o+1]].
type plainTexts struct {
	data   []byte
	starts []uint32
}

func (p *plainTexts) Size() int { return max(0, len(p.starts)-1) }

func (p *plainTexts) At(_ []byte, ordinal uint32) []byte {
	from, to := p.starts[ordinal], p.starts[ordinal+1]
	return p.data[from:to:to]
}

func (p *plainTexts) Find(text string) (ordinal uint32, equal bool) {
	i, found := sort.Find(p.Size(), func(i int) int { return compareText(text, p.At(nil, uint32(i))) })
	return uint32(i), found
}

func (p *plainTexts) Packed() bool { return false }

func (p *plainTexts) Visit(v sectionfile.Visitor) {
	v.Bytes(&p.data)
	v.U32s(&p.starts)
}

func (p *plainTexts) Consistent() bool {
	return len(p.starts) > 0 && sectionfile.IsPartition(p.starts, len(p.data))
}

// compareText compares a and b without copying.
func compareText(a string, b []byte) int {
	switch {
	case a < string(b):
		return -1
	case a == string(b):
		return 0
	default:
		return 1
	}
}

// blockTexts is the number of texts in a block of packedTexts.
const blockTexts = 16

// packedTexts stores packed texts (see pack) in blocks. Each text of a block is prefix-compressed against the one before: the
// lengths of the common prefix and of the rest (appendLengths), then the rest.
type packedTexts struct {
	count  int
	data   []byte
	blocks []uint64
}

func (p *packedTexts) Size() int { return p.count }

func (p *packedTexts) At(buf []byte, ordinal uint32) []byte {
	var r blockReader
	r.open(p, int(ordinal/blockTexts))
	for range ordinal%blockTexts + 1 {
		r.next()
	}
	return unpack(buf[:0], r.packed)
}

func (p *packedTexts) Find(text string) (ordinal uint32, equal bool) {
	var (
		r    blockReader
		room [64]byte
	)
	buf := room[:0]
	head := func(i int) int {
		r.open(p, i)
		r.next()
		buf = unpack(buf[:0], r.packed)
		return compareText(text, buf)
	}
	blocks := (p.count + blockTexts - 1) / blockTexts
	b, equal := sort.Find(blocks, head)
	if equal || b == 0 {
		return uint32(b * blockTexts), equal
	}
	b--
	r.open(p, b)
	for i := b * blockTexts; i < min(p.count, (b+1)*blockTexts); i++ {
		r.next()
		buf = unpack(buf[:0], r.packed)
		if c := compareText(text, buf); c <= 0 {
			return uint32(i), c == 0
		}
	}
	return uint32(min(p.count, (b+1)*blockTexts)), false
}

func (p *packedTexts) Packed() bool { return true }

func (p *packedTexts) Visit(v sectionfile.Visitor) {
	v.Bytes(&p.data)
	v.U64s(&p.blocks)
}

func (p *packedTexts) Consistent() bool {
	return uint64(p.count) <= math.MaxUint32 && len(p.blocks) == (p.count+blockTexts-1)/blockTexts &&
		sectionfile.Ascending(p.blocks) && (len(p.blocks) == 0 || p.blocks[len(p.blocks)-1] < uint64(len(p.data)))
}

// blockReader reads the packed texts of a block. array is the initial buffer, which saves an allocation for most texts.
type blockReader struct {
	rest   []byte
	packed []byte
	array  [64]byte
}

// open moves to the start of a block.
func (r *blockReader) open(p *packedTexts, block int) {
	r.rest = p.data[p.blocks[block]:]
	if r.packed == nil {
		r.packed = r.array[:0]
	}
	r.packed = r.packed[:0]
}

func (r *blockReader) next() {
	if len(r.rest) == 0 {
		return
	}
	head := r.rest[0]
	r.rest = r.rest[1:]
	shared, length := r.readLength(head>>4), r.readLength(head&maxShortLength)
	length = min(length, uint64(len(r.rest)))
	r.packed = append(r.packed[:min(shared, uint64(len(r.packed)))], r.rest[:length]...)
	r.rest = r.rest[length:]
}

// maxShortLength is the value of a half byte that marks a longer length: the rest of the length follows as a varint.
const maxShortLength = 15

// appendLengths appends two lengths, mostly as one byte.
func appendLengths(dst []byte, shared, length int) []byte {
	dst = append(dst, byte(min(shared, maxShortLength)<<4|min(length, maxShortLength)))
	for _, n := range [...]int{shared, length} {
		if n >= maxShortLength {
			dst = binary.AppendUvarint(dst, uint64(n-maxShortLength))
		}
	}
	return dst
}

// readLength returns the length whose half byte is short.
func (r *blockReader) readLength(short byte) uint64 {
	if short < maxShortLength {
		return uint64(short)
	}
	above, n := binary.Uvarint(r.rest)
	r.rest = r.rest[max(n, 0):]
	return maxShortLength + above
}

// writtenTexts are packed texts whose sections are in the file of a merge already. They cannot be read.
type writtenTexts struct{ count int }

func (w *writtenTexts) Size() int { return w.count }

func (*writtenTexts) At([]byte, uint32) []byte { return nil }

func (*writtenTexts) Find(string) (ordinal uint32, equal bool) { return 0, false }

func (*writtenTexts) Packed() bool { return true }

func (*writtenTexts) Visit(sectionfile.Visitor) {}

func (*writtenTexts) Consistent() bool { return false }
