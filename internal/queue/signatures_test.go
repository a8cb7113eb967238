package queue_test

import (
	"testing"
	"time"

	"tutti/internal/queue"
)

// TestFirstSeen: any process learns when a key was first seen; a week and 100,000 keys are what is remembered.
func TestFirstSeen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		a, b := s.connect(t, queue.Config{}), s.connect(t, queue.Config{})
		first := func(q *queue.Queue, key string) time.Time {
			t.Helper()
			at, err := q.Signatures().FirstSeen(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Signatures().Remember(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			return at
		}
		began := time.Now()
		if at := first(a, "song\x00sha256=00"); !at.IsZero() {
			t.Errorf("a new key was seen at %s", at)
		}
		seen := first(b, "song\x00sha256=00")
		if seen.Before(began) || seen.After(time.Now()) {
			t.Errorf("seen at %s, not between %s and now", seen, began)
		}
		if again := first(a, "song\x00sha256=00"); !again.Equal(seen) {
			t.Errorf("seen at %s, then at %s", seen, again)
		}
		if at, err := b.Signatures().FirstSeen(t.Context(), "song\x00sha256=01"); err != nil || !at.IsZero() {
			t.Errorf("a key that is not remembered was seen at %s, %v", at, err)
		}
		if at := first(a, "song\x00sha256=01"); !at.IsZero() {
			t.Errorf("another key was seen at %s", at)
		}
		_, js := raw(t, a)
		stream, err := js.Stream(t.Context(), queue.StreamSeen)
		if err != nil {
			t.Fatal(err)
		}
		if c, n := stream.CachedInfo().Config, held(t, js, queue.StreamSeen); c.MaxAge != 7*24*time.Hour || c.MaxMsgs != 100_000 || n != 2 {
			t.Errorf("%d keys, of at most %d for %s", n, c.MaxMsgs, c.MaxAge)
		}
	})
}
