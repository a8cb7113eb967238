package segment

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
)

// dictionary holds the distinct texts of a column in byte order.
type dictionary interface {
	size() int
	// at returns a text, either in buf, which it overwrites, or in the dictionary's memory.
	at(buf []byte, ordinal uint32) []byte
	// find returns the first ordinal whose text is at or above text, and whether it is equal.
	find(text string) (ordinal uint32, equal bool)
}

// TextReader reads the texts of a column. Ascending reads continue from the ordinal before, whereas Column.Text starts at the
// block's beginning each time. It is not safe for concurrent use.
type TextReader struct {
	texts  dictionary
	at     int
	reader blockReader
	text   []byte
}

// At returns the value of an ordinal. The bytes belong to the segment or the reader and are valid until the next call.
func (c *TextReader) At(ordinal uint32) []byte {
	text, _ := c.read(int(ordinal))
	return text
}

// next returns the next text and, if known, its packed form; both are valid until the next call. False after the last.
func (c *TextReader) next() (text, packed []byte, ok bool) {
	if c.at >= c.texts.size() {
		return nil, nil, false
	}
	text, packed = c.read(c.at)
	return text, packed, true
}

// read returns the text of an ordinal and positions the reader after it. Reading ahead within a block continues from the current
// position.
func (c *TextReader) read(ordinal int) (text, packed []byte) {
	from, ok := c.texts.(*packedTexts)
	if !ok {
		c.at = ordinal + 1
		c.text = c.texts.at(c.text, uint32(ordinal))
		return c.text, nil
	}
	block := ordinal / blockTexts
	if first := block * blockTexts; c.at <= first || c.at > ordinal {
		c.reader.open(from, block)
		c.at = first
	}
	for ; c.at <= ordinal; c.at++ {
		c.reader.next()
	}
	c.text = unpack(c.text[:0], c.reader.packed)
	return c.text, c.reader.packed
}

// plainTexts stores texts contiguously: that of ordinal o is data[starts[o]:starts[o+1]].
type plainTexts struct {
	data   []byte
	starts []uint32
}

func (p *plainTexts) size() int { return max(0, len(p.starts)-1) }

func (p *plainTexts) at(_ []byte, ordinal uint32) []byte {
	from, to := p.starts[ordinal], p.starts[ordinal+1]
	return p.data[from:to:to]
}

func (p *plainTexts) find(text string) (ordinal uint32, equal bool) {
	i, found := sort.Find(p.size(), func(i int) int { return compareText(text, p.at(nil, uint32(i))) })
	return uint32(i), found
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

func (p *packedTexts) size() int { return p.count }

func (p *packedTexts) at(buf []byte, ordinal uint32) []byte {
	var r blockReader
	r.open(p, int(ordinal/blockTexts))
	for range ordinal%blockTexts + 1 {
		r.next()
	}
	return unpack(buf[:0], r.packed)
}

func (p *packedTexts) find(text string) (ordinal uint32, equal bool) {
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

// dictionaryBuilder builds a dictionary from texts added in ascending order.
type dictionaryBuilder interface {
	// add adds a text; packed is its packed form if known.
	add(text, packed []byte)
	count() int
	done() dictionary
}

// maxPlain is the number of texts up to which a merged column is not packed: these are the values of facets, which must be read
// fast.
const maxPlain = 4096

// newDictionaryBuilder returns a builder for up to n texts. Unless to is nil, it writes packed texts to it.
func newDictionaryBuilder(n int, to *sectionFile) dictionaryBuilder {
	if n <= maxPlain {
		return &plainBuilder{}
	}
	return &packedBuilder{to: to}
}

// plainBuilder builds plainTexts.
type plainBuilder struct {
	out plainTexts
}

func (p *plainBuilder) add(text, _ []byte) {
	if p.out.starts == nil {
		p.out.starts = []uint32{0}
	}
	p.out.data = append(p.out.data, text...)
	p.out.starts = append(p.out.starts, uint32(len(p.out.data)))
}

func (p *plainBuilder) count() int { return p.out.size() }

func (p *plainBuilder) done() dictionary {
	return &plainTexts{data: bytes.Clone(p.out.data), starts: slices.Clone(p.out.starts)}
}

// packedBuilder builds packedTexts. With a file, it writes them in pieces.
type packedBuilder struct {
	out               packedTexts
	current, previous []byte
	to                *sectionFile
	// written is the number of bytes written to the file.
	written uint64
}

// packedPiece is the number of bytes of packed texts that are written at once.
const packedPiece = 64 << 10

func (p *packedBuilder) add(text, packed []byte) {
	if packed != nil {
		p.current = append(p.current[:0], packed...)
	} else {
		p.current = pack(p.current[:0], text)
	}
	shared := 0
	if p.out.count%blockTexts == 0 {
		p.out.blocks = append(p.out.blocks, p.written+uint64(len(p.out.data)))
	} else {
		for shared < len(p.current) && shared < len(p.previous) && p.current[shared] == p.previous[shared] {
			shared++
		}
	}
	p.out.data = appendLengths(p.out.data, shared, len(p.current)-shared)
	p.out.data = append(p.out.data, p.current[shared:]...)
	p.out.count++
	p.current, p.previous = p.previous, p.current
	if p.to != nil && p.out.count > maxPlain && len(p.out.data) >= packedPiece {
		p.write()
	}
}

// write writes the texts so far to the section in progress.
func (p *packedBuilder) write() {
	p.to.write(p.out.data)
	p.written += uint64(len(p.out.data))
	p.out.data = p.out.data[:0]
}

func (p *packedBuilder) count() int { return p.out.count }

// done returns the texts without spare capacity.
func (p *packedBuilder) done() dictionary {
	if p.out.count <= maxPlain {
		var w plainBuilder
		all := TextReader{texts: &p.out}
		for text, _, ok := all.next(); ok; text, _, ok = all.next() {
			w.add(text, nil)
		}
		return w.done()
	}
	if p.to != nil {
		p.write()
		p.to.end()
		p.to.u64s(&p.out.blocks)
		return &writtenTexts{p.out.count}
	}
	return &packedTexts{count: p.out.count, data: bytes.Clone(p.out.data), blocks: slices.Clone(p.out.blocks)}
}

// writtenTexts are packed texts whose sections are in the file of a merge already. They cannot be read.
type writtenTexts struct{ count int }

func (w *writtenTexts) size() int { return w.count }

func (*writtenTexts) at([]byte, uint32) []byte { return nil }

func (*writtenTexts) find(string) (ordinal uint32, equal bool) { return 0, false }
