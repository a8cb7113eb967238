package indexfile

import (
	"encoding/binary"
	"errors"
	"slices"

	"go.etcd.io/bbolt"

	"tutti/internal/index/embedded/segmentset"
)

// The segments bucket of an index is the manifest of its files: file number → contents and deleted documents. The deaths bucket has
// the deletions since: last row number of a transaction → deleted rows. So a transaction that rewrites documents appends one entry,
// and a restart need not read all rows.

// aliasLoad is what the file contains about an alias' segments when it is opened.
type aliasLoad struct {
	alias *Alias
	// row is the last row number, documents the number of documents.
	row       uint64
	documents int
	manifest  []*segmentset.Entry
	deletes   []uint64
}

// newAliasLoad reads the manifest, creating its buckets for an alias that was written before there were segments. An entry that
// cannot be read is deleted: its documents are rebuilt.
func newAliasLoad(a *Alias, b *bbolt.Bucket) (*aliasLoad, error) {
	for _, name := range [][]byte{bucketSegments(), bucketDeletes()} {
		if _, err := b.CreateBucketIfNotExists(name); err != nil {
			return nil, err
		}
	}
	l := &aliasLoad{alias: a, row: a.segments.Row(), documents: liveOf(b)}
	segments, spoilt := b.Bucket(bucketSegments()), [][]byte(nil)
	err := segments.ForEach(func(key, value []byte) error {
		if entry, ok := segmentset.ReadEntry(key, value); ok {
			l.manifest = append(l.manifest, entry)
		} else {
			spoilt = append(spoilt, slices.Clone(key))
		}
		return nil
	})
	for _, key := range spoilt {
		err = errors.Join(err, segments.Delete(key))
	}
	if err != nil {
		return nil, err
	}
	l.deletes, err = readDeletes(b)
	slices.Sort(l.deletes)
	return l, err
}

// manifestFiles returns the numbers of all files in the manifests.
func manifestFiles(loads []*aliasLoad) []uint64 {
	var numbers []uint64
	for _, l := range loads {
		for _, entry := range l.manifest {
			numbers = append(numbers, entry.Number())
		}
	}
	return numbers
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
func checkpoint(b *bbolt.Bucket, all []segmentset.Member, removed []uint64) error {
	segments := b.Bucket(bucketSegments())
	for _, number := range removed {
		if err := segments.Delete(rowKeyOf(number)); err != nil {
			return err
		}
	}
	for i := range all {
		number, saved := all[i].Listed()
		key := rowKeyOf(number)
		if number == 0 || saved && segments.Get(key) != nil {
			continue
		}
		value, err := all[i].Entry()
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
