package queue_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// TestForgetsNoOtherInFlight: a Request that replaces one in flight has the server forget no other one in flight: what its process did not acknowledge is
// delivered again, and the pending figures count it until then.
func TestForgetsNoOtherInFlight(t *testing.T) {
	try := func(t *testing.T, q *queue.Queue) {
		t.Helper()
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{AckWait: time.Second})
		first, second := record("S1", "A1"), record("S1", "A2")
		mustPublish(t, q, first, second)
		for n := 0; n < 2; { // and their process ends
			n += len(fetch(t, c))
		}
		mustPublish(t, q, second)
		mustAck(t, fetch(t, c)...)
		eventually(t, "one in flight", func() bool { // a cluster forgets what was removed a moment later
			lags, err := q.Pending(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return len(lags) == 1 && lags[0].InFlight == 1
		})
		again := fetch(t, c)
		if len(again) != 1 || again[0].Request().RecordID != first.RecordID {
			t.Fatalf("%d messages are delivered again, the first %+v", len(again), again[0].Request())
		}
		mustAck(t, again...)
		fetchNone(t, c)
	}
	onBoth(t, func(t *testing.T, s *server) { try(t, s.connect(t, queue.Config{})) })
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		try(t, onCluster(t, queue.Config{}))
	})
}

// TestStormOfTwoProcesses: however many triggers for one record two processes publish, by one caller each or by many, one Request is pending
// in the end, the last of one of them; also after another process has processed one that this process published.
func TestStormOfTwoProcesses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		processes := []*queue.Queue{s.connect(t, queue.Config{}), s.connect(t, queue.Config{})}
		consumer := mustConsumer(t, processes[1], core.ClassRecords, queue.ConsumerConfig{})
		for _, callers := range []int{1, publishers} {
			var storm sync.WaitGroup
			for _, q := range processes {
				for range callers {
					storm.Go(func() {
						for range 5 {
							if err := q.Publish(t.Context(), record("S1", "A1")); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			storm.Wait()
			for subject, n := range storedBySubject(t, processes[0]) {
				if n != 1 {
					t.Errorf("%d callers: %s has %d messages", callers, subject, n)
				}
			}
			messages := fetch(t, consumer)
			mustAck(t, messages...)
			if len(messages) != 1 {
				t.Errorf("%d callers: %d messages were delivered", callers, len(messages))
			}
		}
	})
}

// leaveBehind stores Requests of a record as processes do that end before they remove the replaced ones.
func leaveBehind(t *testing.T, q *queue.Queue, requests ...core.Request) {
	t.Helper()
	_, js := raw(t, q)
	for _, r := range requests {
		subject, err := queue.RequestSubject(r)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(t.Context(), subject, data); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReplacedOfEndedProcesses: what processes left that ended before they removed it is removed with the next Request of its record, by
// whichever way that is published. An older one that is republished, because it cannot be processed now, ends: it would be delivered until it is a dead letter.
func TestReplacedOfEndedProcesses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		mustPublish(t, q, record("S1", "A2"))
		_, js := raw(t, q)
		change := record("S1", "A1")
		change.ID, change.Cause = "change", core.CauseOutbox
		for name, publish := range map[string]func() error{
			"Publish":     func() error { return q.Publish(t.Context(), record("S1", "A1")) },
			"outbox":      func() error { return q.Publish(t.Context(), change) },
			"own request": func() error { return q.PublishUnlessRemovalPending(t.Context(), record("S1", "A1")) },
		} {
			leaveBehind(t, q, record("S1", "A1"), record("S1", "A1"), record("S1", "A1"))
			if err := publish(); err != nil {
				t.Fatal(err)
			}
			if n := held(t, js, queue.StreamRequests); n != 2 {
				t.Errorf("%s: %d messages of 2 records are pending", name, n)
			}
		}

		older, newer := record("S1", "A3"), record("S1", "A3")
		older.ID, newer.ID = "older", "newer"
		leaveBehind(t, q, older, newer)
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		for left := 4; left > 0; {
			for _, m := range fetch(t, c) {
				left--
				if m.Request().ID != older.ID {
					continue
				}
				if err := q.Republish(t.Context(), m, m.Request(), 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		eventually(t, "the end of the older one", func() bool { return held(t, js, queue.StreamRequests) == 3 })
		if p, err := q.PendingRecord(t.Context(), "song", "S1", "A3"); err != nil || p.Request == nil || p.Request.ID != newer.ID {
			t.Errorf("the newer one is not pending: %v", err)
		}
	})
}

// TestReplacedByCancelled: a caller who goes while its Request is on its way leaves no older one for longer than until the next Request of the record.
func TestReplacedByCancelled(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	nc, _ := raw(t, q)
	publish := func(ctx context.Context) {
		for i, err := range publishTogether(ctx, q, records(publishers)) {
			if err != nil && ctx.Err() == nil {
				t.Errorf("%d: %v", i, err)
			}
		}
	}
	publish(t.Context())
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		onItsWay, err := nc.Subscribe("tutti.requests.>", func(m *nats.Msg) {
			if m.Header.Get("Nats-Batch-Commit") != "" {
				cancel()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		publish(ctx)
		cancel()
		if err := onItsWay.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
	}
	publish(t.Context())
	for subject, n := range storedBySubject(t, q) {
		if n != 1 {
			t.Errorf("%s has %d messages", subject, n)
		}
	}
}

// TestReplacedOfAnotherProcess: a process asks for the Request that another one published once, and replaces its own then without asking.
func TestReplacedOfAnotherProcess(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "127.0.0.1:0")
	mustPublish(t, s.connect(t, queue.Config{}), record("S1", "A1"))
	q := s.connect(t, queue.Config{})
	nc, _ := raw(t, q)
	asked, err := nc.SubscribeSync("$JS.API.STREAM.MSG.GET.>")
	if err != nil {
		t.Fatal(err)
	}
	mustPublish(t, q, record("S1", "A1"), record("S1", "A1"), record("S1", "A1"))
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := asked.Pending(); err != nil || n != 2 { // for the last one, and for others before it
		t.Errorf("asked %d times, %v", n, err)
	}
}

// TestReplacedOfAnotherStream: what this process remembers of a stream that was deleted since removes nothing of the new one.
func TestReplacedOfAnotherStream(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "127.0.0.1:0")
	q := s.connect(t, queue.Config{})
	mustPublish(t, q, record("S1", "A1"))
	_, js := raw(t, q)
	if err := js.DeleteStream(t.Context(), queue.StreamRequests); err != nil {
		t.Fatal(err)
	}
	other := s.connect(t, queue.Config{}) // sets up the stream
	mustPublish(t, other, record("S1", "A2"), record("S1", "A3"))
	mustPublish(t, q, record("S1", "A1"), record("S1", "A1"))
	for _, id := range []string{"A1", "A2", "A3"} {
		if p, err := q.PendingRecord(t.Context(), "song", "S1", id); err != nil || p.Request == nil {
			t.Errorf("%s is not pending: %v", id, err)
		}
	}
	if n := held(t, js, queue.StreamRequests); n != 3 {
		t.Errorf("%d messages are pending", n)
	}
}
