package queue_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"tutti/internal/base/span"
	"tutti/internal/core"
	"tutti/internal/queue"
)

func notified(n int) []core.Request {
	rs := make([]core.Request, n)
	for i := range rs {
		rs[i] = record("S1", numbered(i))
		rs[i].Cause = core.CauseKafka
	}
	return rs
}

// keysOf returns the records of batches, sorted.
func keysOf(messages []core.Message) []string {
	var ids []string
	for _, m := range messages {
		for _, k := range m.Request().Records {
			ids = append(ids, k.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func TestPublishAllTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		batches := mustConsumer(t, q, core.ClassBatches, queue.ConsumerConfig{})
		records := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		mustConsumer(t, q, core.ClassPages, queue.ConsumerConfig{})
		rs := notified(300)
		removal := record("S1", "gone")
		removal.Kind = core.KindRemove
		run := record("S1", "")
		run.Scope, run.JobID = core.ScopeOrganization, "job"
		rs = append(rs, removal, run)
		if errs := q.PublishAll(t.Context(), rs); errs != nil {
			t.Fatal(errs)
		}
		if idle, err := q.Idle(t.Context(), "song"); err != nil || idle {
			t.Errorf("idle %v, %v", idle, err)
		}
		var messages []core.Message
		for len(keysOf(messages)) < 300 {
			messages = append(messages, fetch(t, batches)...)
		}
		if len(messages) != 3 {
			t.Errorf("%d messages, want 3", len(messages))
		}
		want := make([]string, 300)
		for i := range want {
			want[i] = numbered(i)
		}
		if diff := cmp.Diff(want, keysOf(messages)); diff != "" {
			t.Error(diff)
		}
		first := messages[0].Request()
		if first.Cause != core.CauseKafka || first.Kind != core.KindIndex || first.Repository != "song" {
			t.Errorf("batch %+v", first)
		}
		alone := fetch(t, records)
		if len(alone) != 1 || alone[0].Request().Kind != core.KindRemove {
			t.Errorf("alone: %+v", alone)
		}
		mustAck(t, append(messages, alone...)...)
		if idle, err := q.Idle(t.Context(), "song"); err != nil || !idle {
			t.Errorf("after all: idle %v, %v", idle, err)
		}
	})
}

// TestPublishAllFew: few Requests travel by themselves, so that they replace older ones.
// TestPublishAllOfTraces: each record of a batch keeps the trace that requested it, and a Request without one gets that of the context.
func TestPublishAllOfTraces(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	batches := mustConsumer(t, q, core.ClassBatches, queue.ConsumerConfig{})
	records := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	parent := func(n int) string { return fmt.Sprintf("00-4bf92f3577b34da6a3ce929d0e0e4736-%016x-01", n) }
	// publish publishes n Requests, the first few with traces of their own, within a trace or none, and returns the traces by record.
	publish := func(ctx context.Context, n, own int) map[string]string {
		rs := notified(n)
		for i := range own {
			rs[i].Traceparent = parent(i + 1)
		}
		if errs := q.PublishAll(ctx, rs); errs != nil {
			t.Fatal(errs)
		}
		source := batches
		if n == 1 {
			source = records
		}
		got := map[string]string{}
		for _, m := range fetch(t, source) {
			for _, k := range m.Request().Records {
				r := m.Request().ForRecord(k)
				got[r.RecordID] = r.Traceparent
			}
			if id := m.Request().RecordID; id != "" {
				got[id] = m.Request().Traceparent
			}
			mustAck(t, m)
		}
		if n > 1 && own == 0 && len(got) != n || n > 1 && rs[n-1].Traceparent != "" {
			t.Errorf("%d of %d records, or the caller's Requests were changed", len(got), n)
		}
		return got
	}
	ctx, s := span.NewTracer(sdk.NewTracerProvider()).Consume(t.Context(), "x", "")
	defer s.End(nil)
	own := span.Traceparent(ctx)
	for name, got := range map[string]map[string]string{"a batch": publish(ctx, 20, 0), "one": publish(ctx, 1, 0)} {
		for id, trace := range got {
			if trace != own || own == "" {
				t.Errorf("%s: %s has %q, want %q", name, id, trace, own)
			}
		}
	}
	for name, within := range map[string]context.Context{"": t.Context(), own: ctx} {
		got := publish(within, 20, 2)
		want := map[string]string{}
		for i := range 20 {
			want[numbered(i)] = name
		}
		want[numbered(0)], want[numbered(1)] = parent(1), parent(2)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPublishAllFew(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	mustConsumer(t, q, core.ClassBatches, queue.ConsumerConfig{})
	records := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	for range 5 {
		if errs := q.PublishAll(t.Context(), notified(3)); errs != nil {
			t.Fatal(errs)
		}
	}
	fetchAll(t, records, 3)
	fetchNone(t, records)
	if errs := q.PublishAll(t.Context(), nil); errs != nil {
		t.Fatal(errs)
	}
}

// TestPublishAllBacklog: when many batches wait, records travel by themselves again, and a full queue refuses them.
func TestPublishAllBacklog(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{MaxPending: 200})
	batches := mustConsumer(t, q, core.ClassBatches, queue.ConsumerConfig{})
	records := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	rs := notified(1000)
	errs := q.PublishAll(t.Context(), rs)
	stored, refused := 0, 0
	for _, err := range errs {
		switch core.CodeOf(err) {
		case "":
			stored++
		case core.CodeOverloaded:
			refused++
		default:
			t.Fatal(err)
		}
	}
	if len(errs) != 1000 || stored == 0 || refused == 0 {
		t.Fatalf("%d stored, %d refused", stored, refused)
	}
	if full, pending, limit, err := q.Room(t.Context()); !full || pending != 2 || limit != 2 || err != nil {
		t.Errorf("half full %v, %d of %d batches are pending, %v", full, pending, limit, err)
	}
	together := fetchAll(t, batches, 2)
	fetchNone(t, batches)
	if waiting := len(fetch(t, records)); len(keysOf(together))+198 != stored || waiting == 0 {
		t.Errorf("%d stored, %d of them in batches", stored, len(keysOf(together)))
	}
}

// TestPublishAllGathers: single Requests of many callers at once travel together, and each caller learns of its own.
func TestPublishAllGathers(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	batches := mustConsumer(t, q, core.ClassBatches, queue.ConsumerConfig{})
	records := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	rs := notified(400)
	rs[100] = rs[99] // twice the same
	rs[200].RecordID = ""
	errs := make([]error, len(rs))
	var wg sync.WaitGroup
	for i, r := range rs {
		wg.Go(func() {
			if e := q.PublishAll(t.Context(), []core.Request{r}); e != nil {
				errs[i] = e[0]
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if want := map[bool]core.Code{true: core.CodeInvalid}[i == 200]; core.CodeOf(err) != want {
			t.Errorf("%d: %v", i, err)
		}
	}
	got := map[string]bool{}
	together := fetch(t, batches)
	for more := together; len(more) > 0; together = append(together, more...) {
		var err error
		if more, err = batches.Fetch(t.Context(), 100, 0, 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range together {
		for _, k := range m.Request().Records {
			got[k.ID] = true
		}
	}
	for len(got) < 398 {
		more, err := records.Fetch(t.Context(), 1000, 0, time.Second)
		if err != nil || len(more) == 0 {
			break
		}
		for _, m := range more {
			got[m.Request().RecordID] = true
		}
	}
	if len(got) != 398 || len(together) == 0 {
		t.Errorf("%d records arrived, %d batches", len(got), len(together))
	}
	t.Logf("%d batches", len(together))
}

// TestPublishAllBad: a Request that is not valid is refused by itself.
func TestPublishAllBad(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	batches := mustConsumer(t, q, core.ClassBatches, queue.ConsumerConfig{})
	rs := notified(20)
	rs[7].RecordID = ""
	errs := q.PublishAll(t.Context(), rs)
	for i, err := range errs {
		if want := map[bool]core.Code{true: core.CodeInvalid}[i == 7]; core.CodeOf(err) != want {
			t.Errorf("%d: %v", i, err)
		}
	}
	if got := keysOf(fetch(t, batches)); len(got) != 19 {
		t.Errorf("%d records, want 19", len(got))
	}
}

// TestBuriedBatch: a batch that cannot be processed becomes one dead letter per record.
func TestBuriedBatch(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "")
	q := s.connect(t, queue.Config{})
	batches := mustConsumer(t, q, core.ClassBatches, queue.ConsumerConfig{})
	if errs := q.PublishAll(t.Context(), notified(20)); errs != nil {
		t.Fatal(errs)
	}
	batches.Close()
	moved, err := q.MoveUnknown(t.Context(), []string{"other"})
	if err != nil || moved != 1 {
		t.Fatalf("moved %d, %v", moved, err)
	}
	letters, _, err := q.DeadLetters().List(t.Context(), core.DeadLetterFilter{Repository: "song", Reason: core.ReasonUnknownRepository, Limit: 100})
	if err != nil || len(letters) != 20 {
		t.Fatalf("%d letters, %v", len(letters), err)
	}
	for _, l := range letters {
		if l.RecordID == "" || l.Request == nil || l.Request.Scope != core.ScopeRecord || l.Request.RecordID != l.RecordID {
			t.Errorf("letter %+v", l)
		}
	}
}
