package check

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

// holder tells which process holds the lock of file. It reads the kernel's list of locks and takes none itself: a lock
// taken only to look would keep out a tutti that starts at this moment. Locks of other containers are not in the list.
func holder(file string) (pid int, held bool) {
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
		// 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF; one that waits has an arrow in the second field.
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

// inodeOf gives a file as the list of locks names it.
func inodeOf(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%02x:%02x:%d", unix.Major(s.Dev), unix.Minor(s.Dev), s.Ino)
}

// hasOpen tells whether a process has the file open. Layered file systems give a file another number in the list of locks
// than they show, so for those the number is not enough.
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
