package dictionary

import (
	"bytes"
	"slices"

	"tutti/internal/index/embedded/segment/sectionfile"
)

// Builder builds a dictionary from texts added in ascending order.
type Builder interface {
	// Add adds a text; packed is its packed form if known.
	Add(text, packed []byte)
	// Count returns the number of texts added.
	Count() int
	// Done returns the texts. The Builder must not be used afterwards.
	Done() Texts
}

// MaxPlain is the number of texts up to which a merged column is not packed: these are the values of facets, which must be read
// fast.
const MaxPlain = 4096

// NewBuilder returns a builder for up to n texts. Unless to is nil, it writes packed texts to it.
func NewBuilder(n int, to *sectionfile.File) Builder {
	if n <= MaxPlain {
		return &plainBuilder{}
	}
	return &packedBuilder{to: to}
}

// plainBuilder builds plainTexts.
type plainBuilder struct {
	out plainTexts
}

func (p *plainBuilder) Add(text, _ []byte) {
	if p.out.starts == nil {
		p.out.starts = []uint32{0}
	}
	p.out.data = append(p.out.data, text...)
	p.out.starts = append(p.out.starts, uint32(len(p.out.data)))
}

func (p *plainBuilder) Count() int { return p.out.Size() }

func (p *plainBuilder) Done() Texts {
	return &plainTexts{data: bytes.Clone(p.out.data), starts: slices.Clone(p.out.starts)}
}

// packedBuilder builds packedTexts. With a file, it writes them in pieces.
type packedBuilder struct {
	out               packedTexts
	current, previous []byte
	to                *sectionfile.File
	// written is the number of bytes written to the file.
	written uint64
}

// packedPiece is the number of bytes of packed texts that are written at once.
const packedPiece = 64 << 10

func (p *packedBuilder) Add(text, packed []byte) {
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
	if p.to != nil && p.out.count > MaxPlain && len(p.out.data) >= packedPiece {
		p.write()
	}
}

// write writes the texts so far to the section in progress.
func (p *packedBuilder) write() {
	_, _ = p.to.Write(p.out.data) // the file keeps the error
	p.written += uint64(len(p.out.data))
	p.out.data = p.out.data[:0]
}

func (p *packedBuilder) Count() int { return p.out.count }

// Done returns the texts without spare capacity.
func (p *packedBuilder) Done() Texts {
	if p.out.count <= MaxPlain {
		var w plainBuilder
		all := Reader{texts: &p.out}
		for text, _, ok := all.Next(); ok; text, _, ok = all.Next() {
			w.Add(text, nil)
		}
		return w.Done()
	}
	if p.to != nil {
		p.write()
		p.to.End()
		p.to.U64s(&p.out.blocks)
		return &writtenTexts{p.out.count}
	}
	return &packedTexts{count: p.out.count, data: bytes.Clone(p.out.data), blocks: slices.Clone(p.out.blocks)}
}
