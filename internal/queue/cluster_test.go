package queue_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/queuetest"
)

// TestClusterNodeKilled: of three servers, the one that leads the Requests ends amid publishes. What was acknowledged is
// delivered, once the others have elected a leader and also when the server is back.
func TestClusterNodeKilled(t *testing.T) {
	t.Parallel()
	const total, writers = 2000, 8
	own, err := queuetest.StartCluster(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Stop)
	q := (&server{url: own.Account()}).connect(t, queue.Config{Replicas: 3})
	c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{MaxAckPending: total})
	var next, done atomic.Int64
	var writing sync.WaitGroup
	part := make(chan struct{})
	for range writers {
		writing.Go(func() {
			for i := next.Add(1) - 1; i < total; i = next.Add(1) - 1 {
				for q.Publish(t.Context(), record("S1", numbered(int(i)))) != nil && t.Context().Err() == nil {
					time.Sleep(10 * time.Millisecond) // As a caller does that is told to come again.
				}
				if done.Add(1) == total/4 {
					close(part)
				}
			}
		})
	}
	<-part
	_, js := raw(t, q)
	stream, err := js.Stream(t.Context(), queue.StreamRequests)
	if err != nil {
		t.Fatal(err)
	}
	own.Kill(stream.CachedInfo().Cluster.Leader)
	writing.Wait()
	if err := own.Restart(); err != nil {
		t.Fatal(err)
	}
	stored := make(map[string]bool)
	eventually(t, "every acknowledged Request", func() bool {
		messages, err := c.Fetch(t.Context(), 500, 0, time.Second)
		if err != nil {
			return false
		}
		for _, m := range messages {
			if m.Ack(t.Context()) == nil {
				stored[m.Request().RecordID] = true
			}
		}
		return len(stored) == total
	})
}
