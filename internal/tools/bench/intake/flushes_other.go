//go:build !linux

package intake

import "tutti/internal/core"

// flushes returns how often the disk that holds a folder was flushed by all processes. Only Linux counts them.
func flushes(string) (float64, error) {
	return 0, core.NewError(core.CodeUnavailable, "only Linux counts the flushes of a disk")
}
