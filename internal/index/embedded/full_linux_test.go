package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
)

// fullDir is an environment variable that makes this test binary a child whose files must not grow beyond a limit.
const fullDir = "TUTTI_TEST_FULL_DIR"

// TestFullDisk fills a file that cannot grow, in a process of its own: writes fail as a whole, acknowledged documents can be read,
// Check returns an error, and writes succeed again once there is space.
func TestFullDisk(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), fullDir+"="+t.TempDir())
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func fillDisk(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	x, err := embedded.Open(embedded.Config{Dir: dir})
	if err != nil {
		return err
	}
	if err := x.Ensure(ctx, index.Spec{Alias: "analyses", Known: mapping.Song()}); err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(dir, "index.db"))
	if err != nil {
		return err
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: uint64(info.Size()) + 4<<20, Max: was.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	full, n := false, 0
	for ; n < 1000 && !full; n++ {
		_, err := x.Write(ctx, numbered(x, n))
		full = err != nil
		if full && core.CodeOf(err) != core.CodeUnavailable {
			return fmt.Errorf("the full disk returned %w", err)
		}
	}
	if !full {
		return fmt.Errorf("the file took %d batches", n)
	}
	if err := checkFull(ctx, x, filepath.Join(dir, ".room"), n-1); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	if err := errors.Join(x.Check(ctx, "analyses"), x.Ping(ctx)); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if _, err := x.Write(ctx, numbered(x, n-1)); err != nil {
		return err
	}
	if err := checkCounts(ctx, x, n); err != nil {
		return err
	}
	if err := x.Close(); err != nil {
		return err
	}
	if x, err = embedded.Open(embedded.Config{Dir: dir}); err != nil {
		return err
	}
	if err := checkCounts(ctx, x, n); err != nil {
		return fmt.Errorf("after opening it again: %w", err)
	}
	return x.Close()
}

// checkFull checks an index that cannot be written against what it has acknowledged.
func checkFull(ctx context.Context, x *embedded.Index, room string, batches int) error {
	// The limit is per file: a folder in the way simulates a disk without space for other files.
	if err := os.Mkdir(room, 0o700); err != nil {
		return err
	}
	for range 2 {
		if err := x.Check(ctx, "analyses"); core.CodeOf(err) != core.CodeUnavailable {
			return fmt.Errorf("Check on the full disk returned %w", err)
		}
		if err := x.Ping(ctx); core.CodeOf(err) != core.CodeUnavailable {
			return fmt.Errorf("Ping on the full disk returned %w", err)
		}
	}
	if err := os.Remove(room); err != nil {
		return err
	}
	return checkCounts(ctx, x, batches)
}

func checkCounts(ctx context.Context, x *embedded.Index, batches int) error {
	for n := range batches {
		scope := core.IndexScope{Field: "studyId", Organization: fmt.Sprint("S", n)}
		if got, err := x.Count(ctx, "analyses", scope); err != nil || got != 200 {
			return fmt.Errorf("batch %d has %d documents: %w", n, got, err)
		}
	}
	if got, err := x.Count(ctx, "analyses", core.IndexScope{}); err != nil || got != int64(200*batches) {
		return fmt.Errorf("%d documents instead of %d: %w", got, 200*batches, err)
	}
	found, err := x.Search(ctx, "analyses", []index.SearchRequest{{Total: true}})
	if err != nil || found[0].Total != int64(200*batches) {
		return fmt.Errorf("searches find %v instead of %d documents: %w", found, 200*batches, err)
	}
	return nil
}

// numbered returns a batch with its own study and field.
func numbered(x index.Index, n int) core.Batch {
	b := core.Batch{Index: "analyses"}
	for i := range 200 {
		item := core.BatchItem{ID: fmt.Sprintf("%d-%d", n, i), Version: 1, Start: len(b.Body)}
		doc := fmt.Appendf(nil, `{"studyId":"S%d","grown":{"field%d":1},"info":{"x":%q}}`, n, n, analysis(item.ID, i))
		b.Body, item.DocStart, item.DocEnd = x.Encode(b.Body, core.Write{Document: doc})
		item.End = len(b.Body)
		b.Items = append(b.Items, item)
	}
	return b
}
