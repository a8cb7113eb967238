package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"tutti/internal/core"
	"tutti/internal/queue"
)

func TestAnyIDSurvives(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		id := rapid.StringN(1, -1, core.MaxIDBytes).Filter(func(s string) bool {
			return core.ValidKey("id", s) == nil
		})
		rapid.Check(t, func(rt *rapid.T) {
			want := record(id.Draw(rt, "organization"), id.Draw(rt, "id"))
			mustPublish(t, q, want)
			got := fetch(t, c)
			if diff := cmp.Diff(want, got[0].Request()); diff != "" {
				rt.Fatal(diff)
			}
			mustAck(t, got...)
		})
	})
}

func TestLongestSubjects(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		long := strings.Repeat("ü", core.MaxIDBytes/2)
		r := record(long, long)
		r.Repository = long
		c, err := q.Consumer(t.Context(), long, core.ClassRecords, queue.ConsumerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		mustPublish(t, q, r)
		mustAck(t, fetch(t, c)...)
		page := r
		page.Scope, page.RecordID, page.JobID, page.Page = core.ScopePage, "", long, &core.Page{Number: 1 << 40, Limit: 1}
		pages, err := q.Consumer(t.Context(), long, core.ClassPages, queue.ConsumerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		mustPublish(t, q, page)
		mustAck(t, fetch(t, pages)...)
		if err := q.Ready(t.Context()); err != nil {
			t.Fatalf("the connection did not live: %v", err)
		}
	})
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "")
	q := s.connect(t, queue.Config{})
	run := record("S1", "")
	run.Scope, run.JobID = core.ScopeOrganization, strings.Repeat("j", core.MaxIDBytes+1)
	for name, r := range map[string]core.Request{
		"id of 513 bytes":           record("S1", strings.Repeat("x", core.MaxIDBytes+1)),
		"organization of 513 bytes": record(strings.Repeat("x", core.MaxIDBytes+1), "A1"),
		"job id of 513 bytes":       run,
		"no id":                     record("S1", ""),
		"not UTF-8":                 record("S1", "a\xff"),
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, q.Publish(t.Context(), r), core.CodeInvalid) })
	}
}

func TestCoalescing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		conn, _ := raw(t, q)
		reads, err := conn.SubscribeSync("$JS.API.*.MSG.GET.REQUESTS")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			r := record("S1", "A1")
			r.ID = numbered(i)
			mustPublish(t, q, r)
		}
		if err := conn.Flush(); err != nil {
			t.Fatal(err)
		}
		if n, _, err := reads.Pending(); n > 0 || err != nil { // the server has said the sequence of the pending request
			t.Errorf("the pending request was read %d times, %v", n, err)
		}
		got := fetch(t, c)
		if len(got) != 1 || got[0].Request().ID != numbered(99) {
			t.Fatalf("%d messages, the first %+v", len(got), got[0].Request())
		}
		mustAck(t, got...)
		fetchNone(t, c)
	})
}

func TestReplacedInFlight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		older, newer := record("S1", "A1"), record("S1", "A1")
		older.ID, newer.ID = "older", "newer"
		mustPublish(t, q, older)
		inHand := fetch(t, c)
		mustPublish(t, q, newer)
		mustAck(t, inHand...) // Late: it is replaced already.
		got := fetch(t, c)
		if len(got) != 1 || got[0].Request().ID != "newer" || got[0].Deliveries() != 1 {
			t.Fatalf("got %+v", got[0].Request())
		}
		if got[0].Version() <= inHand[0].Version() {
			t.Errorf("version %d is not above %d", got[0].Version(), inHand[0].Version())
		}
		if age := time.Since(time.Unix(0, int64(got[0].Version()))); age < 0 || age > time.Minute {
			t.Errorf("the version is a time %s ago", age)
		}
		mustAck(t, got...)
		fetchNone(t, c)
	})
}

func TestFullStream(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{MaxPending: 3})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		for i := range 3 {
			mustPublish(t, q, record("S1", numbered(i)))
		}
		err := q.Publish(t.Context(), record("S1", "one too many"))
		wantCode(t, err, core.CodeOverloaded)
		if core.RetryAfterOf(err) <= 0 || !core.Retryable(err) {
			t.Errorf("no time to retry after: %v", err)
		}
		var api *jetstream.APIError
		if !errors.As(err, &api) || api.ErrorCode != 10077 {
			t.Errorf("not error 10077: %v", err)
		}
		wantCode(t, q.Publish(t.Context(), record("S1", numbered(1))), core.CodeOverloaded) // the pending one stays
		got := map[string]string{}
		for len(got) < 3 {
			for _, m := range fetch(t, c) {
				got[m.Request().RecordID] = m.Request().ID
				mustAck(t, m)
			}
		}
		want := map[string]string{
			numbered(0): "r-" + numbered(0), numbered(1): "r-" + numbered(1), numbered(2): "r-" + numbered(2),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		mustPublish(t, q, record("S1", "now there is room"))
	})
}

func TestLimitsFollowConfig(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "")
	first := s.connect(t, queue.Config{MaxPending: 1})
	mustPublish(t, first, record("S1", "A1"))
	wantCode(t, first.Publish(t.Context(), record("S1", "A2")), core.CodeOverloaded)
	mustPublish(t, s.connect(t, queue.Config{MaxPending: 2}), record("S1", "A2"))
}

func TestOutboxIDs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		change := record("S1", "A1")
		change.ID, change.Cause = "change-1", core.CauseOutbox
		mustPublish(t, q, change)
		got := fetch(t, c)
		mustAck(t, got...)
		mustPublish(t, q, change)
		fetchNone(t, c)
		change.Attempts = 1 // asked again by tutti itself, not told twice
		mustPublish(t, q, change)
		mustAck(t, fetch(t, c)...)
		rest := record("S1", "A1")
		rest.ID = "same"
		for range 2 {
			mustPublish(t, q, rest)
			mustAck(t, fetch(t, c)...)
		}
	})
}

func TestRepublish(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		r := record("S1", "A1")
		r.Attempts, r.Cause = 5, core.CauseOutbox
		mustPublish(t, q, r)
		for range 2 {
			if err := fetch(t, c)[0].Nak(0); err != nil {
				t.Fatal(err)
			}
		}
		third := fetch(t, c)[0]
		if third.Deliveries() != 3 {
			t.Fatalf("delivery %d", third.Deliveries())
		}
		earliest := time.Now().Add(time.Hour)
		if err := q.Republish(t.Context(), third, third.Request(), time.Hour); err != nil {
			t.Fatal(err)
		}
		latest := time.Now().Add(time.Hour)
		again := fetch(t, c)[0]
		if again.Deliveries() != 1 || again.Request().Attempts != 8 {
			t.Fatalf("delivery %d, attempts %d", again.Deliveries(), again.Request().Attempts)
		}
		if again.Version() != third.Version() {
			t.Errorf("version %d became %d", third.Version(), again.Version())
		}
		if at := again.Request().NotBefore; at.Before(earliest) || at.After(latest) {
			t.Errorf("not before %s, want %s to %s", at, earliest, latest)
		}
		newer := record("S1", "A1")
		newer.ID = "newer"
		mustPublish(t, q, newer)
		if err := q.Republish(t.Context(), again, again.Request(), 0); err != nil {
			t.Fatal(err)
		}
		last := fetch(t, c)
		if len(last) != 1 || last[0].Request().ID != "newer" {
			t.Fatalf("the newer Request was lost to %+v", last[0].Request())
		}
		mustAck(t, last...)
		fetchNone(t, c)
		wantCode(t, q.Republish(t.Context(), nil, core.Request{}, 0), core.CodeInvalid)
	})
}

func TestPublishUnlessRemovalPending(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		offer := func(id string) {
			t.Helper()
			r := record("S1", "A1")
			r.ID = id
			if err := q.PublishUnlessRemovalPending(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		wantNext := func(id string, kind core.Kind) core.Message {
			t.Helper()
			got := fetch(t, c)
			if len(got) != 1 || got[0].Request().ID != id || got[0].Request().Kind != kind {
				t.Fatalf("%d messages, the first %+v, want %s", len(got), got[0].Request(), id)
			}
			return got[0]
		}
		offer("first")
		mustAck(t, wantNext("first", core.KindIndex))
		offer("after the ack")
		mustAck(t, wantNext("after the ack", core.KindIndex))

		remove := record("S1", "A1")
		remove.ID, remove.Kind = "remove", core.KindRemove
		mustPublish(t, q, remove)
		offer("while it waits")
		inHand := wantNext("remove", core.KindRemove)
		offer("while it is in hand")
		fetchNone(t, c)
		mustAck(t, inHand)
		fetchNone(t, c)
		offer("last")
		mustAck(t, wantNext("last", core.KindIndex))

		mustPublish(t, q, record("S1", "A1"))
		older := fetch(t, c)
		offer("newer than the one in hand")
		newer := wantNext("newer than the one in hand", core.KindIndex)
		mustAck(t, older...)
		offer("newest")
		mustAck(t, newer)
		mustAck(t, wantNext("newest", core.KindIndex))
		fetchNone(t, c)
		wantCode(t, q.PublishUnlessRemovalPending(t.Context(), record("S1", "")), core.CodeInvalid)
	})
}

func TestServerDown(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "127.0.0.1:0")
	q := s.connect(t, queue.Config{})
	c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	if err := q.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.stop(t)
	err := q.Publish(t.Context(), record("S1", "A1"))
	wantCode(t, err, core.CodeUnavailable)
	if core.RetryAfterOf(err) <= 0 {
		t.Errorf("no time to retry after: %v", err)
	}
	wantCode(t, q.Ready(t.Context()), core.CodeUnavailable)
	if _, err := c.Fetch(t.Context(), 1, 0, 50*time.Millisecond); core.CodeOf(err) != core.CodeUnavailable {
		t.Fatalf("Fetch gave %v", err)
	}
	got := make(chan []core.Message, 1)
	go func() {
		messages, err := c.Fetch(context.WithoutCancel(t.Context()), 1, 0, 20*time.Second)
		if err != nil {
			t.Error(err)
		}
		got <- messages
	}()
	s.start(t)
	eventually(t, "a publish after the restart", func() bool {
		return q.Publish(t.Context(), record("S1", "A2")) == nil
	})
	messages := <-got
	if len(messages) != 1 || messages[0].Request().RecordID != "A2" {
		t.Fatalf("got %v", messages)
	}
	mustAck(t, messages...)
	eventually(t, "being ready", func() bool { return q.Ready(t.Context()) == nil })
}

// A server that ends amid publishes, which go on until it has started again, loses nothing that it acknowledged.
func TestKilledDuringPublishes(t *testing.T) {
	t.Parallel()
	const before, writers = 500, 8
	s := startServer(t, t.TempDir(), "127.0.0.1:0")
	q := s.connect(t, queue.Config{})
	var next, done atomic.Int64
	var writing sync.WaitGroup
	part, again := make(chan struct{}), make(chan struct{})
	for range writers {
		writing.Go(func() {
			for {
				select {
				case <-again:
					return
				default:
				}
				i := next.Add(1) - 1
				for q.Publish(t.Context(), record("S1", numbered(int(i)))) != nil && t.Context().Err() == nil {
					time.Sleep(10 * time.Millisecond) // As a caller does that is told to come again.
				}
				if done.Add(1) == before {
					close(part)
				}
			}
		})
	}
	<-part
	s.stop(t)
	s.start(t)
	close(again)
	writing.Wait()
	total := int(next.Load())
	c := mustConsumer(t, s.connect(t, queue.Config{}), core.ClassRecords, queue.ConsumerConfig{MaxAckPending: total})
	stored := make(map[string]bool)
	for {
		messages, err := c.Fetch(t.Context(), 500, 0, 500*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			break
		}
		for _, m := range messages {
			stored[m.Request().RecordID] = true
		}
	}
	if len(stored) != total {
		t.Fatalf("%d of %d acknowledged publishes were lost", total-len(stored), total)
	}
}
