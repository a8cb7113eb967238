package segmentset

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"
)

// Entry is an entry of the manifest of an index: what its value says of the segment file whose number is its key.
type Entry struct {
	file file
	// first and last are the lowest and highest row number of the file, documents is its number of documents.
	first, last uint64
	documents   uint32
	deleted     *roaring.Bitmap
}

// entryFixed is the length of an entry before its deleted documents.
const entryFixed = 1 + 8 + 8 + 4 + 8 + 4

// entryVersion is the version of the encoding. The checksum of version 1 did not distinguish files of equal length.
const entryVersion byte = 2

func entryOf(v *Member) *Entry {
	first, last := v.Rows()
	return &Entry{file: v.file, first: first, last: last, documents: uint32(v.segment.Documents()), deleted: v.deleted}
}

// Number returns the number of the file.
func (l *Entry) Number() uint64 { return l.file.number }

// Listed returns the number of the file of a Member, 0 for none, and whether its entry is as it was last saved.
func (v *Member) Listed() (number uint64, saved bool) {
	return v.file.number, v.savedDeleted == v.deleted
}

// Entry returns the encoded entry of a Member that has a file.
func (v *Member) Entry() ([]byte, error) { return entryOf(v).encode() }

func (l *Entry) encode() ([]byte, error) {
	out := append(make([]byte, 0, entryFixed), entryVersion)
	out = binary.BigEndian.AppendUint64(out, l.first)
	out = binary.BigEndian.AppendUint64(out, l.last)
	out = binary.BigEndian.AppendUint32(out, l.documents)
	out = binary.BigEndian.AppendUint64(out, uint64(l.file.size))
	out = binary.BigEndian.AppendUint32(out, l.file.sum)
	if l.deleted == nil {
		return out, nil
	}
	deleted, err := l.deleted.ToBytes()
	return append(out, deleted...), err
}

// ReadEntry decodes the entry of a key; ok is false when it is not valid.
func ReadEntry(key, raw []byte) (l *Entry, ok bool) {
	if len(key) != 8 || len(raw) < entryFixed || raw[0] != entryVersion {
		return nil, false
	}
	l = &Entry{
		file: file{
			number: binary.BigEndian.Uint64(key), size: int64(binary.BigEndian.Uint64(raw[21:])), sum: binary.BigEndian.Uint32(raw[29:]),
		},
		first: binary.BigEndian.Uint64(raw[1:]), last: binary.BigEndian.Uint64(raw[9:]), documents: binary.BigEndian.Uint32(raw[17:]),
	}
	if len(raw) > entryFixed {
		l.deleted = roaring.New()
		if err := l.deleted.UnmarshalBinary(raw[entryFixed:]); err != nil {
			return nil, false
		}
		if !l.deleted.IsEmpty() && l.deleted.Maximum() >= l.documents {
			return nil, false
		}
	}
	return l, true
}
