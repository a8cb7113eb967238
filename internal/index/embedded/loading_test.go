package embedded_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
)

// blockingLog is a log handler that blocks until it is released.
type blockingLog struct {
	slog.Handler
	release chan struct{}
}

func (blockingLog) Enabled(context.Context, slog.Level) bool { return true }

func (h blockingLog) Handle(context.Context, slog.Record) error {
	<-h.release
	return nil
}

// TestLoading checks an index whose columns are being loaded: Loading returns its aliases, it accepts writes, and a search that has
// waited for LoadWait returns an error.
func TestLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		x := open(t, embedded.Config{Dir: dir})
		ensure(t, x, index.Spec{Alias: "a"})
		want := map[string]string{}
		series(t, x, want, "d", moreThanMemory)
		checkSegmentFiles(t, dir, "000000000001.segment")
		if names := x.Loading(); len(names) > 0 {
			t.Errorf("%v are being loaded, before any start", names)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		// A file that cannot be read is logged.
		if err := os.Truncate(filepath.Join(dir, "segments", "000000000001.segment"), 100); err != nil {
			t.Fatal(err)
		}
		log := blockingLog{slog.DiscardHandler, make(chan struct{})}
		x = open(t, embedded.Config{Dir: dir, LoadWait: 7 * time.Second, Logger: slog.New(log)})
		synctest.Wait()
		if names := x.Loading(); !slices.Equal(names, []string{"a"}) {
			t.Errorf("%v are being loaded, want a", names)
		}
		ensure(t, x, index.Spec{Alias: "new"})
		if names := x.Loading(); !slices.Equal(names, []string{"a"}) {
			t.Errorf("%v are being loaded, want a", names)
		}
		write(t, x, "a", put("d0", 2, `{"n":-1}`))
		want["d0"] = `{"n":-1}`
		if doc, _, err := x.Get(t.Context(), "a", "d0"); err != nil || string(doc.Source) != want["d0"] {
			t.Errorf("what was written is %s (%v)", doc.Source, err)
		}
		began := time.Now()
		_, searched := x.Search(t.Context(), "a", []index.SearchRequest{{Total: true}})
		streamed := x.Stream(t.Context(), "a", index.StreamRequest{}, func([]index.Hit) error { return nil })
		for _, err := range []error{searched, streamed} {
			if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "the index is still being loaded after a start" || core.RetryAfterOf(err) != 5*time.Second {
				t.Errorf("it returned %v", err)
			}
			wantHint(t, err, "retry later; the index accepts writes, and searches will find them") // checkSearches does
		}
		if took := time.Since(began); took != 14*time.Second {
			t.Errorf("the two were rejected after %v", took)
		}
		waiting := make(chan error)
		go func() {
			_, err := x.Search(t.Context(), "a", []index.SearchRequest{{Total: true}})
			waiting <- err
		}()
		synctest.Wait()
		close(log.release)
		if err := <-waiting; err != nil {
			t.Errorf("a search that waited returned %v", err)
		}
		synctest.Wait()
		if names := x.Loading(); len(names) > 0 {
			t.Errorf("%v are being loaded, want them to be", names)
		}
		checkSearches(t, x, "a", want)
	})
}
