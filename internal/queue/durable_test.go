package queue_test

import (
	"context"
	"errors"
	"testing"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// TestReadyProvesEachStream holds that a write which one stream takes is no proof of another.
func TestReadyProvesEachStream(t *testing.T) {
	for _, stream := range queue.Streams() {
		t.Run(stream, func(t *testing.T) {
			t.Parallel()
			q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
			if err := q.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, js := raw(t, q)
			s, err := js.Stream(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			cfg := s.CachedInfo().Config
			cfg.Subjects = cfg.Subjects[:1] // the probe's subject is the second
			if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			wantCode(t, q.Probe(t.Context()), core.CodeUnavailable)
		})
	}
}

// TestProbesAreNoMessages holds that probes are not delivered, take no place of Requests and do not pile up.
func TestProbesAreNoMessages(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{MaxPending: 1})
		mustPublish(t, q, record("S1", "A1"))
		wantCode(t, q.Publish(t.Context(), record("S1", "A2")), core.CodeOverloaded)
		if err := q.Probe(t.Context()); err != nil {
			t.Fatalf("a full stream is not ready: %v", err)
		}
		_, js := raw(t, q)
		for stream, want := range map[string]int{queue.StreamRequests: 1, queue.StreamLetters: 0, queue.StreamJobs: 0, queue.StreamAdvisories: 0} {
			if n := held(t, js, stream); n != want {
				t.Errorf("%s holds %d messages", stream, n)
			}
		}
		if moved, err := q.MoveUnknown(t.Context(), []string{"song"}); moved != 0 || err != nil {
			t.Errorf("%d messages moved, %v", moved, err)
		}
		if n := q.DeadLetters().Count(); len(n) != 0 {
			t.Errorf("dead letters %v", n)
		}
	})
}

// TestWriteInFlight holds that a write which waits for an answer ends when a probe fails, and not with its own time-out.
func TestWriteInFlight(t *testing.T) {
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	full := core.NewError(core.CodeUnavailable, "full")
	err := q.Storing(t.Context(), func(ctx context.Context) error {
		q.Settle(full)
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("the write ended with %v", ctx.Err())
		}
		return ctx.Err()
	})
	if !errors.Is(err, full) {
		t.Errorf("the write gave %v", err)
	}
	err = q.Storing(t.Context(), func(context.Context) error {
		t.Error("a write was begun")
		return nil
	})
	if !errors.Is(err, full) {
		t.Errorf("a later write gave %v", err)
	}
}
