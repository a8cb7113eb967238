package embedded

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
)

// Backup calls add with the name and the size of each file of the index and a function that writes its content, all as of one moment
// after the call. Reads and writes go on meanwhile; the index file grows by what is written until Backup returns.
func (x *Index) Backup(add func(name string, size int64, write func(io.Writer) error) error) error {
	if err := x.store.beginCall(); err != nil {
		return err
	}
	defer x.store.calls.Done()
	return x.store.db.View(func(tx *bbolt.Tx) (err error) {
		segments, err := openSegments(tx, x.folder)
		defer func() {
			for _, s := range segments {
				err = errors.Join(err, s.Close())
			}
		}()
		if err != nil {
			return core.WrapError(core.CodeUnavailable, "reading the embedded index", err)
		}
		if err := add(fileName, tx.Size(), func(w io.Writer) error {
			_, err := tx.WriteTo(w)
			return err
		}); err != nil {
			return err
		}
		for _, s := range segments {
			if err := addFile(s, add); err != nil {
				return err
			}
		}
		return nil
	})
}

// openSegments opens the segment files of the manifests in tx. A file that a merge has removed since is left out: its documents are
// rebuilt when the index is opened.
func openSegments(tx *bbolt.Tx, files *folder) (open []*os.File, err error) {
	all := tx.Bucket(bucketAliases())
	err = all.ForEachBucket(func(name []byte) error {
		manifest := all.Bucket(name).Bucket(bucketSegments())
		if manifest == nil {
			return nil
		}
		return manifest.ForEach(func(key, value []byte) error {
			entry, err := readManifestEntry(key, value)
			if err != nil {
				return nil //nolint:nilerr // an entry that cannot be read is ignored when the index is opened, too
			}
			f, err := os.Open(files.path(entry.file.number))
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil {
				open = append(open, f)
			}
			return err
		})
	})
	return open, err
}

func addFile(f *os.File, add func(name string, size int64, write func(io.Writer) error) error) error {
	info, err := f.Stat()
	if err != nil {
		return core.WrapError(core.CodeUnavailable, "reading the embedded index", err)
	}
	return add(path.Join(folderName, info.Name()), info.Size(), func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}
