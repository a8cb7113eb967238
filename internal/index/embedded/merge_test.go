package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
)

// moreThanMemory is more documents than are kept only in memory.
const moreThanMemory = 17_000

// series writes documents with a common id prefix in one batch, adds them to want, and waits for the merges.
func series(t *testing.T, x *embedded.Index, want map[string]string, prefix string, n int) {
	t.Helper()
	var writes []core.Write
	for i := range n {
		id := fmt.Sprint(prefix, i)
		want[id] = fmt.Sprintf(`{"n":%d}`, i)
		writes = append(writes, put(id, 1, want[id]))
	}
	write(t, x, "a", writes...)
	synctest.Wait()
}

// end removes the documents [from, to) of a series.
func end(t *testing.T, x *embedded.Index, want map[string]string, prefix string, from, to int) {
	t.Helper()
	var writes []core.Write
	for i := from; i < to; i++ {
		id := fmt.Sprint(prefix, i)
		delete(want, id)
		writes = append(writes, core.Write{Op: core.OpDelete, ID: id, Version: 2})
	}
	write(t, x, "a", writes...)
	synctest.Wait()
}

// checkSegmentFiles compares the names of the segment files.
func checkSegmentFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	for _, path := range segmentFiles(t, dir) {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			got = append(got, filepath.Base(path))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the files are %v, want %v", got, want)
	}
}

// longerThanPause is longer than the pause after a file that could not be written.
const longerThanPause = 31 * time.Second

// TestMergeWithoutFile checks that a merge that replaces a file, but cannot write one, changes nothing, and is repeated once files
// can be written.
func TestMergeWithoutFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := embedded.Config{Dir: t.TempDir()}
		x := open(t, cfg)
		ensure(t, x, index.Spec{Alias: "a"})
		want := map[string]string{}
		series(t, x, want, "d", moreThanMemory)
		checkSegmentFiles(t, cfg.Dir, "000000000001.segment")

		// A folder in the way of the next file, which cannot be removed like a leftover file.
		obstacle := filepath.Join(cfg.Dir, "segments", "000000000002.segment.part")
		if err := os.MkdirAll(filepath.Join(obstacle, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
		end(t, x, want, "d", 0, 6000)
		checkSegmentFiles(t, cfg.Dir, "000000000001.segment")
		end(t, x, want, "d", 6000, 6100) // these deletions must not be lost
		checkSearches(t, x, "a", want)

		time.Sleep(longerThanPause)
		series(t, x, want, "next", 1)
		checkSegmentFiles(t, cfg.Dir, "000000000003.segment")
		checkSearches(t, x, "a", want)
		if err := os.RemoveAll(obstacle); err != nil {
			t.Fatal(err)
		}
		checkSearches(t, reopened(t, x, cfg), "a", want)
	})
}

// TestMergeNotListed checks that the file of a merge that cannot be added to the manifest is removed, and that the merge is
// repeated later.
func TestMergeNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := embedded.Config{Dir: t.TempDir()}
		x := open(t, cfg)
		ensure(t, x, index.Spec{Alias: "a"})
		want := map[string]string{}
		series(t, x, want, "d", moreThanMemory-2000)
		checkSegmentFiles(t, cfg.Dir)
		d := openOnDisk(t, x)
		d.allowed.Store(1) // the writes themselves, not the merge after them
		series(t, x, want, "e", 2000)
		checkSegmentFiles(t, cfg.Dir)
		if d.refused.Load() == 0 {
			t.Error("the manifest was not written")
		}
		checkSearches(t, x, "a", want)

		d.state.Store(diskWhole)
		time.Sleep(longerThanPause)
		series(t, x, want, "next", 1)
		checkSegmentFiles(t, cfg.Dir, "000000000002.segment")
		checkSearches(t, x, "a", want)
		checkSearches(t, reopened(t, x, cfg), "a", want)
	})
}

// TestFileOfDeletedDocuments checks that a file is removed, from the manifest too, when all its documents have been deleted.
func TestFileOfDeletedDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := embedded.Config{Dir: t.TempDir()}
		x := open(t, cfg)
		ensure(t, x, index.Spec{Alias: "a"})
		want := map[string]string{}
		series(t, x, want, "d", moreThanMemory)
		checkSegmentFiles(t, cfg.Dir, "000000000001.segment")
		end(t, x, want, "d", 0, moreThanMemory)
		checkSegmentFiles(t, cfg.Dir)
		checkSearches(t, x, "a", want)
		// The manifest is rewritten: it must not contain the removed file.
		series(t, x, want, "e", moreThanMemory)
		checkSegmentFiles(t, cfg.Dir, "000000000002.segment")
		checkSearches(t, reopened(t, x, cfg), "a", want)
	})
}
