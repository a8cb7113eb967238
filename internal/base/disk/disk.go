// Package disk checks that a directory accepts writes, and which process holds a lock file. It imports nothing of tutti.
package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// margin is how much space a probe leaves free: others may write to the same disk, and some of them do not recover by themselves from
// a full disk.
const margin = 4 << 20

// probeName is the file that ProbeSpace writes. A file left behind by a killed process is overwritten.
const probeName = ".room"

// ProbeSpace writes a file of size bytes into dir, syncs it and removes it. An error means that dir cannot take such a write now: no
// space, a quota, a file size limit, missing permission. While the file system has less than size plus a margin of free space it
// returns syscall.ENOSPC and writes nothing. Calls for one dir must not overlap.
func ProbeSpace(dir string, size int64) (err error) {
	if free, known := FreeBytes(dir); known && free < size+margin {
		return fmt.Errorf("%d bytes are free in %s, but %d are needed: %w", free, dir, size+margin, syscall.ENOSPC)
	}
	path := filepath.Join(dir, probeName)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(path)) }()
	if _, err := io.CopyN(file, zeros{}, size); err != nil {
		return err
	}
	return file.Sync()
}

// zeros is an endless sequence of zero bytes.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
