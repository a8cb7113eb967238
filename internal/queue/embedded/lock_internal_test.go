//go:build darwin || linux

package embedded

import (
	"syscall"
	"testing"
)

// TestUnlockWhileAProcessStarts: a folder is free once it is unlocked, though a process that is being started still has a copy of the lock's
// file, as each has from its fork to its program.
func TestUnlockWhileAProcessStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := syscall.Dup(int(first.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(copied) }()
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	second, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Unlock(); err != nil {
		t.Fatal(err)
	}
}
