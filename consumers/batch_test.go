package consumers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

func (w *world) batchWaits() bool {
	w.broker.mu.Lock()
	defer w.broker.mu.Unlock()
	for _, e := range w.broker.entries {
		if e.class == core.ClassBatches {
			return true
		}
	}
	return false
}

// TestBatch: every record of a batch is indexed or removed as the upstream has it, and the message of the batch is acknowledged.
func TestBatch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 30)
		w.upstream.fill("B", 30)
		w.seed("A", 3) // documents that the upstream does not have
		w.upstream.change("A", func(l []record) []record { l[4].state = "UNPUBLISHED"; return l })
		w.boot(-1)
		var ids []string
		for i := range 30 {
			ids = append(ids, fmt.Sprintf("A-%04d", i), fmt.Sprintf("B-%04d", i))
		}
		w.indexAll(ids...)
		for i := range 3 {
			w.index("A", fmt.Sprintf("A-gone-%d", i))
		}
		w.idle()
		want := w.upstream.model()
		if len(want) != 59 {
			t.Fatalf("%d records are published, want 59", len(want))
		}
		for id := range want {
			if _, there := w.engine.live()[id]; !there {
				t.Errorf("%s is not in the index", id)
			}
		}
		if _, there := w.engine.live()["A-0004"]; there {
			t.Error("A-0004 is in the index, and is not published")
		}
		if own := w.broker.published(core.ScopeRecord); len(own) != 3 {
			t.Errorf("%d records got Requests of their own, want those 3 that were asked for alone", len(own))
		}
	})
}

// TestBatchRetries: a failed record is requeued as a Request for it alone; the other records are not delayed.
func TestBatchRetries(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		failing := true
		w.upstream.onRecord = func(_ context.Context, _, id string) error {
			if id == "A-0007" && failing {
				return unavailable("the repository answered 500")
			}
			return nil
		}
		w.boot(-1)
		var ids []string
		for i := range 20 {
			ids = append(ids, fmt.Sprintf("A-%04d", i))
		}
		w.indexAll(ids...)
		eventually(t, "the others", func() bool { return len(w.engine.live()) == 19 && !w.batchWaits() })
		own := w.broker.published(core.ScopeRecord)
		if len(own) == 0 || own[0].RecordID != "A-0007" || own[0].Attempts != 1 {
			t.Fatalf("Requests of their own: %+v", own)
		}
		failing = false
		w.idle()
		w.verify()
	})
}

// TestRedeliveredBatch: a batch that is redelivered after a crash is split into Requests for single records, so that deliveries are
// counted per record.
func TestRedeliveredBatch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.broker.ackWait = 3 * time.Second
		w.upstream.fill("A", 20)
		w.upstream.latency = time.Millisecond
		var live *process
		deaths := 0
		w.upstream.onRecord = func(_ context.Context, _, id string) error {
			if id == "A-0007" && deaths < 2 {
				deaths++
				live.crash()
			}
			return nil
		}
		var ids []string
		for i := range 20 {
			ids = append(ids, fmt.Sprintf("A-%04d", i))
		}
		w.indexAll(ids...)
		for range 2 {
			live = w.make(-1)
			live.c.Start()
			<-live.gone
			_ = live.stop(t, 0)
		}
		if w.batchWaits() {
			t.Error("the batch is still there")
		}
		if own := w.broker.published(core.ScopeRecord); len(own) != 20 {
			t.Errorf("%d records got Requests of their own, want 20", len(own))
		}
		w.boot(-1)
		w.idle()
		w.verify()
	})
}

// TestBatchStop: a process that stops requeues the batch, and the next one processes the rest of it.
func TestBatchStop(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 40)
		began := make(chan struct{}, 100)
		w.upstream.onRecord = func(ctx context.Context, _, _ string) error {
			began <- struct{}{}
			<-ctx.Done()
			return unavailable("the call was given up")
		}
		first := w.boot(-1)
		var ids []string
		for i := range 40 {
			ids = append(ids, fmt.Sprintf("A-%04d", i))
		}
		w.indexAll(ids...)
		<-began
		_ = first.stop(t, time.Second)
		if !w.batchWaits() {
			t.Fatal("the batch is gone")
		}
		w.upstream.onRecord = nil
		w.boot(-1)
		w.idle()
		w.verify()
	})
}

// TestBatchSuperseded: if several batches in flight contain the same record, the latest fetch wins.
func TestBatchSuperseded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 3)
		release := make(chan struct{})
		var calls atomic.Int64
		w.upstream.onRecord = func(context.Context, string, string) error {
			if calls.Add(1) == 1 {
				<-release
			}
			return nil
		}
		w.boot(-1)
		w.indexAll("A-0001")
		eventually(t, "a call", func() bool { return calls.Load() == 1 })
		for rev := range 3 {
			w.upstream.change("A", func(l []record) []record { l[1].rev = 10 + rev; return l })
			w.indexAll("A-0001", "A-0002")
		}
		time.Sleep(time.Second)
		close(release)
		w.idle()
		if w.batchWaits() {
			t.Error("a batch is still there")
		}
		got, want := w.engine.live()["A-0001"], w.upstream.model()["A-0001"]
		if got != want {
			t.Errorf("the index holds %s, want %s", got, want)
		}
		if n := calls.Load(); n > 6 {
			t.Errorf("%d fetches: those that waited were not made one", n)
		}
	})
}

// TestRemovalAfterBatch: a removal that was requested after a batch, and done, is not undone by a record of the batch that
// is retried later.
func TestRemovalAfterBatch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		for _, r := range w.upstream.lists["A"] {
			w.engine.put(r.id, 1, r.document())
		}
		var failed atomic.Bool
		called, release := make(chan struct{}), make(chan struct{})
		w.upstream.onRecord = func(_ context.Context, _, id string) error {
			if id == "A-0007" && failed.CompareAndSwap(false, true) {
				close(called)
				<-release
				return unavailable("the repository answered 500")
			}
			return nil
		}
		w.boot(-1)
		w.indexAll(idsOf("A", 20)...)
		<-called
		w.boot(-1) // does the removal while the first process waits, unless that one has it too
		w.remove("A", "A-0007")
		time.Sleep(2 * time.Second)
		close(release)
		w.idle()
		if _, there := w.engine.live()["A-0007"]; there {
			t.Error("A-0007 is back")
		}
	})
}

// TestRemovalBeforeRedeliveredBatch: as TestRemovalAfterBatch, but the batch is redelivered after its process has stopped.
func TestRemovalBeforeRedeliveredBatch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.broker.ackWait = 3 * time.Second
		w.upstream.fill("A", 20)
		var free atomic.Bool
		w.upstream.onRecord = func(ctx context.Context, _, id string) error {
			if id == "A-0019" && !free.Load() {
				<-ctx.Done()
				return unavailable("the call was given up")
			}
			return nil
		}
		first := w.boot(-1)
		w.indexAll(idsOf("A", 20)...)
		eventually(t, "the others", func() bool { return len(w.engine.live()) == 19 })
		w.remove("A", "A-0007")
		eventually(t, "the removal", func() bool { return !w.engine.has("A-0007") })
		_ = first.stop(t, time.Second)
		free.Store(true)
		w.boot(-1)
		w.idle()
		if docs := w.engine.live(); len(docs) != 19 || docs["A-0007"] != "" {
			t.Errorf("%d documents, A-0007: %q", len(docs), docs["A-0007"])
		}
	})
}

// TestBatchOnAFullQueue: a record that needs a message of its own, which the queue does not take, blocks neither the process
// nor the batch.
func TestBatchOnAFullQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		var full atomic.Bool
		full.Store(true)
		w.onPublish = func(core.Request) error {
			if full.Load() {
				return core.NewError(core.CodeOverloaded, "the queue is full")
			}
			return nil
		}
		w.upstream.onRecord = func(_ context.Context, _, id string) error {
			if id == "A-0007" && full.Load() {
				return unavailable("the repository answered 500")
			}
			return nil
		}
		p := w.boot(-1)
		w.indexAll(idsOf("A", 20)...)
		eventually(t, "the others", func() bool { return len(w.engine.live()) == 19 })
		eventually(t, "nothing in hand", func() bool { return p.c.InFlight() == 0 })
		full.Store(false)
		w.idle()
		w.verify()
	})
}

// idsOf returns the ids of the first n records of an organization.
func idsOf(org string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%04d", org, i)
	}
	return ids
}
