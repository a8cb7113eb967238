package queue_test

import (
	"context"
	"testing"
	"time"

	"tutti/internal/queue"
)

// TestWatchCells: a watch calls with the cells that were set before it, and with each change of another process, also after the server
// was gone.
func TestWatchCells(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "127.0.0.1:0")
	q, other := s.connect(t, queue.Config{}), s.connect(t, queue.Config{})
	set := func(name, value string) {
		t.Helper()
		eventually(t, "the cell is set", func() bool {
			_, revision, err := other.Cells().Cell(t.Context(), name)
			return err == nil && other.Cells().SetCell(t.Context(), name, value, revision) == nil
		})
	}
	set("a", "1")
	set("unwatched", "1")
	ctx, cancel := context.WithCancel(t.Context())
	changes, ended := make(chan string, 10), make(chan struct{})
	go func() {
		defer close(ended)
		q.Cells().Watch(ctx, []string{"a", "b", "a"}, func(name string) { changes <- name })
	}()
	want := func(name string) {
		t.Helper()
		for limit := time.After(20 * time.Second); ; {
			select {
			case got := <-changes:
				if got == name {
					return
				}
				if got != "a" && got != "b" {
					t.Fatalf("told of %q, want %q", got, name)
				}
			case <-limit:
				t.Fatalf("not told of %q", name)
			}
		}
	}
	want("a")
	set("b", "1")
	want("b")
	set("unwatched", "2")
	set("a", "2")
	want("a")
	s.stop(t)
	s.start(t)
	set("b", "")
	want("b")
	cancel()
	<-ended
}
