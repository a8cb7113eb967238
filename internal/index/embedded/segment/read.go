package segment

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/core"
)

// Read reads a segment from its file of size bytes, which it keeps in memory. CodeUnavailable when r fails, or when the file is
// truncated, damaged or of another version: the segment must then be rebuilt from its documents.
func Read(r io.Reader, size int64) (*Segment, error) {
	if size < headerSize+trailerSize || size > maxFile {
		return nil, damagedError(fmt.Errorf("the length is %d", size))
	}
	words := make([]uint64, padded(uint64(size))/8) // aligned for numbers of 8 bytes
	file := encoded(words)[:size]
	if !littleEndian() {
		file = make([]byte, size)
	}
	if _, err := io.ReadFull(r, file); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, damagedError(errors.New("the file is truncated"))
		}
		return nil, core.WrapError(core.CodeUnavailable, "reading an index segment file", err)
	}
	return Open(file)
}

// Open returns the segment of a file, whose bytes it uses: they must not change while the segment is used. It never writes to them.
// Errors are those of Read.
func Open(file []byte) (*Segment, error) {
	if len(file) < headerSize+trailerSize {
		return nil, damagedError(fmt.Errorf("the length is %d", len(file)))
	}
	s, err := decode(file)
	if err != nil {
		return nil, damagedError(err)
	}
	return s, nil
}

// maxFile is the length above which a file is rejected unread.
const maxFile = 1 << 40

func decode(file []byte) (*Segment, error) {
	if string(file[:len(magic)]) != magic {
		return nil, errors.New("not a segment file")
	}
	if v := binary.LittleEndian.Uint32(file[8:]); v != version {
		return nil, fmt.Errorf("the version is %d", v)
	}
	if length := binary.LittleEndian.Uint64(file[16:]); length != uint64(len(file)) {
		return nil, fmt.Errorf("the length is %d, the header says %d", len(file), length)
	}
	f := &fileReader{rest: file}
	raw := f.section(headerSize, binary.LittleEndian.Uint64(file[24:]))
	if f.err != nil {
		return nil, f.err
	}
	var dir directory
	if err := json.Unmarshal(raw, &dir); err != nil {
		return nil, fmt.Errorf("reading the directory: %w", err)
	}
	f.entries = dir.Sections
	s := &Segment{spaces: map[string]*rowSpace{}, columns: map[string]*Column{}, earlier: dir.Forms < forms}
	f.u64s(&s.numbers)
	for _, e := range dir.Spaces {
		sp := &rowSpace{parent: e.Parent}
		sp.visitSections(f)
		sp.shareSpanAndParents()
		s.spaces[e.Path] = sp
	}
	for _, e := range dir.Columns {
		c := &Column{field: e.field(), space: e.Space}
		switch {
		case e.Packed:
			c.texts = &packedTexts{count: e.Texts}
		case e.Texts > 0:
			c.texts = &plainTexts{}
		}
		c.visitSections(f)
		s.columns[e.Name] = c
	}
	if f.err == nil && (len(f.rest) > 0 || len(f.read) < len(f.entries)) {
		f.err = errors.New("the file has more sections than its directory")
	}
	if f.err != nil {
		return nil, f.err
	}
	return s, s.verify(dir)
}

// fileReader reads sections. err is the first error; nothing is read after it.
type fileReader struct {
	rest    []byte
	entries []sectionEntry
	// read are the sections read so far.
	read [][]byte
	err  error
}

// section returns the next section, of length bytes, which follows head bytes that its checksum covers too.
func (f *fileReader) section(head, length uint64) []byte {
	if f.err != nil {
		return nil
	}
	room := uint64(len(f.rest))
	if length > room || head+padded(length)+trailerSize > room {
		f.err = errors.New("a section is truncated")
		return nil
	}
	end := head + padded(length)
	trailer, number := f.rest[end:], len(f.read)
	if head == 0 {
		number++
	}
	if crc32.Checksum(f.rest[:end], crcTable()) != binary.LittleEndian.Uint32(trailer) ||
		binary.LittleEndian.Uint32(trailer[4:]) != uint32(number) {
		f.err = fmt.Errorf("the checksum of section %d is wrong", number)
		return nil
	}
	raw := f.rest[head : head+length : head+length]
	f.rest = trailer[trailerSize:]
	return raw
}

// take returns the next section, whose length must be a multiple of size.
func (f *fileReader) take(size int) []byte {
	if f.err == nil && len(f.read) >= len(f.entries) {
		f.err = errors.New("the directory has too few sections")
	}
	if f.err != nil {
		return nil
	}
	entry := f.entries[len(f.read)]
	var raw []byte
	switch {
	case entry.Same < 0 || entry.Same > len(f.read):
		f.err = errors.New("the directory is invalid")
	case entry.Same > 0:
		raw = f.read[entry.Same-1]
	default:
		raw = f.section(0, entry.Length)
	}
	if f.err == nil && len(raw)%size != 0 {
		f.err = errors.New("the length of a section is not a multiple of its item size")
	}
	f.read = append(f.read, raw)
	return raw
}

func (f *fileReader) bytes(b *[]byte)  { *b = f.take(1) }
func (f *fileReader) u32s(v *[]uint32) { *v = decoded[uint32](f.take(4)) }
func (f *fileReader) u64s(v *[]uint64) { *v = decoded[uint64](f.take(8)) }

// bitmaps reads bitmaps that share the file's bytes.
func (f *fileReader) bitmaps(v *[]*roaring.Bitmap) {
	var sizes []uint64
	f.u64s(&sizes)
	raw := f.take(8)
	if len(sizes) == 0 {
		*v = nil
		return
	}
	out := make([]*roaring.Bitmap, len(sizes))
	*v = out
	for i, size := range sizes {
		if f.err != nil {
			return
		}
		if size > uint64(len(raw)) || padded(size) > uint64(len(raw)) {
			f.err = errors.New("a bitmap is truncated")
			return
		}
		out[i] = roaring.New()
		if n, err := out[i].FromBuffer(raw[:size:size]); err != nil || n != int64(size) {
			f.err = errors.Join(errors.New("a bitmap is invalid"), err)
			return
		}
		raw = raw[padded(size):]
	}
	if len(raw) > 0 {
		f.err = errors.New("there are fewer bitmap sizes than bitmaps")
	}
}
