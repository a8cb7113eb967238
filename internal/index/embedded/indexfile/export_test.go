package indexfile

import (
	"go.etcd.io/bbolt"
)

// SplitRow returns the id and the document of a row.
func SplitRow(row Row) (id, document []byte, err error) {
	if id, _, err = row.split(); err != nil {
		return nil, nil, err
	}
	document, err = row.AppendDocument(nil)
	return id, document, err
}

// Database returns the bbolt file of f.
func Database(f *File) *bbolt.DB { return f.db }

// Unsettled makes an idle index have one more transaction whose outcome is unknown; settle ends this.
func Unsettled(a *Alias) (settle func(), err error) {
	row := a.segments.Row() + 1
	update, _ := a.segments.Prepare(row, nil, nil)
	err = a.file.db.Update(func(tx *bbolt.Tx) error { return a.bucket(tx).Bucket(bucketRows()).SetSequence(row) })
	return func() { a.segments.Finish(update, true) }, err
}
