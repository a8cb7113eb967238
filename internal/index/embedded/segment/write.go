package segment

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"unsafe"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/core"
)

var _ io.WriterTo = (*Segment)(nil)

// WriteTo writes the segment's file (Read) and returns its length. The same segment returns the same bytes. CodeUnavailable when w
// fails.
func (s *Segment) WriteTo(w io.Writer) (int64, error) {
	m := &measurer{known: map[place]int{}}
	dir := s.directory(m)
	dir.Sections = m.entries
	raw, err := json.Marshal(dir)
	if err != nil {
		return 0, core.WrapError(core.CodeInternal, "writing the directory of a segment", err)
	}
	size := headerSize + padded(uint64(len(raw))) + trailerSize
	for _, entry := range m.entries {
		if entry.Same == 0 {
			size += padded(entry.Length) + trailerSize
		}
	}
	header := append(make([]byte, 0, headerSize), magic...)
	header = binary.LittleEndian.AppendUint32(header, version)
	header = binary.LittleEndian.AppendUint32(header, 0)
	header = binary.LittleEndian.AppendUint64(header, size)
	header = binary.LittleEndian.AppendUint64(header, uint64(len(raw)))
	out := &fileWriter{w: bufio.NewWriterSize(w, 1<<16), entries: m.entries}
	out.write(header)
	out.write(raw)
	out.end()
	s.directory(out)
	if err := out.w.Flush(); err != nil {
		return out.written, core.WrapError(core.CodeUnavailable, "writing a file of the index' columns", err)
	}
	return out.written, nil
}

// directory passes all sections in the order in which the directory that it returns tells them.
func (s *Segment) directory(v sections) directory {
	dir := directory{Documents: len(s.numbers), Spaces: []spaceEntry{}, Columns: []columnEntry{}}
	v.u64s(&s.numbers)
	for _, path := range slices.Sorted(maps.Keys(s.spaces)) {
		sp := s.spaces[path]
		dir.Spaces = append(dir.Spaces, spaceEntry{path, sp.parent})
		sp.sections(v)
	}
	for _, name := range slices.Sorted(maps.Keys(s.columns)) {
		c := s.columns[name]
		entry := columnEntry{Name: name, Path: c.field.Path, Type: c.field.Type, Scale: c.field.Scale, Space: c.space}
		if c.texts != nil {
			entry.Texts = c.texts.size()
		}
		_, entry.Packed = c.texts.(*packedTexts)
		dir.Columns = append(dir.Columns, entry)
		c.sections(v)
	}
	return dir
}

// measurer notes the sections that a file will have.
type measurer struct {
	entries []sectionEntry
	known   map[place]int
}

// place is where a slice stands in memory.
type place struct {
	first *byte
	bytes int
}

// slice notes a section that is the memory of raw.
func (m *measurer) slice(raw []byte) {
	entry := sectionEntry{Length: uint64(len(raw))}
	if at := (place{unsafe.SliceData(raw), len(raw)}); len(raw) > 0 && littleEndian() {
		if same := m.known[at]; same > 0 {
			entry = sectionEntry{Same: same}
		} else {
			m.known[at] = len(m.entries) + 1
		}
	}
	m.entries = append(m.entries, entry)
}

func (m *measurer) bytes(b *[]byte)  { m.slice(*b) }
func (m *measurer) u32s(v *[]uint32) { m.slice(encoded(*v)) }
func (m *measurer) u64s(v *[]uint64) { m.slice(encoded(*v)) }

func (m *measurer) bitmaps(v *[]*roaring.Bitmap) {
	sizes := bitmapSizes(*v)
	total := uint64(0)
	for _, size := range sizes {
		total += padded(size)
	}
	m.entries = append(m.entries, sectionEntry{Length: 8 * uint64(len(sizes))}, sectionEntry{Length: total})
}

// bitmapSizes returns the lengths of bitmaps in a file; each is then padded to 8.
func bitmapSizes(bitmaps []*roaring.Bitmap) []uint64 {
	sizes := make([]uint64, len(bitmaps))
	for i, rows := range bitmaps {
		sizes[i] = rows.GetSerializedSizeInBytes()
	}
	return sizes
}

// fileWriter writes sections. What fails is told by w in the end.
type fileWriter struct {
	w       *bufio.Writer
	written int64
	crc     uint32
	// entries are the sections, section is the number of the one that is written.
	entries []sectionEntry
	section int
}

// Write writes a part of a section.
func (f *fileWriter) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	f.written += int64(n)
	f.crc = crc32.Update(f.crc, checksums(), b[:n])
	return n, err
}

func (f *fileWriter) write(b []byte) { _, _ = f.Write(b) } // bufio keeps the error for Flush

// pad fills up to a multiple of 8.
func (f *fileWriter) pad() { f.write(make([]byte, padded(uint64(f.written))-uint64(f.written))) }

// end ends a section.
func (f *fileWriter) end() {
	f.pad()
	trailer := binary.LittleEndian.AppendUint32(nil, f.crc)
	f.write(binary.LittleEndian.AppendUint32(trailer, uint32(f.section)))
	f.crc = 0
	f.section++
}

// whole writes a section, unless an earlier one is the same.
func (f *fileWriter) whole(raw []byte) {
	if f.entries[f.section-1].Same > 0 {
		f.section++
		return
	}
	f.write(raw)
	f.end()
}

func (f *fileWriter) bytes(b *[]byte)  { f.whole(*b) }
func (f *fileWriter) u32s(v *[]uint32) { f.whole(encoded(*v)) }
func (f *fileWriter) u64s(v *[]uint64) { f.whole(encoded(*v)) }

func (f *fileWriter) bitmaps(v *[]*roaring.Bitmap) {
	sizes := bitmapSizes(*v)
	f.u64s(&sizes)
	for _, rows := range *v {
		_, _ = rows.WriteTo(f) // bufio keeps the error for Flush
		f.pad()
	}
	f.end()
}
