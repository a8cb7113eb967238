package indexfile

import (
	"encoding/binary"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
)

// Find returns the document of an id as last written, with what read returns of its row as its source. read is within the transaction.
func (a *Alias) Find(id string, read func(row Row) ([]byte, error)) (doc core.StoredDocument, found bool, err error) {
	err = a.view(func(b *bbolt.Bucket) error {
		var e entry
		raw := b.Bucket(bucketIDs()).Get([]byte(id))
		if raw == nil {
			return nil
		}
		if !readEntry(raw, &e) {
			return errCorrupt("entry")
		}
		if e.deleted {
			return nil
		}
		body, err := read(b.Bucket(bucketRows()).Get(rowKeyOf(e.row)))
		doc, found = core.StoredDocument{ID: id, Version: e.version, Source: body}, err == nil
		return err
	})
	return doc, found, err
}

// Documents returns the number of documents.
func (a *Alias) Documents() (n int, err error) {
	err = a.view(func(b *bbolt.Bucket) error {
		n = liveOf(b)
		return nil
	})
	return n, err
}

// liveOf returns the number of documents of an alias.
func liveOf(b *bbolt.Bucket) int {
	if raw := b.Get(keyLive()); len(raw) == 8 {
		return int(binary.BigEndian.Uint64(raw))
	}
	return 0
}
