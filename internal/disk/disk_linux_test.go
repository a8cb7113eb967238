package disk_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"tutti/internal/disk"
)

// TestProveRoomOnAFullDisk writes to a file system that is full, and leaves nothing that takes its space.
func TestProveRoomOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", dir+"/.room"); err != nil {
		t.Fatal(err)
	}
	if err := disk.ProveRoom(dir, 1); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v stayed behind, %v", left, err)
	}
}

// TestProveRoomLeavesTheRest asks for more than the file system has: nothing is written, because other writers on the same
// disk would fail for lack of what the proof took.
func TestProveRoomLeavesTheRest(t *testing.T) {
	dir := t.TempDir()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", dir+"/.room"); err != nil { // takes everything, cannot be synced
		t.Fatal(err)
	}
	if err := disk.ProveRoom(dir, 2*int64(stat.Bavail)*stat.Bsize); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(dir + "/.room"); err != nil {
		t.Errorf("the proof has begun: %v", err)
	}
}
