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
