package backup_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tutti/internal/app/backup"
	"tutti/internal/core"
)

// content returns n bytes that do not repeat within 64 KiB.
func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8 ^ i)
	}
	return b
}

// longStream is longer than two of the files that a stream is written as.
var longStream = content(9<<20 + 5)

// archive returns a backup of a store of 100,000 bytes, a stream and no index.
func archive(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := backup.NewWriter(&out, "1.2.3")
	w.Part(backup.PartStore)
	if err := w.File("store/tutti.db", 100_000, func(w io.Writer) error {
		_, err := w.Write(content(100_000))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.Part(backup.PartQueue)
	for name, text := range map[string][]byte{"queue/LONG": longStream, "queue/EMPTY": nil} {
		if err := w.Stream(name, func(w io.Writer) error {
			_, err := io.Copy(w, bytes.NewReader(text))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	w.NotIncluded(backup.PartIndex)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func wantCode(t *testing.T, err error, code core.Code, text string) {
	t.Helper()
	if core.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v (%s), want %s with %q", err, core.CodeOf(err), code, text)
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s has %v, %v", dir, entries, err)
	}
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "backup")
	m, err := backup.Unpack(bytes.NewReader(archive(t)), dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Version != "1.2.3" || len(m.NotIncluded) != 1 || m.Bytes(backup.PartStore) != 100_000 || m.EndedAt.Before(m.StartedAt) {
		t.Errorf("manifest %+v", m)
	}
	f, err := backup.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Has(backup.PartStore) || f.Has(backup.PartIndex) {
		t.Errorf("parts %v", f.Parts)
	}
	to := filepath.Join(t.TempDir(), "store")
	if err := f.CopyPart(backup.PartStore, to); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(to, "tutti.db")); err != nil || !bytes.Equal(got, content(100_000)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if info, err := os.Stat(filepath.Join(to, "tutti.db")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if streams := f.Streams(backup.PartQueue); len(streams) != 2 {
		t.Errorf("streams %v", streams)
	}
	for name, want := range map[string][]byte{"LONG": longStream, "EMPTY": {}} {
		err := f.Stream(backup.PartQueue, name, func(r io.Reader) error {
			got, err := io.ReadAll(r)
			if !bytes.Equal(got, want) {
				t.Errorf("%s has %d bytes, want %d", name, len(got), len(want))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestUnpackInterrupted: an archive that ends anywhere leaves nothing that could be restored.
func TestUnpackInterrupted(t *testing.T) {
	whole := archive(t)
	for _, length := range []int{0, 100, 512, 60_000, len(whole) / 2, len(whole) - 1600} {
		dir := filepath.Join(t.TempDir(), "backup")
		_, err := backup.Unpack(bytes.NewReader(whole[:length]), dir)
		wantCode(t, err, core.CodeUnavailable, "ended before it was complete")
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder of an archive of %d bytes was left: %v", length, err)
		}
	}
}

func TestUnpackRefuses(t *testing.T) {
	t.Run("files", func(t *testing.T) {
		dir := t.TempDir()
		kept := filepath.Join(dir, "kept")
		if err := os.WriteFile(kept, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := backup.Unpack(bytes.NewReader(archive(t)), dir)
		wantCode(t, err, core.CodeConflict, "not empty")
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
		if hint := core.HintOf(err); hint != "name a folder that is empty or does not exist" {
			t.Errorf("hint %q", hint)
		}
		for _, followed := range []string{t.TempDir(), filepath.Join(dir, "new")} {
			if _, err := backup.Unpack(bytes.NewReader(archive(t)), followed); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("altered", func(t *testing.T) {
		raw, dir := archive(t), t.TempDir()
		raw[50_000]++
		_, err := backup.Unpack(bytes.NewReader(raw), dir)
		wantCode(t, err, core.CodeInvalid, "differ from its manifest")
		wantEmpty(t, dir)
	})
	t.Run("outside", func(t *testing.T) {
		var out bytes.Buffer
		w := backup.NewWriter(&out, "")
		if err := w.File("../escaped", 1, func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		_, err := backup.Unpack(&out, dir)
		wantCode(t, err, core.CodeInvalid, "../escaped")
		wantEmpty(t, dir)
		if _, err := os.Stat(filepath.Join(dir, "..", "escaped")); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
}

// TestOpenRefuses: a backup that is not complete or differs from its manifest cannot be opened.
func TestOpenRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(dir string) error
		code   core.Code
		text   string
	}{
		"no manifest": {func(dir string) error { return os.Remove(filepath.Join(dir, backup.ManifestName)) }, core.CodeInvalid, "not a complete backup"},
		"missing":     {func(dir string) error { return os.Remove(filepath.Join(dir, "store", "tutti.db")) }, core.CodeInvalid, "store/tutti.db of the backup cannot be read"},
		"shorter":     {func(dir string) error { return os.Truncate(filepath.Join(dir, "store", "tutti.db"), 99_999) }, core.CodeInvalid, "has 99999 bytes"},
		"altered": {func(dir string) error {
			changed := content(100_000)
			changed[50_000]++
			return os.WriteFile(filepath.Join(dir, "store", "tutti.db"), changed, 0o600)
		}, core.CodeInvalid, "was altered"},
		"newer": {func(dir string) error {
			file := filepath.Join(dir, backup.ManifestName)
			raw, err := os.ReadFile(file)
			return errors.Join(err, os.WriteFile(file, bytes.Replace(raw, []byte(`"format": 1`), []byte(`"format": 2`), 1), 0o600))
		}, core.CodeUnsupported, "format 2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := backup.Unpack(bytes.NewReader(archive(t)), dir); err != nil {
				t.Fatal(err)
			}
			if err := test.change(dir); err != nil {
				t.Fatal(err)
			}
			_, err := backup.Open(dir)
			wantCode(t, err, test.code, test.text)
		})
	}
}

// TestWriterSize: a file with another size than announced is an error, not a backup.
func TestWriterSize(t *testing.T) {
	w := backup.NewWriter(io.Discard, "")
	err := w.File("store/tutti.db", 10, func(w io.Writer) error { _, err := w.Write(content(9)); return err })
	wantCode(t, err, core.CodeInternal, "9 bytes instead of 10")
}
