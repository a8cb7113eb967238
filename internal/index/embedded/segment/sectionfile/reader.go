package sectionfile

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

// Load returns the bytes of a file of size bytes, aligned for Open. CodeUnavailable when r fails, or ends before.
func Load(r io.Reader, size int64) ([]byte, error) {
	if size < headerSize+trailerSize || size > maxFile {
		return nil, Damaged(fmt.Errorf("the length is %d", size))
	}
	words := make([]uint64, padded(uint64(size))/8) // aligned for numbers of 8 bytes
	file := encoded(words)[:size]
	if !littleEndian() {
		file = make([]byte, size)
	}
	if _, err := io.ReadFull(r, file); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, Damaged(errors.New("the file is truncated"))
		}
		return nil, core.WrapError(core.CodeUnavailable, "reading an index segment file", err)
	}
	return file, nil
}

// Open returns the directory of a file and a Reader of its sections, which use its bytes. An error is the cause for Damaged.
func Open(file []byte) (*Reader, Directory, error) {
	if len(file) < headerSize+trailerSize {
		return nil, Directory{}, fmt.Errorf("the length is %d", len(file))
	}
	if string(file[:len(magic)]) != magic {
		return nil, Directory{}, errors.New("not a segment file")
	}
	if v := binary.LittleEndian.Uint32(file[8:]); v != version {
		return nil, Directory{}, fmt.Errorf("the version is %d", v)
	}
	if length := binary.LittleEndian.Uint64(file[16:]); length != uint64(len(file)) {
		return nil, Directory{}, fmt.Errorf("the length is %d, the header says %d", len(file), length)
	}
	f := &Reader{rest: file}
	raw := f.section(headerSize, binary.LittleEndian.Uint64(file[24:]))
	if f.err != nil {
		return nil, Directory{}, f.err
	}
	var dir Directory
	if err := json.Unmarshal(raw, &dir); err != nil {
		return nil, Directory{}, fmt.Errorf("reading the directory: %w", err)
	}
	f.entries = dir.Sections
	return f, dir, nil
}

// maxFile is the length above which a file is rejected unread.
const maxFile = 1 << 40

// Damaged returns the error for a damaged file, CodeUnavailable.
func Damaged(cause error) error {
	return core.WrapError(core.CodeUnavailable, "an index segment file is damaged", cause)
}

// Reader reads the sections of a file, which share its bytes. err is the first error; nothing is read after it, and Done returns it.
type Reader struct {
	rest    []byte
	entries []Section
	// read are the sections read so far.
	read [][]byte
	err  error
}

var _ Visitor = (*Reader)(nil)

// Done returns the first error, or that there are sections left. It is the cause for Damaged.
func (f *Reader) Done() error {
	if f.err == nil && (len(f.rest) > 0 || len(f.read) < len(f.entries)) {
		f.err = errors.New("the file has more sections than its directory")
	}
	return f.err
}

// section returns the next section, of length bytes, which follows head bytes that its checksum covers too.
func (f *Reader) section(head, length uint64) []byte {
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
func (f *Reader) take(size int) []byte {
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

// Bytes sets *b to the next section.
func (f *Reader) Bytes(b *[]byte) { *b = f.take(1) }

// U32s sets *v to the numbers of the next section.
func (f *Reader) U32s(v *[]uint32) { *v = decoded[uint32](f.take(4)) }

// U64s sets *v to the numbers of the next section.
func (f *Reader) U64s(v *[]uint64) { *v = decoded[uint64](f.take(8)) }

// Bitmaps sets *v to bitmaps that share the file's bytes.
func (f *Reader) Bitmaps(v *[]*roaring.Bitmap) {
	var sizes []uint64
	f.U64s(&sizes)
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
