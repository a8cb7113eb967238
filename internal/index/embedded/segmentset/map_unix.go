//go:build unix

package segmentset

import (
	"errors"
	"os"
	"syscall"
)

// mapFile maps the first size bytes of a file into memory, read-only. These are pages of the file, which the system can drop and read
// again, not memory of the process.
func mapFile(from *os.File, size int64) (raw []byte, unmap func(raw []byte), err error) {
	if size == 0 || int64(int(size)) != size {
		return nil, nil, errors.New("the length of the file is invalid")
	}
	raw, err = syscall.Mmap(int(from.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	return raw, func(raw []byte) { _ = syscall.Munmap(raw) }, err
}
