package sectionfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/core"
)

// Output is where a File is written. An os.File is one.
type Output interface {
	io.WriterAt
	io.ReaderAt
	Truncate(size int64) error
}

// File writes the sections of a file one after another, and then, into the room before them, the directory. A section with the
// content of an earlier one is taken back: ids that a document has twice, times that are equal, fields that every document has.
type File struct {
	fileWriter
	out  Output
	tail *io.OffsetWriter
	// room is the number of bytes of the directory, an error of which Finish returns.
	room int
	err  error
	// start is where the section in progress begins, hash that of its contents.
	start int64
	hash  maphash.Hash
	// starts are the offsets of all sections, known the numbers of those that are not taken back, by hash.
	starts []int64
	known  map[uint64]int
}

var _ Visitor = (*File)(nil)

// minSharedBytes is the length in bytes below which sections are not compared.
const minSharedBytes = 256

// New returns a file with room for a directory of the length of largest.
func New(out Output, largest Directory) *File {
	raw, err := json.Marshal(largest)
	f := &File{out: out, tail: io.NewOffsetWriter(out, 0), room: len(raw), err: err, known: map[uint64]int{}}
	f.w = bufio.NewWriterSize(f.tail, 1<<16)
	f.seek(headerSize + int64(padded(uint64(f.room))) + trailerSize)
	f.section = 1
	return f
}

// seek continues at an offset, where a section begins.
func (f *File) seek(at int64) {
	_, _ = f.tail.Seek(at, io.SeekStart) // fails only for a negative offset
	f.written, f.start, f.crc = at, at, 0
	f.hash.Reset()
}

// write writes bytes of the section in progress.
func (f *File) write(b []byte) {
	f.fileWriter.write(b)
	_, _ = f.hash.Write(b) // never fails
}

// Write adds bytes to the section in progress, which End ends. Finish returns its errors.
func (f *File) Write(b []byte) (int, error) {
	f.write(b)
	return len(b), nil
}

// End ends the section in progress. The other methods of Visitor call it themselves.
func (f *File) End() {
	entry, sum := Section{Length: uint64(f.written - f.start)}, f.hash.Sum64()
	f.starts = append(f.starts, f.start)
	if same := f.known[sum]; same > 0 && f.equal(same, entry.Length) {
		f.seek(f.start)
		f.entries = append(f.entries, Section{Same: same})
		f.section++
		return
	}
	f.entries = append(f.entries, entry)
	if entry.Length >= minSharedBytes {
		f.known[sum] = f.section
	}
	f.endSection()
	f.start = f.written
	f.hash.Reset()
}

// equal reports whether the section in progress, of length bytes, equals an earlier one.
func (f *File) equal(section int, length uint64) bool {
	if f.entries[section-1].Length != length || f.flush() != nil {
		return false
	}
	var (
		pieces [2][32 << 10]byte
		at     = [2]int64{f.starts[section-1], f.start}
	)
	for length > 0 {
		n := min(length, uint64(len(pieces[0])))
		for i := range pieces {
			if _, err := f.out.ReadAt(pieces[i][:n], at[i]); err != nil {
				return false
			}
			at[i] += int64(n)
		}
		if !bytes.Equal(pieces[0][:n], pieces[1][:n]) {
			return false
		}
		length -= n
	}
	return true
}

// Bytes writes a section of bytes.
func (f *File) Bytes(b *[]byte) {
	f.write(*b)
	f.End()
}

// U32s writes a section of numbers.
func (f *File) U32s(v *[]uint32) {
	f.write(encoded(*v))
	f.End()
}

// U64s writes a section of numbers.
func (f *File) U64s(v *[]uint64) {
	f.write(encoded(*v))
	f.End()
}

// Bitmaps writes two sections, the sizes of bitmaps and the bitmaps.
func (f *File) Bitmaps(v *[]*roaring.Bitmap) {
	sizes := bitmapSizes(*v)
	f.U64s(&sizes)
	for _, rows := range *v {
		_, _ = rows.WriteTo(f) // bufio keeps the error
		f.write(f.padding())
	}
	f.End()
}

// Finish writes the header, and the directory with the sections. CodeUnavailable when the output fails.
func (f *File) Finish(dir Directory) error {
	dir.Sections = f.entries
	raw, err := json.Marshal(dir)
	switch {
	case err != nil || f.err != nil || len(raw) > f.room:
		return core.WrapError(core.CodeInternal, fmt.Sprintf("writing the directory of a segment, %d bytes into %d", len(raw), f.room), err)
	case f.flush() != nil:
		return f.flush()
	}
	if err := f.out.Truncate(f.written); err != nil {
		return core.WrapError(core.CodeUnavailable, "writing an index segment file", err)
	}
	raw = append(raw, bytes.Repeat([]byte{' '}, f.room-len(raw))...)
	head := &fileWriter{w: bufio.NewWriterSize(io.NewOffsetWriter(f.out, 0), 1<<16)}
	head.writeDirectory(raw, uint64(f.written))
	return head.flush()
}
