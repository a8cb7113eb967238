package definition

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
)

// Bounds of what is read, so that a folder of data that is taken for one of catalogues costs neither the memory nor the time
// that would end the process. Folders behind the most, in the order of their names, are listed as failed.
const (
	maxFolders = 1000
	maxFiles   = 1000
	// maxEntries is how many names a folder may hold, read or not.
	maxEntries = 20_000
	// maxFolderBytes and maxFolderValues are for the files of one catalogue, maxBytes and maxValues for those of all.
	maxFolderBytes  = 32 << 20
	maxFolderValues = 500_000
	maxBytes        = 256 << 20
	maxValues       = 2_000_000
)

// moveDataHint is the mend for what is too much.
const moveDataHint = "a configuration is far smaller: put data elsewhere"

// quota is how much may still be read.
type quota struct{ bytes, values int }

// quotaFor returns what may be read of a folder, false when nothing may. Sizes are looked at first, so that a folder of large files
// is refused unread and takes nothing from the others.
func (l *loader) quotaFor(d *draft) (*quota, bool) {
	bytes := 0
	for _, name := range d.files {
		if info, err := fs.Stat(l.fsys, path.Join(d.path, name)); err == nil && info.Mode().IsRegular() && info.Size() <= maxFileBytes {
			bytes += int(info.Size())
		}
	}
	switch {
	case bytes > maxFolderBytes:
		d.failBytes()
		return nil, false
	case bytes > l.left.bytes || l.left.values <= 0:
		d.failAll()
		return nil, false
	}
	return &quota{maxFolderBytes, maxFolderValues}, true
}

// consume counts what was read of a file, false when that is too much.
func (l *loader) consume(d *draft, room *quota, read quota) bool {
	room.bytes -= read.bytes
	room.values -= read.values
	l.left.bytes -= read.bytes
	l.left.values -= read.values
	switch {
	case room.bytes < 0: // it has grown since its size was looked at
		d.failBytes()
	case l.left.bytes < 0 || l.left.values < 0:
		d.failAll()
	case room.values < 0:
		d.fail(d.label(), "holds more than 500,000 values", moveDataHint)
	default:
		return true
	}
	return false
}

func (d *draft) failBytes() { d.fail(d.label(), "holds more than 32 MiB of JSON files", moveDataHint) }

func (d *draft) failAll() {
	d.fail(d.label(), "is not read: 256 MiB and 2,000,000 values are the most that all catalogues may hold together",
		"put elsewhere what is no configuration, there and in the folders before it")
}

func (d *draft) failEntries() {
	d.fail(d.label(), fmt.Sprintf("is not read: it holds more than %d files and folders", maxEntries), moveDataHint)
}

// readDir returns the entries of a folder in the order of their names, or any of them where there are more than most.
func readDir(fsys fs.FS, name string, most int) ([]fs.DirEntry, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	folder, is := file.(fs.ReadDirFile)
	if !is {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.ErrUnsupported}
	}
	var entries []fs.DirEntry
	for len(entries) < most {
		some, err := folder.ReadDir(most - len(entries))
		entries = append(entries, some...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}
