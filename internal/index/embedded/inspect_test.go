package embedded_test

import (
	"errors"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
)

// TestInspect: without opening the index, its mappings and limits are compared as by the index itself; a file that a process has open, or that
// another version has written, is an error.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	spec := index.Spec{Alias: "a", Mapping: []byte(`{"properties":{"age":{"type":"keyword"}}}`)}
	if x, err := embedded.Inspect(embedded.Config{Dir: filepath.Join(dir, "none")}); err != nil || x.Renewed {
		t.Fatalf("no folder: %+v, %v", x, err)
	} else if c, err := x.Compare(t.Context(), spec); err != nil || c.Kind != index.NameAbsent {
		t.Fatalf("no folder: %+v, %v", c, err)
	} else if _, err := x.Mapping(t.Context(), "a"); !errors.Is(err, core.ErrIndexMissing) {
		t.Fatalf("no folder: %v", err)
	}
	limits := mapping.DefaultLimits()
	limits.Fields = 77
	x, err := embedded.Open(embedded.Config{Dir: dir, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Ensure(t.Context(), index.Spec{Alias: "a", Mapping: []byte(`{"properties":{"age":{"type":"long"}}}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Inspect(embedded.Config{Dir: dir}); core.CodeOf(err) != core.CodeConflict {
		t.Fatalf("an open file: %v", err)
	}
	want, err := x.Mapping(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := embedded.Inspect(embedded.Config{Dir: dir})
	if err != nil || found.Renewed {
		t.Fatalf("%+v, %v", found, err)
	}
	if raw, err := found.Mapping(t.Context(), "a"); err != nil || string(raw) != string(want) {
		t.Errorf("the mapping is %s, %v, want %s", raw, err, want)
	}
	c, err := found.Compare(t.Context(), spec)
	if err != nil || len(c.Fields) == 0 || len(c.Limits) != 1 || c.Limits[0].Live != "77" {
		t.Errorf("%+v, %v", c, err)
	}
	for version, code := range map[byte]core.Code{1: "", 99: core.CodeUnsupported} {
		db, err := bbolt.Open(filepath.Join(dir, "index.db"), 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{version}) }), db.Close()); err != nil {
			t.Fatal(err)
		}
		found, err := embedded.Inspect(embedded.Config{Dir: dir})
		if core.CodeOf(err) != code && (err != nil || code != "") || err == nil && !found.Renewed {
			t.Errorf("format %d: %+v, %v", version, found, err)
		}
	}
}
