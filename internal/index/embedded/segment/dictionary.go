package segment

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
)

// dictionary is the distinct texts of a column in the order of their bytes.
type dictionary interface {
	size() int
	// at returns a text; it may stand in buf, which is then overwritten, or in the dictionary.
	at(buf []byte, ordinal uint32) []byte
	// find returns the first ordinal whose text is not below text, and whether it is equal.
	find(text string) (ordinal uint32, equal bool)
}

// cursor gives the texts of a dictionary one by one.
type cursor struct {
	texts  dictionary
	at     int
	reader blockReader
	text   []byte
}

// next returns the next text and, where that is known, its packed form; both are valid until the next call. False behind the last.
func (c *cursor) next() (text, packed []byte, ok bool) {
	if c.at >= c.texts.size() {
		return nil, nil, false
	}
	text, packed = c.read(c.at)
	return text, packed, true
}

// read returns the text of an ordinal, behind which next goes on. What lies between the last one and this one in the same block is
// not read again.
func (c *cursor) read(ordinal int) (text, packed []byte) {
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

// plainTexts keeps texts one behind the other: that of ordinal o is data[starts[o]:starts[o+1]].
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

// compareText compares without copying either.
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

// blockTexts is how many texts of packedTexts share a block.
const blockTexts = 16

// packedTexts keeps texts packed (pack) and in blocks, in which each text is written as what it has in common with the one
// before: the length of that and of the rest (appendLengths), then the rest.
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

// blockReader reads the texts of a block, packed. room spares an allocation for most.
type blockReader struct {
	rest   []byte
	packed []byte
	room   [64]byte
}

// open goes to the beginning of a block.
func (r *blockReader) open(p *packedTexts, block int) {
	r.rest = p.data[p.blocks[block]:]
	if r.packed == nil {
		r.packed = r.room[:0]
	}
	r.packed = r.packed[:0]
}

func (r *blockReader) next() {
	if len(r.rest) == 0 {
		return
	}
	head := r.rest[0]
	r.rest = r.rest[1:]
	shared, length := r.long(head>>4), r.long(head&maxShort)
	length = min(length, uint64(len(r.rest)))
	r.packed = append(r.packed[:min(shared, uint64(len(r.packed)))], r.rest[:length]...)
	r.rest = r.rest[length:]
}

// maxShort is the length that half a byte cannot tell: by how much a length is above it then follows as a varint.
const maxShort = 15

// appendLengths appends two lengths, mostly as one byte.
func appendLengths(dst []byte, shared, length int) []byte {
	dst = append(dst, byte(min(shared, maxShort)<<4|min(length, maxShort)))
	for _, n := range [...]int{shared, length} {
		if n >= maxShort {
			dst = binary.AppendUvarint(dst, uint64(n-maxShort))
		}
	}
	return dst
}

// long returns a length of which half a byte is known.
func (r *blockReader) long(short byte) uint64 {
	if short < maxShort {
		return uint64(short)
	}
	above, n := binary.Uvarint(r.rest)
	r.rest = r.rest[max(n, 0):]
	return maxShort + above
}

// textWriter makes a dictionary of texts that are added in their order.
type textWriter interface {
	// add adds a text; packed is its packed form where that is known.
	add(text, packed []byte)
	count() int
	done() dictionary
}

// maxPlain is up to how many texts are kept as they are: they are the values of facets, and soon read.
const maxPlain = 4096

// newTextWriter returns the writer for the texts of all columns; nil is none.
func newTextWriter(columns []*Column) textWriter {
	texts, bytes := 0, 0
	for _, c := range columns {
		if c == nil {
			continue
		}
		texts += c.texts.size()
		if packed, ok := c.texts.(*packedTexts); ok {
			bytes += len(packed.data)
		}
	}
	if texts <= maxPlain {
		return &plainWriter{}
	}
	p := &packer{}
	p.out.data = make([]byte, 0, bytes)
	return p
}

// plainWriter makes plainTexts.
type plainWriter struct {
	out plainTexts
}

func (p *plainWriter) add(text, _ []byte) {
	if p.out.starts == nil {
		p.out.starts = []uint32{0}
	}
	p.out.data = append(p.out.data, text...)
	p.out.starts = append(p.out.starts, uint32(len(p.out.data)))
}

func (p *plainWriter) count() int { return p.out.size() }

func (p *plainWriter) done() dictionary {
	return &plainTexts{data: bytes.Clone(p.out.data), starts: slices.Clone(p.out.starts)}
}

// packer makes packedTexts.
type packer struct {
	out       packedTexts
	now, last []byte
}

func (p *packer) add(text, packed []byte) {
	if packed != nil {
		p.now = append(p.now[:0], packed...)
	} else {
		p.now = pack(p.now[:0], text)
	}
	shared := 0
	if p.out.count%blockTexts == 0 {
		p.out.blocks = append(p.out.blocks, uint64(len(p.out.data)))
	} else {
		for shared < len(p.now) && shared < len(p.last) && p.now[shared] == p.last[shared] {
			shared++
		}
	}
	p.out.data = appendLengths(p.out.data, shared, len(p.now)-shared)
	p.out.data = append(p.out.data, p.now[shared:]...)
	p.out.count++
	p.now, p.last = p.last, p.now
}

func (p *packer) count() int { return p.out.count }

// done leaves out the room to grow.
func (p *packer) done() dictionary {
	if p.out.count <= maxPlain {
		var w plainWriter
		all := cursor{texts: &p.out}
		for text, _, ok := all.next(); ok; text, _, ok = all.next() {
			w.add(text, nil)
		}
		return w.done()
	}
	return &packedTexts{count: p.out.count, data: bytes.Clone(p.out.data), blocks: slices.Clone(p.out.blocks)}
}

// partTexts is the texts [from, to) of another dictionary without what all of them begin with.
type partTexts struct {
	of       dictionary
	from, to uint32
	prefix   string
}

func (p *partTexts) size() int { return int(p.to - p.from) }

func (p *partTexts) at(buf []byte, ordinal uint32) []byte {
	return p.of.at(buf, p.from+ordinal)[len(p.prefix):]
}

func (p *partTexts) find(text string) (ordinal uint32, equal bool) {
	at, equal := p.of.find(p.prefix + text)
	return at - p.from, equal
}
