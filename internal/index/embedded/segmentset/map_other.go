//go:build !unix

package segmentset

import (
	"io"
	"os"
)

// mapFile reads the first size bytes of a file: a mapped file cannot be removed.
func mapFile(from *os.File, size int64) (raw []byte, unmap func(raw []byte), err error) {
	raw = make([]byte, size)
	_, err = io.ReadFull(io.NewSectionReader(from, 0, size), raw)
	return raw, func([]byte) {}, err
}
