package indexfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segmentset"
)

// Backup calls add with the name and the size of each file of the index and a function that writes its content, all as of one moment
// after the call. Reads and writes go on; the index file grows by what is written until Backup returns.
func (f *File) Backup(add func(name string, size int64, write func(io.Writer) error) error) error {
	done, err := f.Begin()
	if err != nil {
		return err
	}
	defer done()
	return f.db.View(func(tx *bbolt.Tx) (err error) {
		segments, err := openSegments(tx, f.folder)
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
func openSegments(tx *bbolt.Tx, files *segmentset.Folder) (open []*os.File, err error) {
	all := tx.Bucket(bucketAliases())
	err = all.ForEachBucket(func(name []byte) error {
		manifest := all.Bucket(name).Bucket(bucketSegments())
		if manifest == nil {
			return nil
		}
		return manifest.ForEach(func(key, value []byte) error {
			entry, ok := segmentset.ReadEntry(key, value)
			if !ok {
				return nil // an entry that cannot be read is ignored when the index is opened, too
			}
			f, err := os.Open(files.Path(entry.Number()))
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
	return add(path.Join(segmentset.FolderName, info.Name()), info.Size(), func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}
