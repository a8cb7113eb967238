package queue_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/subjects"
)

// TestFetchLeavesStaleDeliveries: what came for a Fetch that had ended, and was not taken before its ack wait, is delivered
// again by the server; the older delivery is not handed out beside it.
func TestFetchLeavesStaleDeliveries(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		const ackWait = 200 * time.Millisecond
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{AckWait: ackWait})
		leavePull(t, c)
		mustPublish(t, q, record("S1", "A1"))
		<-time.After(ackWait)
		got := fetch(t, c)
		if len(got) != 1 || got[0].Deliveries() != 2 {
			t.Fatalf("%d messages, the first of delivery %d", len(got), got[0].Deliveries())
		}
		mustAck(t, got...)
		fetchNone(t, c)
	})
}

// TestFetchLeavesAllStaleDeliveries: what did not fit into one batch is as old as what did.
func TestFetchLeavesAllStaleDeliveries(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{AckWait: time.Minute})
		mustPublish(t, q, record("S1", "A1"), record("S1", "A2"))
		leavePull(t, c)
		awaitArrived(t, c, 2)
		c.IdleFor(time.Minute)
		for range 2 {
			if got, err := c.Fetch(t.Context(), 10, 1, 0); err != nil || len(got) > 0 {
				t.Fatalf("%d messages, the first %+v, %v", len(got), got[0].Request(), err)
			}
			if c.Arrived() == 0 { // the first round
				mustPublish(t, q, record("S1", "A3"))
				leavePull(t, c)
				awaitArrived(t, c, 1)
			}
		}
		got := fetch(t, c)
		if len(got) != 1 || got[0].Request().RecordID != "A3" {
			t.Fatalf("%d messages, the first %+v", len(got), got[0].Request())
		}
	})
}

// TestCloseLeavesStaleDeliveries: the server takes a Nak of a delivery for one of the newer delivery, so none is sent for those
// that lay.
func TestCloseLeavesStaleDeliveries(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]int{0: 1, time.Minute: 0} {
		onBoth(t, func(t *testing.T, s *server) {
			q := s.connect(t, queue.Config{})
			c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{AckWait: time.Minute})
			leavePull(t, c)
			mustPublish(t, q, record("S1", "A1"))
			awaitArrived(t, c, 1)
			words, err := q.Conn().SubscribeSync("$JS.ACK.REQUESTS.>")
			if err != nil {
				t.Fatal(err)
			}
			c.IdleFor(age)
			c.Close()
			if err := q.Conn().Flush(); err != nil {
				t.Fatal(err)
			}
			if n, _, err := words.Pending(); err != nil || n != want {
				t.Errorf("%d words on a message that lay for %s, %v", n, age, err)
			}
		})
	}
}

// TestFetchBuffered: the ack wait of a message that lay, and that is handed out, begins anew.
func TestFetchBuffered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{AckWait: time.Minute})
		leavePull(t, c)
		mustPublish(t, q, record("S1", "A1"))
		awaitArrived(t, c, 1)
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

// TestWaitingIsNoCrashLoop: deliveries that nothing has worked on, or whose work ended in any way, are not counted as those of a
// message that ends the process.
func TestWaitingIsNoCrashLoop(t *testing.T) {
	const maxDeliver, rounds = 1, 4
	for name, deliver := range map[string]func(t *testing.T, q *queue.Queue, c *queue.Consumer){
		"left to the ack wait": func(t *testing.T, q *queue.Queue, c *queue.Consumer) {
			leavePull(t, c)
			awaitArrived(t, c, 1)
			c.IdleFor(time.Minute)
			if got, err := c.Fetch(t.Context(), 10, 0, 0); len(got) > 0 || err != nil {
				t.Errorf("%d messages, %v", len(got), err)
			}
		},
		"worked on for longer than the ack wait": func(t *testing.T, _ *queue.Queue, c *queue.Consumer) { fetch(t, c) },
		"closed": func(t *testing.T, q *queue.Queue, c *queue.Consumer) {
			leavePull(t, c)
			awaitArrived(t, c, 1)
			c.Close()
		},
		"given back": func(t *testing.T, q *queue.Queue, c *queue.Consumer) {
			got := fetch(t, c)
			wantNotes(t, q, 1)
			if err := got[0].Nak(0); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
			cfg := queue.ConsumerConfig{AckWait: 200 * time.Millisecond, MaxDeliver: maxDeliver}
			mustPublish(t, q, record("S1", "A1"))
			for range rounds {
				c := mustConsumer(t, q, core.ClassRecords, cfg)
				deliver(t, q, c)
				c.Close()
			}
			got := fetch(t, mustConsumer(t, q, core.ClassRecords, cfg))
			if len(got) != 1 || got[0].Deliveries() != rounds+1 {
				t.Fatalf("%d messages, the first of delivery %d", len(got), got[0].Deliveries())
			}
			mustAck(t, got...)
			wantNotes(t, q, 0)
			if n := q.DeadLetters().Count()["song"]; n != 0 {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

// TestReplacedIsNoCrashLoop: a message that was handed out too often, and replaced since by a newer Request, is no dead letter.
func TestReplacedIsNoCrashLoop(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		mustPublish(t, q, record("S1", "A1"))
		if err := q.NoteHandOut(t.Context(), lastSequence(t, q), storedAt(t, q), 1); err != nil {
			t.Fatal(err)
		}
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{MaxDeliver: 1})
		leavePull(t, c)
		awaitArrived(t, c, 1)
		mustPublish(t, q, record("S1", "A1"))
		mustAck(t, fetch(t, c)...)
		if n := q.DeadLetters().Count()["song"]; n != 0 {
			t.Errorf("%d dead letters", n)
		}
		wantNotes(t, q, 0)
	})
}

// TestGivenUpByAnOlderVersion: a message that the server has given up, because the consumer of an older version bounded its
// deliveries, is delivered again.
func TestGivenUpByAnOlderVersion(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{}).Close()
		_, js := raw(t, q)
		stream, err := js.Stream(t.Context(), queue.StreamRequests)
		if err != nil {
			t.Fatal(err)
		}
		old, err := stream.Consumer(t.Context(), "records-"+subjects.EncodeToken("song"))
		if err != nil {
			t.Fatal(err)
		}
		cfg := old.CachedInfo().Config
		cfg.MaxDeliver, cfg.AckWait = 1, 50*time.Millisecond
		if old, err = stream.UpdateConsumer(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		mustPublish(t, q, record("S1", "A1"))
		delivered := 0
		eventually(t, "the end of its deliveries", func() bool {
			batch, err := old.Fetch(1, jetstream.FetchMaxWait(100*time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			for range batch.Messages() {
				delivered++
			}
			info, err := old.Info(t.Context())
			return err == nil && delivered == 1 && info.NumAckPending == 0
		})
		mustAck(t, fetch(t, mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{}))...)
	})
}

// TestRepublishForgets: a message that is published again leaves no note of its deliveries.
func TestRepublishForgets(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{MaxDeliver: 1})
		mustPublish(t, q, record("S1", "A1"))
		m := fetch(t, c)[0]
		wantNotes(t, q, 1)
		if err := q.Republish(t.Context(), m, m.Request(), 0); err != nil {
			t.Fatal(err)
		}
		wantNotes(t, q, 0)
	})
}

// TestNoteOfAnotherMessage: a note of a message that another stream held at the same sequence is not of this one.
func TestNoteOfAnotherMessage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		mustPublish(t, q, record("S1", "A1"))
		if err := q.NoteHandOut(t.Context(), lastSequence(t, q), time.Now().Add(-time.Hour), 100); err != nil {
			t.Fatal(err)
		}
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{MaxDeliver: 1})
		mustAck(t, fetch(t, c)...)
	})
}

// wantNotes checks how many messages are noted as handed out.
func wantNotes(t *testing.T, q *queue.Queue, want int) {
	t.Helper()
	if n, err := q.Notes(t.Context()); err != nil || n != want {
		t.Errorf("%d notes, want %d, %v", n, want, err)
	}
}

// leavePull leaves a pull of c open, as a Fetch that was cancelled does.
func leavePull(t *testing.T, c *queue.Consumer) {
	t.Helper()
	if err := c.Ask(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
}

// awaitArrived waits until n messages are here that no Fetch has taken.
func awaitArrived(t *testing.T, c *queue.Consumer, n int) {
	t.Helper()
	eventually(t, "the delivery", func() bool { return c.Arrived() >= n })
}

// awaitPull waits until the consumer of records has an open pull.
func awaitPull(t *testing.T, q *queue.Queue) {
	t.Helper()
	_, js := raw(t, q)
	eventually(t, "an open pull", func() bool {
		consumer, err := js.Consumer(t.Context(), queue.StreamRequests, "records-"+subjects.EncodeToken("song"))
		return err == nil && consumer.CachedInfo().NumWaiting == 1
	})
}

// lastSequence returns the sequence of the Request of A1, storedAt when it was stored.
func lastSequence(t *testing.T, q *queue.Queue) uint64 { return stored(t, q).Sequence }

func storedAt(t *testing.T, q *queue.Queue) time.Time { return stored(t, q).Time }

func stored(t *testing.T, q *queue.Queue) *jetstream.RawStreamMsg {
	t.Helper()
	subject, err := queue.RequestSubject(record("S1", "A1"))
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
	return m
}
