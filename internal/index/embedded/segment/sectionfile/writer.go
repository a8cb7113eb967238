package sectionfile

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"unsafe"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/core"
)

// WriteTo writes a file of the sections that visit visits, which must be the same both times, and returns its length. Slices with the
// same memory are stored once. CodeUnavailable when w fails.
func WriteTo(w io.Writer, visit func(Visitor) Directory) (int64, error) {
	m := &sectionPlanner{known: map[memoryRange]int{}}
	dir := visit(m)
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
	out := &fileWriter{w: bufio.NewWriterSize(w, 1<<16), entries: m.entries}
	out.writeDirectory(raw, size)
	visit(out)
	return out.written, out.flush()
}

// Size returns the length of the sections that visit visits in bytes, without what the file has beside them.
func Size(visit func(Visitor) Directory) int64 {
	var n sizer
	visit(&n)
	return int64(n)
}

// sizer adds up the lengths of sections in bytes.
type sizer int64

func (n *sizer) Bytes(b *[]byte)  { *n += sizer(len(*b)) }
func (n *sizer) U32s(v *[]uint32) { *n += sizer(4 * len(*v)) }
func (n *sizer) U64s(v *[]uint64) { *n += sizer(8 * len(*v)) }

func (n *sizer) Bitmaps(v *[]*roaring.Bitmap) {
	for _, size := range bitmapSizes(*v) {
		*n += sizer(size)
	}
}

// sectionPlanner computes the sections that a file will have.
type sectionPlanner struct {
	entries []Section
	known   map[memoryRange]int
}

// memoryRange identifies a slice by its address and length.
type memoryRange struct {
	first *byte
	bytes int
}

// slice adds the section with the bytes of raw.
func (m *sectionPlanner) slice(raw []byte) {
	entry := Section{Length: uint64(len(raw))}
	if at := (memoryRange{unsafe.SliceData(raw), len(raw)}); len(raw) > 0 && littleEndian() {
		if same := m.known[at]; same > 0 {
			entry = Section{Same: same}
		} else {
			m.known[at] = len(m.entries) + 1
		}
	}
	m.entries = append(m.entries, entry)
}

func (m *sectionPlanner) Bytes(b *[]byte)  { m.slice(*b) }
func (m *sectionPlanner) U32s(v *[]uint32) { m.slice(encoded(*v)) }
func (m *sectionPlanner) U64s(v *[]uint64) { m.slice(encoded(*v)) }

func (m *sectionPlanner) Bitmaps(v *[]*roaring.Bitmap) {
	sizes := bitmapSizes(*v)
	total := uint64(0)
	for _, size := range sizes {
		total += padded(size)
	}
	m.entries = append(m.entries, Section{Length: 8 * uint64(len(sizes))}, Section{Length: total})
}

// bitmapSizes returns the serialized lengths of bitmaps; in the file each is padded to 8 bytes.
func bitmapSizes(bitmaps []*roaring.Bitmap) []uint64 {
	sizes := make([]uint64, len(bitmaps))
	for i, rows := range bitmaps {
		sizes[i] = rows.GetSerializedSizeInBytes()
	}
	return sizes
}

// fileWriter writes sections. w keeps the first error for Flush.
type fileWriter struct {
	w       *bufio.Writer
	written int64
	crc     uint32
	// entries are the sections, section is the number of the current one.
	entries []Section
	section int
}

// Write writes bytes of a section.
func (f *fileWriter) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	f.written += int64(n)
	f.crc = crc32.Update(f.crc, crcTable(), b[:n])
	return n, err
}

func (f *fileWriter) write(b []byte) { _, _ = f.Write(b) } // bufio keeps the error for Flush

// pad pads to a multiple of 8.
func (f *fileWriter) pad() { f.write(f.padding()) }

func (f *fileWriter) padding() []byte {
	return make([]byte, padded(uint64(f.written))-uint64(f.written))
}

// endSection writes the trailer of a section.
func (f *fileWriter) endSection() {
	f.pad()
	trailer := binary.LittleEndian.AppendUint32(nil, f.crc)
	f.write(binary.LittleEndian.AppendUint32(trailer, uint32(f.section)))
	f.crc = 0
	f.section++
}

// writeSection writes a section unless an earlier one has the same content.
func (f *fileWriter) writeSection(raw []byte) {
	if f.entries[f.section-1].Same > 0 {
		f.section++
		return
	}
	f.write(raw)
	f.endSection()
}

func (f *fileWriter) Bytes(b *[]byte)  { f.writeSection(*b) }
func (f *fileWriter) U32s(v *[]uint32) { f.writeSection(encoded(*v)) }
func (f *fileWriter) U64s(v *[]uint64) { f.writeSection(encoded(*v)) }

func (f *fileWriter) Bitmaps(v *[]*roaring.Bitmap) {
	sizes := bitmapSizes(*v)
	f.U64s(&sizes)
	for _, rows := range *v {
		_, _ = rows.WriteTo(f) // bufio keeps the error for Flush
		f.pad()
	}
	f.endSection()
}

// writeDirectory writes the header of a file of size bytes, and its directory.
func (f *fileWriter) writeDirectory(raw []byte, size uint64) {
	header := append(make([]byte, 0, headerSize), magic...)
	header = binary.LittleEndian.AppendUint32(header, version)
	header = binary.LittleEndian.AppendUint32(header, 0)
	header = binary.LittleEndian.AppendUint64(header, size)
	header = binary.LittleEndian.AppendUint64(header, uint64(len(raw)))
	f.write(header)
	f.write(raw)
	f.endSection()
}

// flush ends the writing.
func (f *fileWriter) flush() error {
	if err := f.w.Flush(); err != nil {
		return core.WrapError(core.CodeUnavailable, "writing an index segment file", err)
	}
	return nil
}
