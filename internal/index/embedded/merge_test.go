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

// fileful is more documents than are kept in memory alone.
const fileful = 17_000

// series writes documents whose ids begin alike in one batch, adds them to want, and waits until what follows from it is done.
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

// end removes the documents from from to before to of a series.
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

// files holds the names of the files of segments to those that there must be.
func files(t *testing.T, dir string, want ...string) {
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

// longerThanRest is longer than no file is tried after one that could not be written.
const longerThanRest = 31 * time.Second

// TestMergeWithoutFile holds that a merge that takes the place of a file, but gets none itself, changes nothing, and comes about
// once files can be written again.
func TestMergeWithoutFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := embedded.Config{Dir: t.TempDir()}
		x := open(t, cfg)
		ensure(t, x, index.Spec{Alias: "a"})
		want := map[string]string{}
		series(t, x, want, "d", fileful)
		files(t, cfg.Dir, "000000000001.segment")

		// What stands in the way of the next file cannot be removed like one that was left behind.
		obstacle := filepath.Join(cfg.Dir, "segments", "000000000002.segment.part")
		if err := os.MkdirAll(filepath.Join(obstacle, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
		end(t, x, want, "d", 0, 6000)
		files(t, cfg.Dir, "000000000001.segment")
		end(t, x, want, "d", 6000, 6100) // what dies now must not be forgotten
		holds(t, x, "a", want)

		time.Sleep(longerThanRest)
		series(t, x, want, "next", 1)
		files(t, cfg.Dir, "000000000003.segment")
		holds(t, x, "a", want)
		if err := os.RemoveAll(obstacle); err != nil {
			t.Fatal(err)
		}
		holds(t, reopened(t, x, cfg), "a", want)
	})
}

// TestMergeThatCannotBeListed holds that the file of a merge which the index' file cannot be told of is removed, and that the merge
// comes about once it can.
func TestMergeThatCannotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := embedded.Config{Dir: t.TempDir()}
		x := open(t, cfg)
		ensure(t, x, index.Spec{Alias: "a"})
		want := map[string]string{}
		series(t, x, want, "d", fileful-2000)
		files(t, cfg.Dir)
		d := spoilable(t, x)
		d.allowed.Store(1) // the writes themselves; what is merged of them comes after
		series(t, x, want, "e", 2000)
		files(t, cfg.Dir)
		if d.refused.Load() == 0 {
			t.Error("nothing was to be listed")
		}
		holds(t, x, "a", want)

		d.state.Store(diskWhole)
		time.Sleep(longerThanRest)
		series(t, x, want, "next", 1)
		files(t, cfg.Dir, "000000000002.segment")
		holds(t, x, "a", want)
		holds(t, reopened(t, x, cfg), "a", want)
	})
}

// TestFileOfTheDead holds that a file goes, from the list of files too, when all of its documents have been removed.
func TestFileOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := embedded.Config{Dir: t.TempDir()}
		x := open(t, cfg)
		ensure(t, x, index.Spec{Alias: "a"})
		want := map[string]string{}
		series(t, x, want, "d", fileful)
		files(t, cfg.Dir, "000000000001.segment")
		end(t, x, want, "d", 0, fileful)
		files(t, cfg.Dir)
		holds(t, x, "a", want)
		// A list of files is written anew: those who died must not be found in it.
		series(t, x, want, "e", fileful)
		files(t, cfg.Dir, "000000000002.segment")
		holds(t, reopened(t, x, cfg), "a", want)
	})
}
