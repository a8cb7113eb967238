package embedded_test

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"tutti/internal/index/embedded"
)

// TestBackup: a copy has the documents at the moment of the call, whatever is written and merged until it ends, and its searches read
// the copied segments.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	c := filled(t, dir)
	x := open(t, embedded.Config{Dir: dir})
	want, to := maps.Clone(c.want), t.TempDir()
	files := 0
	if err := x.Backup(func(name string, size int64, write func(io.Writer) error) error {
		if files++; files == 1 {
			for range 5 {
				c.round(t, x, "a", 3000, 40_000)
			}
		}
		var out bytes.Buffer
		if err := write(&out); err != nil {
			return err
		}
		if int64(out.Len()) != size {
			t.Errorf("%s has %d bytes, %d were announced", name, out.Len(), size)
		}
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, out.Bytes(), 0o600)
	}); err != nil {
		t.Fatal(err)
	}
	if files < 2 {
		t.Errorf("%d files", files)
	}
	checkSearches(t, x, "a", c.want)
	log := &logged{}
	copied := open(t, embedded.Config{Dir: to, Logger: slog.New(slog.NewTextHandler(log, nil))})
	checkSearches(t, copied, "a", want)
	if log.has("rebuilds") {
		t.Error("segments were rebuilt although their files were copied")
	}
}

func TestBackupOfAClosedIndex(t *testing.T) {
	x := open(t, embedded.Config{Dir: t.TempDir()})
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if err := x.Backup(func(string, int64, func(io.Writer) error) error { return nil }); err == nil {
		t.Error("a closed index was backed up")
	}
}
