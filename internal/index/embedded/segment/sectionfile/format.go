package sectionfile

import (
	"encoding/binary"
	"hash/crc32"
	"unsafe"

	"github.com/RoaringBitmap/roaring/v2"
)

// A segment file is a header, a JSON directory and the sections, each padded to 8 bytes. A trailer follows the directory and each
// section. All numbers are little-endian. The directory may end with spaces.
//
//	header    magic (8 bytes), version (4), zero (4), length of the file (8), length of the directory (8)
//	trailer   CRC-32C of the preceding section with its padding, for the directory with the header too (4),
//	          number of the section, 0 for the directory (4)
//
// The sections are slices as they are in memory, so reading a file means mapping or loading its bytes and verifying them.

const (
	magic       = "tuttiseg"
	version     = 1
	headerSize  = 32
	trailerSize = 8
)

// Directory says what the sections of a segment are. Sections is set by what writes the file.
type Directory struct {
	Documents int `json:"documents"`
	// Forms is the version of the forms of values: files without it lack those of ranges and of types that are only present.
	Forms    int       `json:"forms,omitempty"`
	Spaces   []Space   `json:"spaces"`
	Columns  []Column  `json:"columns"`
	Sections []Section `json:"sections"`
}

// Section is the length of a section in bytes, or the number of an earlier section with the same content, which the file then
// holds once. Sections are numbered from 1.
type Section struct {
	Length uint64 `json:"length,omitempty"`
	Same   int    `json:"same,omitempty"`
}

// Space is a row space: the rows of a nested path, which have parents in the row space of another path or, with "", in documents.
type Space struct {
	Path   string `json:"path"`
	Parent string `json:"parent"`
}

// Column is a column by its name: its field with the path, type and scale, and the path of its row space.
type Column struct {
	Name  string  `json:"name"`
	Path  string  `json:"path"`
	Type  string  `json:"type"`
	Scale float64 `json:"scale,omitempty"`
	Space string  `json:"space"`
	// Texts is the number of texts of the column, 0 for a column of keys. Packed is set when they are packed.
	Texts  int  `json:"texts,omitempty"`
	Packed bool `json:"packed,omitempty"`
}

// Visitor visits the sections of a file in order, to write them or to read them into its arguments. Bitmaps are two sections: their
// sizes, and the bitmaps.
type Visitor interface {
	Bytes(*[]byte)
	U32s(*[]uint32)
	U64s(*[]uint64)
	Bitmaps(*[]*roaring.Bitmap)
}

// padded rounds up to 8.
func padded(n uint64) uint64 { return (n + 7) &^ 7 }

// crcTable returns the table of CRC-32C.
func crcTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// littleEndian reports whether numbers in memory have the byte order of the file.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// encoded returns numbers as they are in a file, without copying on little-endian machines.
func encoded[T uint32 | uint64](numbers []T) []byte {
	size := int(unsafe.Sizeof(T(0)))
	if len(numbers) == 0 {
		return nil
	}
	if littleEndian() {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), len(numbers)*size)
	}
	out := make([]byte, 0, len(numbers)*size)
	for _, number := range numbers {
		if size == 4 {
			out = binary.LittleEndian.AppendUint32(out, uint32(number))
		} else {
			out = binary.LittleEndian.AppendUint64(out, uint64(number))
		}
	}
	return out
}

// decoded returns the numbers of a section of a file, whose length is a multiple of their size, without copying where possible.
func decoded[T uint32 | uint64](raw []byte) []T {
	size := int(unsafe.Sizeof(T(0)))
	if len(raw) < size {
		return nil
	}
	at := unsafe.Pointer(unsafe.SliceData(raw))
	if littleEndian() && uintptr(at)%uintptr(size) == 0 {
		return unsafe.Slice((*T)(at), len(raw)/size)
	}
	out := make([]T, len(raw)/size)
	for i := range out {
		if part := raw[i*size:]; size == 4 {
			out[i] = T(binary.LittleEndian.Uint32(part))
		} else {
			out[i] = T(binary.LittleEndian.Uint64(part))
		}
	}
	return out
}
