//go:build linux || darwin

package check

import "golang.org/x/sys/unix"

// freeSpace returns the bytes that this user may still write on dir's disk.
func freeSpace(dir string) (uint64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil || s.Bsize <= 0 {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
