package disk

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// LockHolder returns the process that holds the lock of file. It reads the kernel's list of locks: taking the lock to test it
// could keep a starting tutti from running. Locks of other containers are not in the list.
func LockHolder(file string) (pid int, held bool) {
	want, err := os.Stat(file)
	if err != nil {
		return 0, false
	}
	list, err := os.Open("/proc/locks")
	if err != nil {
		return 0, false
	}
	defer func() { _ = list.Close() }()
	lines := bufio.NewScanner(list)
	for lines.Scan() {
		// 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF; for a waiting process the second field is an arrow.
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" {
			continue
		}
		pid, err := strconv.Atoi(fields[4])
		if err == nil && (fields[5] == inodeOf(want) || hasOpen(pid, want)) {
			return pid, true
		}
	}
	return 0, false
}

// inodeOf returns the identity of a file as the list of locks writes it.
func inodeOf(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%02x:%02x:%d", unix.Major(s.Dev), unix.Minor(s.Dev), s.Ino)
}

// hasOpen reports whether a process has the file open. On layered file systems the list of locks shows another inode number
// than stat, so comparing numbers is not enough.
func hasOpen(pid int, want fs.FileInfo) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && os.SameFile(info, want) {
			return true
		}
	}
	return false
}
