package segmentset

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segment"
)

const (
	// FolderName is the name of the segments folder in the index folder.
	FolderName = "segments"
	// fileSuffix is the suffix of a segment file, partSuffix that of a file being written.
	fileSuffix = ".segment"
	partSuffix = ".part"
)

// file identifies a segment file and its contents.
type file struct {
	// number counts the files of an index from 1; zero means none.
	number uint64
	size   int64
	// sum is a checksum by another polynomial than that of the sections. By theirs, all files of equal length have the same
	// checksum, because each section ends with its own.
	sum uint32
}

// Folder stores segments in immutable files. It is safe for concurrent use.
type Folder struct {
	dir    string
	logger *slog.Logger
	// last is the highest number assigned.
	last atomic.Uint64
}

// NewFolder returns the Folder of segment files in the folder of an index. It is created with its first file.
func NewFolder(dir string, logger *slog.Logger) *Folder {
	return &Folder{dir: filepath.Join(dir, FolderName), logger: logger}
}

// Path returns the path of the file of a number.
func (f *Folder) Path(number uint64) string {
	return filepath.Join(f.dir, fmt.Sprintf("%012d%s", number, fileSuffix))
}

// persist returns the Member of a segment, in a file when it is large enough.
func (f *Folder) persist(s *segment.Segment) Member {
	if counted(s) < minFileDocuments {
		return Member{segment: s}
	}
	v, err := f.write(func(to *os.File) error {
		_, err := s.WriteTo(to)
		return err
	})
	if err != nil {
		f.logger.Warn("embedded index could not write a segment file; the next start will take longer", "err", err)
		return Member{segment: s}
	}
	return v
}

// write returns the Member of the file that writeTo writes, which is durable then, unless it has no documents.
func (f *Folder) write(writeTo func(to *os.File) error) (v Member, err error) {
	v.file.number = f.last.Add(1)
	part := f.Path(v.file.number) + partSuffix
	if err = os.MkdirAll(f.dir, 0o700); err == nil {
		err = writeFile(part, writeTo)
	}
	if err == nil {
		err = os.Rename(part, f.Path(v.file.number))
	}
	if err == nil {
		err = syncFolder(f.dir)
	}
	if err == nil {
		v.segment, v.file.size, v.file.sum, err = f.open(v.file.number)
	}
	if err != nil {
		_ = os.Remove(part)
		f.remove(v.file.number)
		return Member{}, core.WrapError(core.CodeUnavailable, "writing a segment of the embedded index", err)
	}
	return v, nil
}

// writeFile writes a file and syncs it.
func writeFile(path string, writeTo func(to *os.File) error) (err error) {
	to, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if err := writeTo(to); err != nil {
		return err
	}
	return to.Sync()
}

// syncFolder makes a new directory entry durable. Windows does so by itself.
func syncFolder(dir string) (err error) {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// read returns the segment of a file. It returns an error when the file is missing or its contents have changed.
func (f *Folder) read(want file) (*segment.Segment, error) {
	s, size, sum, err := f.open(want.number)
	switch {
	case err != nil:
		return nil, err
	case size != want.size:
		return nil, core.NewError(core.CodeUnavailable, "the length of the file has changed")
	case sum != want.sum:
		return nil, core.NewError(core.CodeUnavailable, "the checksum of the file has changed")
	}
	return s, nil
}

// open returns the segment of a file, whose columns stay in the file where the system can map it into memory. Its contents are verified
// before they are mapped, as reading beyond the end of a mapped file ends the process.
func (f *Folder) open(number uint64) (s *segment.Segment, size int64, sum uint32, err error) {
	from, err := os.Open(f.Path(number))
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { _ = from.Close() }()
	checksum := crc32.NewIEEE()
	if size, err = io.Copy(checksum, from); err != nil {
		return nil, 0, 0, err
	}
	raw, unmap, err := mapFile(from, size)
	if err != nil {
		return nil, 0, 0, err
	}
	if s, err = segment.Open(raw); err != nil {
		unmap(raw)
		return nil, 0, 0, err
	}
	// Whoever reads a segment keeps it reachable until then.
	runtime.AddCleanup(s, unmap, raw)
	return s, size, checksum.Sum32(), nil
}

// remove deletes a file. Files that cannot be deleted are deleted by Clean.
func (f *Folder) remove(number uint64) { _ = os.Remove(f.Path(number)) }

// Clean deletes the segment files whose number is not in keep, such as those that a killed process left behind, and continues
// numbering after the highest of keep. It must not run concurrently with write.
func (f *Folder) Clean(keep []uint64) error {
	names := map[string]bool{}
	for _, number := range keep {
		f.last.Store(max(f.last.Load(), number))
		names[filepath.Base(f.Path(number))] = true
	}
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		ours := filepath.Ext(e.Name()) == fileSuffix || filepath.Ext(e.Name()) == partSuffix
		if ours && !names[e.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(f.dir, e.Name())))
		}
	}
	return err
}
