package embedded_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
)

// TestSwapReopened checks that the indices of a Swap, with their segment files, are those of a later start, and that the files of a
// dropped one are removed.
func TestSwapReopened(t *testing.T) {
	dir := t.TempDir()
	old := filled(t, dir)
	oldFiles := segmentFiles(t, dir)
	x := open(t, embedded.Config{Dir: dir})
	checkSearches(t, x, "a", old.want)
	ensure(t, x, index.Spec{Alias: "a--next", Replaces: "a"})
	next := newChurn(8)
	for len(segmentFiles(t, dir)) <= len(oldFiles) {
		next.round(t, x, "a--next", 5000, 40_000)
	}
	if err := x.Swap(t.Context(), index.Spec{Alias: "a"}, "a--next", ""); err != nil {
		t.Fatal(err)
	}
	reopen := func() {
		t.Helper()
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		x = open(t, embedded.Config{Dir: dir})
	}
	for range 2 {
		checkSearches(t, x, "a", next.want)
		checkSearches(t, x, "a--previous", old.want)
		next.round(t, x, "a", 300, 40_000)
		reopen()
	}
	checkSearches(t, x, "a--previous", old.want)
	if err := x.Drop(t.Context(), "a--previous", ""); err != nil {
		t.Fatal(err)
	}
	next.round(t, x, "a", 300, 40_000)
	reopen()
	checkSearches(t, x, "a", next.want)
	if err := x.Check(t.Context(), "a--previous"); !errors.Is(err, core.ErrIndexMissing) {
		t.Errorf("the dropped index: %v", err)
	}
	for _, file := range oldFiles {
		for _, left := range segmentFiles(t, dir) {
			if left == file {
				t.Errorf("%s is left", file)
			}
		}
	}
	ensure(t, x, index.Spec{Alias: "a--next", Replaces: "a"})
	third := newChurn(9)
	third.round(t, x, "a--next", 100, 1000)
	reopen()
	checkSearches(t, x, "a--next", third.want)
}

// TestDropUnderWrites checks that an index can be dropped while documents are written and merged: every write succeeds or returns
// CodeIndexBlocked.
func TestDropUnderWrites(t *testing.T) {
	x := open(t, embedded.Config{})
	for round := range 20 {
		ensure(t, x, index.Spec{Alias: "a"})
		var writers sync.WaitGroup
		for writer := range 4 {
			writers.Go(func() {
				for n := range 1000 {
					var batch []core.Write
					for i := range 50 {
						batch = append(batch, put(fmt.Sprint(writer, n, i), 1, `{"n":1}`))
					}
					results, err := x.Write(t.Context(), batchOf(x, "a", batch...))
					if core.CodeOf(err) == core.CodeIndexBlocked || err == nil && results[0].Code == core.CodeIndexBlocked {
						return
					}
					if err != nil || results[0].Outcome != core.OutcomeIndexed {
						t.Errorf("round %d: %+v, %v", round, results, err)
						return
					}
				}
			})
		}
		waitFor(t, func() bool { return count(t, x, "a", core.IndexScope{}) > int64(500*round) })
		if err := x.Drop(t.Context(), "a", ""); err != nil {
			t.Error(err)
		}
		writers.Wait()
	}
}

// TestDropShared: an index that has another alias, which only a change of the file outside of tutti can have added, is not deleted.
func TestDropShared(t *testing.T) {
	dir := t.TempDir()
	x := open(t, embedded.Config{Dir: dir})
	ensure(t, x, index.Spec{Alias: "a"})
	ensure(t, x, index.Spec{Alias: "a--next", Replaces: "a"})
	if err := x.Swap(t.Context(), index.Spec{Alias: "a"}, "a--next", ""); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	addAliases(t, dir, map[string]string{"a--next": "a", "portal": "a--previous"})
	x = open(t, embedded.Config{Dir: dir})
	waitFor(t, func() bool { return len(x.Loading()) == 0 })
	for alias, hint := range map[string]string{
		"a--next":     "remove the alias a--next from it: POST /_aliases",
		"a--previous": "remove them from it first, or the alias a--previous to keep it",
	} {
		if err := x.Drop(t.Context(), alias, ""); core.CodeOf(err) != core.CodeConflict || core.HintOf(err) != hint {
			t.Errorf("Drop of %s: %v; %s", alias, err, core.HintOf(err))
		}
	}
	for _, alias := range []string{"a", "a--next", "a--previous", "portal"} {
		if err := x.Check(t.Context(), alias); err != nil {
			t.Errorf("%s: %v", alias, err)
		}
	}
}

// addAliases adds aliases for the indices of other ones to the file of an index that is closed.
func addAliases(t *testing.T, dir string, of map[string]string) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, "index.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		names := tx.Bucket([]byte("names"))
		for added, alias := range of {
			if err := names.Put([]byte(added), names.Get([]byte(alias))); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
