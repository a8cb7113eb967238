package queue_test

import (
	"context"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// TestFetchLeavesStaleDeliveries: what came for a Fetch that had ended, and was not taken before its ack wait, is delivered
// again by the server; the older delivery is not handed out beside it.
func TestFetchLeavesStaleDeliveries(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		const ackWait = 200 * time.Millisecond
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{AckWait: ackWait})
		leavePull(t, q, c)
		release := c.TakeTurn() // as a process would that stands still
		mustPublish(t, q, record("S1", "A1"))
		<-time.After(ackWait)
		release()
		got := fetch(t, c)
		if len(got) != 1 || got[0].Deliveries() != 2 {
			t.Fatalf("%d messages, the first of delivery %d", len(got), got[0].Deliveries())
		}
		mustAck(t, got...)
		fetchNone(t, c)
	})
}

// TestUnusedDeliveries: messages that came for a Fetch that had ended are another consumer's long before their ack wait ends.
func TestUnusedDeliveries(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		cfg := queue.ConsumerConfig{AckWait: time.Minute}
		unused := mustConsumer(t, q, core.ClassRecords, cfg)
		leavePull(t, q, unused)
		mustPublish(t, q, record("S1", "A1"))
		awaitArrived(t, unused)
		unused.ReleaseUnused()
		got := fetch(t, mustConsumer(t, q, core.ClassRecords, cfg))
		if len(got) != 1 || got[0].Deliveries() != 2 {
			t.Fatalf("%d messages, the first of delivery %d", len(got), got[0].Deliveries())
		}
		mustAck(t, got...)
	})
}

// TestFetchOfWhatLay: the ack wait of a message that lay, and that is handed out, begins anew.
func TestFetchOfWhatLay(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{AckWait: time.Minute})
		leavePull(t, q, c)
		mustPublish(t, q, record("S1", "A1"))
		awaitArrived(t, c)
		words, err := q.Conn().SubscribeSync("$JS.ACK.REQUESTS.>")
		if err != nil {
			t.Fatal(err)
		}
		c.IdleFor(30 * time.Second)
		got := fetch(t, c)
		mustAck(t, got...)
		word, err := words.NextMsgWithContext(t.Context())
		if len(got) != 1 || err != nil || string(word.Data) != "+WPI" {
			t.Fatalf("%d messages, %s, %v", len(got), word.Data, err)
		}
	})
}

// TestUnusedLastDelivery: a last delivery that nothing worked on is no crash loop: the Request is published again.
func TestUnusedLastDelivery(t *testing.T) {
	const ackWait = 2 * time.Second
	for name, drop := range map[string]func(t *testing.T, q *queue.Queue, c *queue.Consumer){
		"released after a time": func(*testing.T, *queue.Queue, *queue.Consumer) {},
		"closed":                func(_ *testing.T, _ *queue.Queue, c *queue.Consumer) { c.Close() },
		"stale": func(t *testing.T, q *queue.Queue, c *queue.Consumer) {
			release := c.TakeTurn()
			_, js := raw(t, q)
			eventually(t, "the advisory", func() bool {
				consumer, err := js.Consumer(t.Context(), queue.StreamAdvisories, "crash-loops")
				return err == nil && consumer.CachedInfo().NumAckPending == 1
			})
			release()
			if got, err := c.Fetch(t.Context(), 10, 0, 0); len(got) > 0 || err != nil {
				t.Errorf("%d messages, %v", len(got), err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
			cfg := queue.ConsumerConfig{AckWait: ackWait, MaxDeliver: 1}
			unused := mustConsumer(t, q, core.ClassRecords, cfg)
			leavePull(t, q, unused)
			mustPublish(t, q, record("S1", "A1"))
			awaitArrived(t, unused)
			drop(t, q, unused)
			c := mustConsumer(t, q, core.ClassRecords, cfg)
			var got []core.Message
			eventually(t, "the request", func() bool {
				var err error
				if got, err = c.Fetch(t.Context(), 10, 0, 100*time.Millisecond); err != nil {
					t.Fatal(err)
				}
				return len(got) > 0
			})
			if len(got) != 1 || got[0].Request().Attempts != 1 {
				t.Fatalf("%d messages, the first %+v", len(got), got[0].Request())
			}
			mustAck(t, got...)
			if n := q.DeadLetters().Count()["song"]; n != 0 {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

// TestNotedBefore: a note of a message that another stream held at the same sequence does not keep a crash loop alive.
func TestNotedBefore(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		mustPublish(t, q, record("S1", "poison"))
		if err := q.NoteWaited(t.Context(), lastSequence(t, q), time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{MaxDeliver: 1, AckWait: 50 * time.Millisecond})
		fetch(t, c) // and never acked
		eventually(t, "the dead letter", func() bool { return q.DeadLetters().Has("song", "S1", "poison") })
	})
}

// leavePull leaves a pull of c open, of a Fetch that was cancelled.
func leavePull(t *testing.T, q *queue.Queue, c *queue.Consumer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Fetch(ctx, 10, 0, 20*time.Second)
		failed <- err
	}()
	awaitPull(t, q)
	cancel()
	wantCode(t, <-failed, core.CodeUnavailable)
}

// awaitArrived waits until a message is here that no Fetch has taken.
func awaitArrived(t *testing.T, c *queue.Consumer) {
	t.Helper()
	eventually(t, "the delivery", func() bool { return c.Arrived() > 0 })
}

// awaitPull waits until the consumer of records has an open pull.
func awaitPull(t *testing.T, q *queue.Queue) {
	t.Helper()
	_, js := raw(t, q)
	eventually(t, "an open pull", func() bool {
		consumer, err := js.Consumer(t.Context(), queue.StreamRequests, "records-"+queue.EncodeToken("song"))
		return err == nil && consumer.CachedInfo().NumWaiting == 1
	})
}

// lastSequence returns the sequence of the last message of the stream of Requests.
func lastSequence(t *testing.T, q *queue.Queue) uint64 {
	t.Helper()
	subject, err := queue.RequestSubject(record("S1", "poison"))
	if err != nil {
		t.Fatal(err)
	}
	_, js := raw(t, q)
	stream, err := js.Stream(t.Context(), queue.StreamRequests)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	return m.Sequence
}
