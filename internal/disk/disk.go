// Package disk proves that a folder takes writes. It imports nothing of tutti.
package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// margin is how much space a proof leaves free: others may write to the same disk at any time, and some of them do not recover
// by themselves from a disk that is full.
const margin = 4 << 20

// roomName is the file that ProveRoom writes. One that a killed process left behind is overwritten by the next.
const roomName = ".room"

// ProveRoom writes a file of size bytes into dir, syncs it and removes it. An error means that dir takes no such write now,
// for whatever reason: no space, a quota, a limit on files, a folder that cannot be written. It is syscall.ENOSPC, and nothing
// is written, while the file system has less than size and a margin of free space. Calls for one dir must not overlap.
func ProveRoom(dir string, size int64) (err error) {
	if free, known := FreeBytes(dir); known && free < size+margin {
		return fmt.Errorf("%d bytes are free in %s, %d are needed: %w", free, dir, size+margin, syscall.ENOSPC)
	}
	path := filepath.Join(dir, roomName)
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

// zeros reads as zero bytes without end.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
