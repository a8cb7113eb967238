package queue_test

import (
	"sync"
	"testing"
	"time"

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
		lags, err := q.Pending(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(lags) != 1 || lags[0].InFlight != 1 {
			t.Errorf("one is in flight, and the figures say %+v", lags)
		}
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

// TestReplacedOfAnotherProcess: a process asks for the Request that another one published once, and replaces its own then without asking.
func TestReplacedOfAnotherProcess(t *testing.T) {
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
	if n, _, err := asked.Pending(); err != nil || n != 1 {
		t.Errorf("asked %d times, %v", n, err)
	}
}

// TestReplacedOfAnotherStream: what this process remembers of a stream that was deleted since removes nothing of the new one.
func TestReplacedOfAnotherStream(t *testing.T) {
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
