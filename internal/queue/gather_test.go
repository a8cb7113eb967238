package queue_test

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// TestGatheredCallerGone: a Request whose caller was told of a failure is not stored later, where it would replace what was
// asked for since.
func TestGatheredCallerGone(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	records := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	batches := mustConsumer(t, q, core.ClassBatches, queue.ConsumerConfig{})
	release := queue.HoldGathered(q)
	ctx, cancel := context.WithCancel(t.Context())
	const gone = 20 // enough to travel together
	told := make(chan error, gone)
	for i := range gone {
		go func() { told <- q.PublishAll(ctx, []core.Request{record("S1", numbered(i))})[0] }()
	}
	eventually(t, "Requests that wait", func() bool { return queue.Gathered(q) == gone })
	cancel()
	for range gone {
		wantCode(t, <-told, core.CodeUnavailable)
	}
	removal := record("S1", numbered(0))
	removal.Kind = core.KindRemove
	mustPublish(t, q, removal)
	release()
	eventually(t, "nothing that waits", func() bool { return queue.Gathered(q) == 0 })
	mustPublish(t, q, record("S1", "last"))
	got := fetch(t, records)
	for len(got) < 2 {
		got = append(got, fetch(t, records)...)
	}
	if len(got) != 2 || got[0].Request().Kind != core.KindRemove {
		t.Errorf("%d messages, the first %+v", len(got), got[0].Request())
	}
	fetchNone(t, batches)
}

// TestGatheredCallerGoneInFlight: a caller that goes while its Request is on its way learns whether it is stored: it would be stored after what the
// caller sends then.
func TestGatheredCallerGoneInFlight(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	nc, js := raw(t, q)
	if err := js.DeleteStream(t.Context(), queue.StreamRequests); err != nil { // and its subjects are the test's
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sub, err := nc.Subscribe("tutti.requests.>", func(m *nats.Msg) {
		cancel()
		time.Sleep(50 * time.Millisecond) // no caller may return before the answer
		_ = m.Respond([]byte(`{"stream":"` + queue.StreamRequests + `","seq":1}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	release := queue.HoldGathered(q)
	const callers = 20 // enough to travel together
	told := make(chan []error, callers)
	for i := range callers {
		go func() { told <- q.PublishAll(ctx, []core.Request{record("S1", numbered(i))}) }()
	}
	eventually(t, "Requests that wait", func() bool { return queue.Gathered(q) == callers })
	release()
	for range callers {
		if errs := <-told; errs != nil {
			t.Errorf("a caller that has gone was told %v of a Request that is stored", errs)
		}
	}
}

// TestGatheredNotStored: the callers of a batch that cannot be stored are told so.
func TestGatheredNotStored(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	release := queue.HoldGathered(q)
	const callers = 20 // enough to travel together
	told := make(chan []error, callers)
	for i := range callers {
		go func() { told <- q.PublishAll(t.Context(), []core.Request{record("S1", numbered(i))}) }()
	}
	eventually(t, "Requests that wait", func() bool { return queue.Gathered(q) == callers })
	q.Settle(queue.ProbeError(syscall.ENOSPC))
	release()
	for range callers {
		errs := <-told
		if errs == nil {
			t.Fatal("a Request counts as stored")
		}
		wantCode(t, errs[0], core.CodeUnavailable)
	}
}

// TestGatheredBound: no more wait than may.
func TestGatheredBound(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	release := queue.HoldGathered(q)
	var wg sync.WaitGroup
	var refused, stored atomic.Int64
	for range queue.MaxGathered + 100 {
		wg.Go(func() {
			errs := q.PublishAll(t.Context(), []core.Request{record("S1", "x")})
			switch {
			case errs == nil:
				stored.Add(1)
			case core.CodeOf(errs[0]) == core.CodeOverloaded:
				refused.Add(1)
			default:
				t.Error(errs[0])
			}
		})
	}
	eventually(t, "those too many", func() bool { return refused.Load() == 100 })
	release()
	wg.Wait()
	if stored.Load() != queue.MaxGathered || refused.Load() != 100 {
		t.Errorf("%d stored, %d refused", stored.Load(), refused.Load())
	}
}

// TestPublishUnlessRemovalPendingAsOf: a Request that was split off neither replaces what is newer nor counts as newer itself.
func TestPublishUnlessRemovalPendingAsOf(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		before := core.Version(time.Now().Add(-time.Minute).UnixNano())
		split := record("S1", "x")
		split.ID, split.AsOf = "split", before
		offer := func() {
			t.Helper()
			if err := q.PublishUnlessRemovalPending(t.Context(), split); err != nil {
				t.Fatal(err)
			}
		}
		offer()
		got := fetch(t, c)
		if len(got) != 1 || got[0].Version() != before {
			t.Fatalf("%d messages, version %d, want %d", len(got), got[0].Version(), before)
		}
		mustAck(t, got...)

		mustPublish(t, q, record("S1", "x"))
		offer()
		if got = fetch(t, c); len(got) != 1 || got[0].Request().ID == "split" {
			t.Fatalf("the newer one was replaced: %+v", got[0].Request())
		}
		mustAck(t, got...)

		older := split
		older.ID, older.AsOf = "older", before-1
		if err := q.PublishUnlessRemovalPending(t.Context(), older); err != nil {
			t.Fatal(err)
		}
		offer()
		if got = fetch(t, c); len(got) != 1 || got[0].Request().ID != "split" {
			t.Fatalf("the older one was not replaced: %+v", got[0].Request())
		}
		mustAck(t, got...)

		asked := record("S1", "x")
		asked.AsOf = before - 1
		mustPublish(t, q, asked)
		sweep := split
		sweep.ID, sweep.Cause, sweep.JobID = "sweep", core.CauseSweep, "job"
		if err := q.PublishUnlessRemovalPending(t.Context(), sweep); err != nil {
			t.Fatal(err)
		}
		if got = fetch(t, c); len(got) != 1 || got[0].Request().Cause != asked.Cause || got[0].Version() != before {
			t.Fatalf("the sweep did not take over what it replaces: %+v", got[0].Request())
		}
	})
}

// TestAsOfTheFuture: a Request is not newer than when it was stored, whatever the clock of its event was.
func TestAsOfTheFuture(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	ahead := record("S1", "x")
	ahead.AsOf = core.Version(time.Now().Add(time.Hour).UnixNano())
	mustPublish(t, q, ahead)
	if got := fetch(t, c); got[0].Version() > core.Version(time.Now().UnixNano()) {
		t.Errorf("version %d is in the future", got[0].Version())
	}
}

// TestMergeWithPendingRemoval: a pending removal is replaced by a Request split off from a newer message, and stands against one of
// an older message and against a sweep.
func TestMergeWithPendingRemoval(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		removal := record("S1", "x")
		removal.Kind = core.KindRemove
		mustPublish(t, q, removal)
		got := fetch(t, c)
		offer := func(cause core.Cause, asOf core.Version) {
			t.Helper()
			r := record("S1", "x")
			r.ID, r.Cause, r.AsOf = "split", cause, asOf
			if err := q.PublishUnlessRemovalPending(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		offer(core.CauseREST, got[0].Version()-1)
		offer(core.CauseSweep, got[0].Version()+1)
		fetchNone(t, c)
		offer(core.CauseREST, got[0].Version()+1)
		mustAck(t, got...)
		if next := fetch(t, c)[0]; next.Request().ID != "split" || next.Version() != got[0].Version()+1 {
			t.Fatalf("%+v of version %d came instead", next.Request(), next.Version())
		}
	})
}

// TestPublishUnlessRemovalPendingDated: a Request of a dated event replaces a newer one to index, whose record may have been fetched already, as of its
// version. A newer removal stands, and so does what is newer than a Request of the event's run.
func TestPublishUnlessRemovalPendingDated(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		dated := record("S1", "x")
		dated.ID, dated.Cause, dated.AsOf = "dated", core.CauseKafka, core.Version(time.Now().Add(-time.Hour).UnixNano())
		ofRun := dated
		ofRun.JobID = "job"
		removal := record("S1", "x")
		removal.Kind = core.KindRemove
		older := removal
		older.AsOf = dated.AsOf - 1
		for name, tt := range map[string]struct {
			pending, offered core.Request
			replaces         bool
		}{
			"index":         {record("S1", "x"), dated, true},
			"of a run":      {record("S1", "x"), ofRun, false},
			"removal":       {removal, dated, false},
			"older removal": {older, dated, true},
		} {
			mustPublish(t, q, tt.pending)
			before := fetch(t, c)[0] // and in flight
			mustPublish(t, q, tt.offered)
			if !tt.replaces {
				fetchNone(t, c)
				mustAck(t, before)
				continue
			}
			mustAck(t, before)
			got := fetch(t, c)[0]
			if want := max(before.Version(), dated.AsOf); got.Request().ID != "dated" || got.Version() != want {
				t.Errorf("%s: %+v of version %d came, want version %d", name, got.Request(), got.Version(), want)
			}
			mustAck(t, got)
		}
		fetchNone(t, c)
	})
}
