package embedded_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
)

// segmentFiles returns the paths of the segment files in an index folder.
func segmentFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "segments", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// filled creates an index with segments in files, some of whose documents are deleted, and documents only in memory.
func filled(t *testing.T, dir string) *churn {
	t.Helper()
	x := open(t, embedded.Config{Dir: dir})
	ensure(t, x, index.Spec{Alias: "a"})
	c := newChurn(7)
	for len(segmentFiles(t, dir)) == 0 {
		c.round(t, x, "a", 5000, 40_000)
	}
	waitFor(t, func() bool {
		c.round(t, x, "a", 100, 40_000)
		return len(segmentFiles(t, dir)) > 0 && !strings.HasSuffix(segmentFiles(t, dir)[0], ".part")
	})
	for range 5 {
		c.round(t, x, "a", 300, 40_000)
	}
	checkSearches(t, x, "a", c.want)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

// logged collects the log of an index.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// TestRestart checks that searches are right after a start, whatever happened to the segment files.
func TestRestart(t *testing.T) {
	made := t.TempDir()
	whole := filled(t, made)
	spoil := func(change func(raw []byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			name := segmentFiles(t, dir)[0]
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, change(raw), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	const rebuilds = "rebuilds a segment"
	for name, test := range map[string]struct {
		spoil func(t *testing.T, dir string)
		log   string
	}{
		"as it was": {func(*testing.T, string) {}, ""},
		"a file is missing": {func(t *testing.T, dir string) {
			if err := os.Remove(segmentFiles(t, dir)[0]); err != nil {
				t.Fatal(err)
			}
		}, rebuilds},
		"all files are missing": {func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "segments")); err != nil {
				t.Fatal(err)
			}
		}, rebuilds},
		"a file is empty":    {spoil(func([]byte) []byte { return nil }), rebuilds},
		"a file is cut":      {spoil(func(raw []byte) []byte { return raw[:len(raw)/2] }), rebuilds},
		"a bit is turned":    {spoil(func(raw []byte) []byte { raw[len(raw)/3] ^= 4; return raw }), rebuilds},
		"a file is too long": {spoil(func(raw []byte) []byte { return append(raw, 0) }), rebuilds},
		"files of a killed process": {func(t *testing.T, dir string) {
			for _, left := range []string{"000000009999.segment", "000000000001.segment.part", "x.segment"} {
				if err := os.WriteFile(filepath.Join(dir, "segments", left), []byte("left"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}, ""},
		"a file is listed twice":         {func(t *testing.T, dir string) { listTwice(t, dir) }, ""},
		"an older tutti":                 {func(t *testing.T, dir string) { asFormat1(t, dir) }, ""},
		"an entry of the list is spoilt": {func(t *testing.T, dir string) { spoilManifest(t, dir) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
				t.Fatal(err)
			}
			test.spoil(t, dir)
			c := &churn{random: rand.New(rand.NewPCG(9, 9)), version: whole.version, want: maps.Clone(whole.want)}
			log := &logged{}
			cfg := embedded.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(log, nil))}
			x := open(t, cfg)
			checkSearches(t, x, "a", c.want)
			if log.has(rebuilds) != (test.log == rebuilds) || log.has("ERROR") {
				t.Errorf("the log is %s", log.text.String())
			}
			for range 3 {
				c.round(t, x, "a", 500, 40_000)
			}
			x = reopened(t, x, cfg)
			// Written while the segments are being loaded.
			c.round(t, x, "a", 500, 40_000)
			checkSearches(t, x, "a", c.want)
			x = reopened(t, x, cfg)
			checkSearches(t, x, "a", c.want)
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			for _, name := range segmentFiles(t, dir) {
				if base := filepath.Base(name); base == "000000009999.segment" || base == "x.segment" || strings.HasSuffix(base, ".part") {
					t.Errorf("%s was left", base)
				}
			}
		})
	}
}

// TestRestartAfterSecondFile checks that documents deleted from one file remain deleted when another file has been written since.
func TestRestartAfterSecondFile(t *testing.T) {
	cfg := embedded.Config{Dir: t.TempDir()}
	x := open(t, cfg)
	ensure(t, x, index.Spec{Alias: "a"})
	want := map[string]string{}
	fill := func(prefix string, files int) {
		var writes []core.Write
		for i := range 17_000 {
			id := fmt.Sprint(prefix, i)
			want[id] = fmt.Sprintf(`{"n":%d}`, i)
			writes = append(writes, put(id, 1, want[id]))
		}
		write(t, x, "a", writes...)
		waitFor(t, func() bool {
			write(t, x, "a", put("again", 1, `{}`))
			if len(segmentFiles(t, cfg.Dir)) < files {
				return false
			}
			// A start removes unlisted files.
			x = reopened(t, x, cfg)
			checkSearches(t, x, "a", want)
			return len(segmentFiles(t, cfg.Dir)) >= files
		})
	}
	want["again"] = `{}`
	fill("first", 1)
	for i := range 1000 {
		id := fmt.Sprint("first", 3*i)
		write(t, x, "a", core.Write{Op: core.OpDelete, ID: id, Version: 2})
		delete(want, id)
	}
	fill("second", 2)
	x = reopened(t, x, cfg)
	checkSearches(t, x, "a", want)
}

// changeFile changes the file of a closed index.
func changeFile(t *testing.T, dir string, change func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, "index.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := db.Update(change); err != nil {
		t.Fatal(err)
	}
}

// asFormat1 removes what files of format 1 did not have.
func asFormat1(t *testing.T, dir string) {
	t.Helper()
	changeFile(t, dir, func(tx *bbolt.Tx) error {
		a := tx.Bucket([]byte("aliases")).Bucket([]byte("a"))
		for _, name := range []string{"segments", "deaths"} {
			if err := a.DeleteBucket([]byte(name)); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{1})
	})
}

// spoilManifest truncates the manifest entries.
func spoilManifest(t *testing.T, dir string) {
	t.Helper()
	changeFile(t, dir, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("aliases")).Bucket([]byte("a")).Bucket([]byte("segments"))
		key, value := b.Cursor().First()
		if len(value) < 10 {
			return fmt.Errorf("the manifest has no entry: %q %q", key, value)
		}
		return b.Put(key, append([]byte(nil), value[:10]...))
	})
}

// listTwice copies a file, and adds the copy to the manifest.
func listTwice(t *testing.T, dir string) {
	t.Helper()
	name := segmentFiles(t, dir)[0]
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "segments", "000000009999.segment"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	changeFile(t, dir, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("aliases")).Bucket([]byte("a")).Bucket([]byte("segments"))
		var number uint64
		if _, err := fmt.Sscanf(filepath.Base(name), "%d.segment", &number); err != nil {
			return err
		}
		listed := append([]byte(nil), b.Get(binary.BigEndian.AppendUint64(nil, number))...)
		if len(listed) == 0 {
			return fmt.Errorf("%s is not listed", name)
		}
		return b.Put(binary.BigEndian.AppendUint64(nil, 9999), listed)
	})
}

// TestSpoiltSource checks that a document whose source is corrupt is logged, and that all others are found.
func TestSpoiltSource(t *testing.T) {
	dir := t.TempDir()
	x := open(t, embedded.Config{Dir: dir})
	ensure(t, x, index.Spec{Alias: "a"})
	write(t, x, "a", put("x", 1, `{"n":1}`), put("y", 1, `{"n":2}`), put("z", 1, `{"n":3}`))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	changeFile(t, dir, func(tx *bbolt.Tx) error {
		rows := tx.Bucket([]byte("aliases")).Bucket([]byte("a")).Bucket([]byte("rows"))
		key, row := rows.Cursor().First()
		return rows.Put(append([]byte(nil), key...), append([]byte{9}, row[1:]...))
	})
	log := &logged{}
	x = open(t, embedded.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(log, nil))})
	checkSearches(t, x, "a", map[string]string{"y": `{"n":2}`, "z": `{"n":3}`})
	if !log.has("embedded index cannot search a document") || !log.has("record_id=x") {
		t.Errorf("the log is %s", log.text.String())
	}
}

// TestCloseWhileLoading checks that Close does not wait for loading.
func TestCloseWhileLoading(t *testing.T) {
	dir := t.TempDir()
	c := filled(t, dir)
	if err := os.RemoveAll(filepath.Join(dir, "segments")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		x, err := embedded.Open(embedded.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	checkSearches(t, open(t, embedded.Config{Dir: dir}), "a", c.want)
}
