package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"tutti/internal/base/disk"
)

func TestProbeSpace(t *testing.T) {
	dir := t.TempDir()
	if err := disk.ProbeSpace(dir, 100_000); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v stayed behind, %v", left, err)
	}
	if err := disk.ProbeSpace(filepath.Join(dir, "missing"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory returned %v", err)
	}
}
