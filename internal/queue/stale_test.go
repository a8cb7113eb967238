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
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := c.Fetch(ctx, 10, 0, 20*time.Second)
			failed <- err
		}()
		awaitPull(t, q)
		cancel()
		wantCode(t, <-failed, core.CodeUnavailable)
		mustPublish(t, q, record("S1", "A1")) // delivered to the pull that is still open
		<-time.After(ackWait)
		got := fetch(t, c)
		if len(got) != 1 || got[0].Deliveries() != 2 {
			t.Fatalf("%d messages, the first of delivery %d", len(got), got[0].Deliveries())
		}
		mustAck(t, got...)
		fetchNone(t, c)
	})
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
