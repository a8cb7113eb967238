package embedded

import (
	"bufio"
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
	// folderName is the name of the segments folder in the index folder.
	folderName = "segments"
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

// folder stores segments in immutable files.
type folder struct {
	dir    string
	logger *slog.Logger
	// last is the highest number assigned.
	last atomic.Uint64
}

func (f *folder) path(number uint64) string {
	return filepath.Join(f.dir, fmt.Sprintf("%012d%s", number, fileSuffix))
}

// persist returns the entry of a segment, written to a file when it is large enough.
func (f *folder) persist(s *segment.Segment) aliasSegment {
	v := aliasSegment{segment: s}
	if counted(s) < minFileDocuments {
		return v
	}
	kept, err := f.write(s)
	if err != nil {
		f.logger.Warn("embedded index could not write a segment file; the next start will take longer", "err", err)
		return v
	}
	v.file = kept
	return v
}

// write writes s to a file. The file is durable when write returns.
func (f *folder) write(s *segment.Segment) (file, error) {
	out := file{number: f.last.Add(1)}
	part := f.path(out.number) + partSuffix
	err := os.MkdirAll(f.dir, 0o700)
	if err == nil {
		err = out.writeTo(part, s)
	}
	if err == nil {
		err = os.Rename(part, f.path(out.number))
	}
	if err == nil {
		err = syncFolder(f.dir)
	}
	if err != nil {
		_ = os.Remove(part)
		f.remove(out.number)
		return file{}, core.WrapError(core.CodeUnavailable, "writing a segment of the embedded index", err)
	}
	return out, nil
}

// writeTo writes s to path and syncs it.
func (f *file) writeTo(path string, s *segment.Segment) (err error) {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	sum := crc32.NewIEEE()
	buffered := bufio.NewWriterSize(to, 1<<20)
	if _, err := s.WriteTo(io.MultiWriter(buffered, sum)); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	info, err := to.Stat()
	if err != nil {
		return err
	}
	f.size, f.sum = info.Size(), sum.Sum32()
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

// read reads the segment of a file. It returns an error when the file is missing or its contents have changed.
func (f *folder) read(want file) (*segment.Segment, error) {
	from, err := os.Open(f.path(want.number))
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != want.size {
		return nil, core.NewError(core.CodeUnavailable, "the length of the file has changed")
	}
	sum := crc32.NewIEEE()
	s, err := segment.Read(io.TeeReader(from, sum), want.size)
	if err != nil {
		return nil, err
	}
	if sum.Sum32() != want.sum {
		return nil, core.NewError(core.CodeUnavailable, "the checksum of the file has changed")
	}
	return s, nil
}

// remove deletes a file. Files that cannot be deleted are deleted by clean.
func (f *folder) remove(number uint64) { _ = os.Remove(f.path(number)) }

// clean deletes the segment files whose number is not in keep, such as those that a killed process left behind, and continues
// numbering after the highest of keep. It must not run concurrently with write.
func (f *folder) clean(keep []uint64) error {
	names := map[string]bool{}
	for _, number := range keep {
		f.last.Store(max(f.last.Load(), number))
		names[filepath.Base(f.path(number))] = true
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
