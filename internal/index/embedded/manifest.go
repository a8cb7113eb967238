package embedded

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"
	"go.etcd.io/bbolt"
)

// The segments bucket of an alias is the manifest of its files: number → what the file holds, and which of its documents were
// dead. The deaths bucket has what died since: last row number of a transaction → rows. So a transaction that rewrites documents
// appends one entry, and a restart need not look at a million rows.

// listed is an entry of the manifest.
type listed struct {
	file file
	// first and last bound the row numbers of the file, documents counts them.
	first, last uint64
	documents   uint32
	dead        *roaring.Bitmap
}

// listedFixed is the length of an entry before its dead documents.
const listedFixed = 1 + 8 + 8 + 4 + 8 + 4

// listedForm is the version of an entry. The sum of the first told files of equal lengths not apart.
const listedForm byte = 2

func listOf(v *volume) *listed {
	numbers := v.segment.Numbers()
	return &listed{
		file: v.file, first: numbers[0], last: v.last(), documents: uint32(len(numbers)), dead: v.dead,
	}
}

func (l *listed) encode() ([]byte, error) {
	out := append(make([]byte, 0, listedFixed), listedForm)
	out = binary.BigEndian.AppendUint64(out, l.first)
	out = binary.BigEndian.AppendUint64(out, l.last)
	out = binary.BigEndian.AppendUint32(out, l.documents)
	out = binary.BigEndian.AppendUint64(out, uint64(l.file.size))
	out = binary.BigEndian.AppendUint32(out, l.file.sum)
	if l.dead == nil {
		return out, nil
	}
	dead, err := l.dead.ToBytes()
	return append(out, dead...), err
}

func readListed(key, raw []byte) (*listed, error) {
	if len(key) != 8 || len(raw) < listedFixed || raw[0] != listedForm {
		return nil, errCut("manifest")
	}
	l := &listed{
		file: file{
			number: binary.BigEndian.Uint64(key), size: int64(binary.BigEndian.Uint64(raw[21:])), sum: binary.BigEndian.Uint32(raw[29:]),
		},
		first: binary.BigEndian.Uint64(raw[1:]), last: binary.BigEndian.Uint64(raw[9:]), documents: binary.BigEndian.Uint32(raw[17:]),
	}
	if len(raw) > listedFixed {
		l.dead = roaring.New()
		if err := l.dead.UnmarshalBinary(raw[listedFixed:]); err != nil {
			return nil, errCut("manifest")
		}
		if !l.dead.IsEmpty() && l.dead.Maximum() >= l.documents {
			return nil, errCut("manifest")
		}
	}
	return l, nil
}

// logDeaths notes rows, which are sorted, for a restart. row is the last number of the transaction.
func logDeaths(b *bbolt.Bucket, row uint64, rows []uint64) error {
	if len(rows) == 0 {
		return nil
	}
	deaths := b.Bucket(bucketDeaths())
	deaths.FillPercent = 1
	value := make([]byte, 0, 4*len(rows))
	before := uint64(0)
	for _, r := range rows {
		value = binary.AppendUvarint(value, r-before)
		before = r
	}
	return deaths.Put(rowKeyOf(row), value)
}

// readDeaths returns all rows that were noted.
func readDeaths(b *bbolt.Bucket) (rows []uint64, err error) {
	err = b.Bucket(bucketDeaths()).ForEach(func(_, value []byte) error {
		row := uint64(0)
		for len(value) > 0 {
			step, size := binary.Uvarint(value)
			if size <= 0 {
				return errCut("list of deaths")
			}
			row += step
			rows, value = append(rows, row), value[size:]
		}
		return nil
	})
	return rows, err
}

// checkpoint writes the manifest anew where it is not true to volumes, without the files of removed, and forgets the deaths,
// which it holds then.
func checkpoint(b *bbolt.Bucket, volumes []volume, removed []uint64) error {
	segments := b.Bucket(bucketSegments())
	for _, number := range removed {
		if err := segments.Delete(rowKeyOf(number)); err != nil {
			return err
		}
	}
	for i := range volumes {
		v := &volumes[i]
		key := rowKeyOf(v.file.number)
		if v.file.number == 0 || v.noted == v.dead && segments.Get(key) != nil {
			continue
		}
		value, err := listOf(v).encode()
		if err != nil {
			return err
		}
		if err := segments.Put(key, value); err != nil {
			return err
		}
	}
	if first, _ := b.Bucket(bucketDeaths()).Cursor().First(); first == nil {
		return nil
	}
	if err := b.DeleteBucket(bucketDeaths()); err != nil {
		return err
	}
	_, err := b.CreateBucket(bucketDeaths())
	return err
}
