//go:build darwin || dragonfly || freebsd || linux

package disk

import "syscall"

// FreeBytes returns the free space of the file system of dir, and whether it is known.
func FreeBytes(dir string) (free int64, known bool) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil || stat.Blocks == 0 {
		return 0, false
	}
	return int64(stat.Bavail) * int64(stat.Bsize), true
}
