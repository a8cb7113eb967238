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

// Limits of reading, so that a data folder that is configured by mistake does not exhaust memory or time. Folders beyond the
// limit, in the order of their names, are listed as failed.
const (
	maxFolders = 1000
	maxFiles   = 1000
	// maxEntries limits the names in a folder, whether they are read or not.
	maxEntries = 20_000
	// maxFolderBytes and maxFolderValues apply to the files of one catalogue, maxBytes and maxValues to all.
	maxFolderBytes  = 32 << 20
	maxFolderValues = 500_000
	maxBytes        = 256 << 20
	maxValues       = 2_000_000
)

// moveDataHint is the hint for exceeded limits.
const moveDataHint = "a configuration is far smaller: put data elsewhere"

// quota is the remaining limit.
type quota struct{ bytes, values int }

// quotaFor returns the quota for a folder, false if there is none. It checks file sizes first, so that a folder of large files is
// rejected unread and uses nothing of the total.
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

// consume subtracts a file from the quotas; it returns false if they are exceeded.
func (l *loader) consume(d *draft, room *quota, read quota) bool {
	room.bytes -= read.bytes
	room.values -= read.values
	l.left.bytes -= read.bytes
	l.left.values -= read.values
	switch {
	case room.bytes < 0: // it has grown since its size was checked
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
		"move what is not configuration elsewhere, there and in the folders before it")
}

func (d *draft) failEntries() {
	d.fail(d.label(), fmt.Sprintf("is not read: it holds more than %d files and folders", maxEntries), moveDataHint)
}

// readDir returns the entries of a folder sorted by name, or in any order if there are more than most.
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
