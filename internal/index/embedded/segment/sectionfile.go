package segment

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

// Output is a file that is written by MergeTo. An os.File is one.
type Output interface {
	io.WriterAt
	io.ReaderAt
	Truncate(size int64) error
}

// sectionFile writes the sections of a file one after another, and then, into the room before them, the directory. A section with the
// content of an earlier one is taken back: ids that a document has twice, times that are equal, fields that every document has.
type sectionFile struct {
	fileWriter
	out  Output
	tail *io.OffsetWriter
	// room is the number of bytes of the directory, an error of which finish returns.
	room int
	err  error
	// start is where the section in progress begins, hash that of its contents.
	start int64
	hash  maphash.Hash
	// starts are the offsets of all sections, known the numbers of those that are not taken back, by hash.
	starts []int64
	known  map[uint64]int
}

var _ sectionVisitor = (*sectionFile)(nil)

// minSharedBytes is the length in bytes below which sections are not compared.
const minSharedBytes = 256

// newSectionFile returns a file with room for a directory of the length of largest.
func newSectionFile(out Output, largest directory) *sectionFile {
	raw, err := json.Marshal(largest)
	f := &sectionFile{out: out, tail: io.NewOffsetWriter(out, 0), room: len(raw), err: err, known: map[uint64]int{}}
	f.w = bufio.NewWriterSize(f.tail, 1<<16)
	f.seek(headerSize + int64(padded(uint64(f.room))) + trailerSize)
	f.section = 1
	return f
}

// seek continues at an offset, where a section begins.
func (f *sectionFile) seek(at int64) {
	_, _ = f.tail.Seek(at, io.SeekStart) // fails only for a negative offset
	f.written, f.start, f.crc = at, at, 0
	f.hash.Reset()
}

// write writes bytes of the section in progress.
func (f *sectionFile) write(b []byte) {
	f.fileWriter.write(b)
	_, _ = f.hash.Write(b) // never fails
}

// Write implements io.Writer for bitmaps.
func (f *sectionFile) Write(b []byte) (int, error) {
	f.write(b)
	return len(b), nil
}

// end ends the section in progress.
func (f *sectionFile) end() {
	entry, sum := sectionEntry{Length: uint64(f.written - f.start)}, f.hash.Sum64()
	f.starts = append(f.starts, f.start)
	if same := f.known[sum]; same > 0 && f.equal(same, entry.Length) {
		f.seek(f.start)
		f.entries = append(f.entries, sectionEntry{Same: same})
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
func (f *sectionFile) equal(section int, length uint64) bool {
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

func (f *sectionFile) bytes(b *[]byte) {
	f.write(*b)
	f.end()
}

func (f *sectionFile) u32s(v *[]uint32) {
	f.write(encoded(*v))
	f.end()
}

func (f *sectionFile) u64s(v *[]uint64) {
	f.write(encoded(*v))
	f.end()
}

func (f *sectionFile) bitmaps(v *[]*roaring.Bitmap) {
	sizes := bitmapSizes(*v)
	f.u64s(&sizes)
	for _, rows := range *v {
		_, _ = rows.WriteTo(f) // bufio keeps the error
		f.write(f.padding())
	}
	f.end()
}

// finish writes the directory and the header.
func (f *sectionFile) finish(dir directory) error {
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

// memoryFile is an Output in memory, in pages.
type memoryFile struct {
	pages []*[memoryPage]byte
	size  int64
}

// memoryPage is the length of a page.
const memoryPage = 64 << 10

var _ Output = (*memoryFile)(nil)

// WriteAt implements io.WriterAt.
func (m *memoryFile) WriteAt(b []byte, at int64) (int, error) {
	m.size = max(m.size, at+int64(len(b)))
	for int64(len(m.pages))*memoryPage < m.size {
		m.pages = append(m.pages, new([memoryPage]byte))
	}
	n := 0
	for n < len(b) {
		to := at + int64(n)
		n += copy(m.pages[to/memoryPage][to%memoryPage:], b[n:])
	}
	return n, nil
}

// ReadAt implements io.ReaderAt.
func (m *memoryFile) ReadAt(b []byte, at int64) (int, error) {
	n := 0
	for n < len(b) && at+int64(n) < m.size {
		from := at + int64(n)
		page := m.pages[from/memoryPage][:min(memoryPage, m.size-from/memoryPage*memoryPage)]
		n += copy(b[n:], page[from%memoryPage:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Truncate implements Output.
func (m *memoryFile) Truncate(size int64) error {
	m.size = size
	return nil
}
