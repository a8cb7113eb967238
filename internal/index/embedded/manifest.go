package embedded

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"
	"go.etcd.io/bbolt"
)

// The segments bucket of an alias is the manifest of its files: file number → contents and deleted documents. The deaths bucket has
// the deletions since: last row number of a transaction → deleted rows. So a transaction that rewrites documents appends one entry,
// and a restart need not read all rows.

// manifestEntry is an entry of the manifest.
type manifestEntry struct {
	file file
	// first and last are the lowest and highest row number of the file, documents is its number of documents.
	first, last uint64
	documents   uint32
	deleted     *roaring.Bitmap
}

// manifestEntryFixed is the length of an entry before its deleted documents.
const manifestEntryFixed = 1 + 8 + 8 + 4 + 8 + 4

// manifestEntryVersion is the version of the encoding. The checksum of version 1 did not distinguish files of equal length.
const manifestEntryVersion byte = 2

func newManifestEntry(v *aliasSegment) *manifestEntry {
	numbers := v.segment.Numbers()
	return &manifestEntry{
		file: v.file, first: numbers[0], last: v.last(), documents: uint32(len(numbers)), deleted: v.deleted,
	}
}

func (l *manifestEntry) encode() ([]byte, error) {
	out := append(make([]byte, 0, manifestEntryFixed), manifestEntryVersion)
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

func readManifestEntry(key, raw []byte) (*manifestEntry, error) {
	if len(key) != 8 || len(raw) < manifestEntryFixed || raw[0] != manifestEntryVersion {
		return nil, errCorrupt("manifest")
	}
	l := &manifestEntry{
		file: file{
			number: binary.BigEndian.Uint64(key), size: int64(binary.BigEndian.Uint64(raw[21:])), sum: binary.BigEndian.Uint32(raw[29:]),
		},
		first: binary.BigEndian.Uint64(raw[1:]), last: binary.BigEndian.Uint64(raw[9:]), documents: binary.BigEndian.Uint32(raw[17:]),
	}
	if len(raw) > manifestEntryFixed {
		l.deleted = roaring.New()
		if err := l.deleted.UnmarshalBinary(raw[manifestEntryFixed:]); err != nil {
			return nil, errCorrupt("manifest")
		}
		if !l.deleted.IsEmpty() && l.deleted.Maximum() >= l.documents {
			return nil, errCorrupt("manifest")
		}
	}
	return l, nil
}

// logDeletes saves deleted rows, which are sorted, for a restart. row is the last number of the transaction.
func logDeletes(b *bbolt.Bucket, row uint64, rows []uint64) error {
	if len(rows) == 0 {
		return nil
	}
	deletes := b.Bucket(bucketDeletes())
	deletes.FillPercent = 1
	value := make([]byte, 0, 4*len(rows))
	before := uint64(0)
	for _, r := range rows {
		value = binary.AppendUvarint(value, r-before)
		before = r
	}
	return deletes.Put(rowKeyOf(row), value)
}

// readDeletes returns all rows saved by logDeletes.
func readDeletes(b *bbolt.Bucket) (rows []uint64, err error) {
	err = b.Bucket(bucketDeletes()).ForEach(func(_, value []byte) error {
		row := uint64(0)
		for len(value) > 0 {
			step, size := binary.Uvarint(value)
			if size <= 0 {
				return errCorrupt("list of deletions")
			}
			row += step
			rows, value = append(rows, row), value[size:]
		}
		return nil
	})
	return rows, err
}

// checkpoint updates the manifest entries that differ from all, removes those of the files removed, and clears the deaths
// bucket, which the manifest then includes.
func checkpoint(b *bbolt.Bucket, all []aliasSegment, removed []uint64) error {
	segments := b.Bucket(bucketSegments())
	for _, number := range removed {
		if err := segments.Delete(rowKeyOf(number)); err != nil {
			return err
		}
	}
	for i := range all {
		v := &all[i]
		key := rowKeyOf(v.file.number)
		if v.file.number == 0 || v.savedDeleted == v.deleted && segments.Get(key) != nil {
			continue
		}
		value, err := newManifestEntry(v).encode()
		if err != nil {
			return err
		}
		if err := segments.Put(key, value); err != nil {
			return err
		}
	}
	if first, _ := b.Bucket(bucketDeletes()).Cursor().First(); first == nil {
		return nil
	}
	if err := b.DeleteBucket(bucketDeletes()); err != nil {
		return err
	}
	_, err := b.CreateBucket(bucketDeletes())
	return err
}
