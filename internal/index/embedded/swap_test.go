package embedded_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

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
