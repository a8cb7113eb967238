package queue_test

import (
	"testing"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// TestNewest: the newest version is no lower than that of any Request that was stored, also once it was acked and after the server has
// stopped or was killed, and lower than that of the next one.
func TestNewest(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		newest := func(q *queue.Queue) core.Version {
			t.Helper()
			v, err := q.Newest(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		var last core.Version
		for _, id := range []string{"a", "b"} {
			before := newest(q)
			r := record("S1", id)
			r.AsOf = 1 // which is not the version of the message
			mustPublish(t, q, r)
			got := fetch(t, c)
			last = newest(q)
			if last <= before || got[0].Version() != 1 {
				t.Errorf("before the request the newest was %d, then %d; its version is %d", before, last, got[0].Version())
			}
			mustAck(t, got...)
			if v := newest(q); v != last {
				t.Errorf("after the ack the newest is %d, not %d", v, last)
			}
		}
		removal := record("S1", "c")
		removal.Kind = core.KindRemove
		mustPublish(t, q, removal)
		got := fetch(t, c)
		if v := got[0].Version(); v <= last || newest(q) != v {
			t.Errorf("the removal has version %d, the newest before it was %d, and after it %d", v, last, newest(q))
		}
		last = got[0].Version()
		mustAck(t, got...)
		if v := newest(s.killed(t).connect(t, queue.Config{})); v < last {
			t.Errorf("after a kill the newest is %d, lower than %d", v, last)
		}
		s.stop(t)
		s.start(t)
		if v := newest(s.connect(t, queue.Config{})); v < last {
			t.Errorf("after a stop the newest is %d, lower than %d", v, last)
		}
	})
}
