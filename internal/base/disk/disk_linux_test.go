package disk_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"tutti/internal/base/disk"
)

// TestProbeSpaceOnAFullDisk fails on a full file system and leaves no file.
func TestProbeSpaceOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", dir+"/.room"); err != nil {
		t.Fatal(err)
	}
	if err := disk.ProbeSpace(dir, 1); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v stayed behind, %v", left, err)
	}
}

// TestProbeSpaceLeavesTheRest requires more than the free space: nothing is written, since other writers on the same disk would fail.
func TestProbeSpaceLeavesTheRest(t *testing.T) {
	dir := t.TempDir()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", dir+"/.room"); err != nil { // accepts all writes, cannot be synced
		t.Fatal(err)
	}
	if err := disk.ProbeSpace(dir, 2*int64(stat.Bavail)*stat.Bsize); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(dir + "/.room"); err != nil {
		t.Errorf("the proof has begun: %v", err)
	}
}

func TestLockHolder(t *testing.T) {
	if _, err := os.Stat("/proc/locks"); err != nil {
		t.Skip("the kernel has no list of locks")
	}
	file, err := os.Create(t.TempDir() + "/.lock")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if pid, held := disk.LockHolder(file.Name()); held {
		t.Errorf("process %d has a lock that was not taken", pid)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if pid, held := disk.LockHolder(file.Name()); !held || pid != os.Getpid() {
		t.Errorf("got process %d, %t", pid, held)
	}
}
