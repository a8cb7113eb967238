package queue_test

import (
	"testing"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// TestPendingRecord: a record's own request is found until it is acked, also while it is in flight, and batches are counted.
func TestPendingRecord(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		of := func(organization, id string) core.PendingRecord {
			t.Helper()
			p, err := q.PendingRecord(t.Context(), record("S1", "A1").Repository, organization, id)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		if p := of("S1", "A1"); p.Request != nil || p.Batches != 0 {
			t.Errorf("an empty queue has %+v", p)
		}
		r := record("S1", "A1")
		r.Cause, r.Attempts = core.CauseWebhook, 2
		batch := record("", "")
		batch.Scope, batch.ID, batch.Records = core.ScopeRecords, "batch-1", []core.RecordKey{{Organization: "S1", ID: "A9"}}
		mustPublish(t, q, r, batch)
		got := fetch(t, c)
		if p := of("S1", "A1"); p.Request == nil || p.Request.Cause != core.CauseWebhook || p.Request.Attempts != 2 || p.Request.ReceivedAt.IsZero() || p.Batches != 1 {
			t.Errorf("in flight: %+v", p)
		}
		if p := of("S2", "A1"); p.Request != nil {
			t.Errorf("another organization has %+v", p.Request)
		}
		mustAck(t, got...)
		if p := of("S1", "A1"); p.Request != nil || p.Batches != 1 {
			t.Errorf("after the ack: %+v", p)
		}
	})
}
