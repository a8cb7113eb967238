package queue_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// publishers is how many callers publish at once; each has a record of its own.
const publishers = 64

// publishTogether publishes requests at once, and returns their errors.
func publishTogether(ctx context.Context, q *queue.Queue, requests []core.Request) []error {
	errs := make([]error, len(requests))
	var callers sync.WaitGroup
	begin := make(chan struct{})
	for i, r := range requests {
		callers.Go(func() {
			<-begin
			errs[i] = q.Publish(ctx, r)
		})
	}
	close(begin)
	callers.Wait()
	return errs
}

func records(n int) []core.Request {
	all := make([]core.Request, n)
	for i := range all {
		all[i] = record("S1", numbered(i))
	}
	return all
}

// pendingIDs returns the id of the Request on each subject of a record, which must be one, and how many were stored in a batch.
func pendingIDs(t *testing.T, q *queue.Queue) (ids map[string]string, inBatches int) {
	t.Helper()
	_, js := raw(t, q)
	stream, err := js.Stream(t.Context(), queue.StreamRequests)
	if err != nil {
		t.Fatal(err)
	}
	ids = map[string]string{}
	for _, r := range records(publishers) {
		subject, err := queue.RequestSubject(r)
		if err != nil {
			t.Fatal(err)
		}
		m, err := stream.GetLastMsgForSubject(t.Context(), subject)
		if err != nil {
			continue
		}
		if m.Header.Get("Nats-Batch-Id") != "" {
			inBatches++
		}
		p, err := q.PendingRecord(t.Context(), r.Repository, r.Organization, r.RecordID)
		if err != nil || p.Request == nil {
			t.Fatalf("%s: %v", r.RecordID, err)
		}
		ids[r.RecordID] = p.Request.ID
	}
	if n := held(t, js, queue.StreamRequests); n != len(ids) {
		t.Errorf("%d messages of %d records", n, len(ids))
	}
	return ids, inBatches
}

// TestTogether: Requests that many callers publish at once are stored in batches, each in place of the pending one of its record.
func TestTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) { tryTogether(t, s.connect(t, queue.Config{})) })
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		tryTogether(t, onCluster(t, queue.Config{}))
	})
}

func tryTogether(t *testing.T, q *queue.Queue) {
	t.Helper()
	for _, round := range []string{"first", "second", "third"} {
		requests, want := records(publishers), map[string]string{}
		for i := range requests {
			requests[i].ID = round + requests[i].RecordID
			want[requests[i].RecordID] = requests[i].ID
		}
		for i, err := range publishTogether(t.Context(), q, requests) {
			if err != nil {
				t.Errorf("%s: %v", requests[i].RecordID, err)
			}
		}
		got, inBatches := pendingIDs(t, q)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s round (-want +got):\n%s", round, diff)
		}
		if inBatches < publishers/2 {
			t.Errorf("%s round: %d of %d are of a batch", round, inBatches, publishers)
		}
	}
}

// TestTogetherOutbox: changes of the outbox that are sent at once are stored in batches. Those that are sent again are stored once, also after
// they were processed, and one whose record has a newer Request does not replace it. These do not have the others sent one by one.
func TestTogetherOutbox(t *testing.T) {
	changes := func() []core.Request {
		requests := records(publishers)
		for i := range requests {
			requests[i].ID, requests[i].Cause = "change-"+requests[i].RecordID, core.CauseOutbox
		}
		return requests
	}
	send := func(t *testing.T, q *queue.Queue) {
		t.Helper()
		for i, err := range publishTogether(t.Context(), q, changes()) {
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
	}
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		want := map[string]string{}
		for _, r := range changes() {
			want[r.RecordID] = r.ID
		}
		for _, round := range []string{"first", "again"} {
			send(t, q)
			got, inBatches := pendingIDs(t, q)
			if diff := cmp.Diff(want, got); diff != "" || inBatches < publishers/2 {
				t.Errorf("%s: %d of %d are of a batch (-want +got):\n%s", round, inBatches, publishers, diff)
			}
		}
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		for left := publishers; left > 0; {
			messages := fetch(t, c)
			mustAck(t, messages...)
			left -= len(messages)
		}
		send(t, q)
		if ids, _ := pendingIDs(t, q); len(ids) != 0 {
			t.Errorf("%d changes are stored again after they were processed", len(ids))
		}
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		q := onCluster(t, queue.Config{})
		send(t, q)
		send(t, q)
		if ids, inBatches := pendingIDs(t, q); len(ids) != publishers || inBatches < publishers/2 {
			t.Errorf("%d changes are stored, %d of a batch", len(ids), inBatches)
		}
	})
	t.Run("one is processed, of another a newer request is pending", func(t *testing.T) {
		q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
		processed := changes()[publishers/4]
		if err := q.Publish(t.Context(), processed); err != nil {
			t.Fatal(err)
		}
		mustAck(t, fetch(t, mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{}))...)
		newer := records(publishers)[publishers/2]
		newer.ID, newer.Kind, newer.ReceivedAt = "removal", core.KindRemove, newer.ReceivedAt.Add(time.Minute)
		if err := q.Publish(t.Context(), newer); err != nil {
			t.Fatal(err)
		}
		send(t, q)
		got, inBatches := pendingIDs(t, q)
		want := map[string]string{}
		for _, r := range changes() {
			want[r.RecordID] = r.ID
		}
		want[newer.RecordID] = newer.ID
		delete(want, processed.RecordID)
		if diff := cmp.Diff(want, got); diff != "" || inBatches < publishers/4 { // none is, unless a refused batch is sent in halves
			t.Errorf("%d of %d are of a batch (-want +got):\n%s", inBatches, publishers, diff)
		}
	})
}

// TestTogetherOneFails: of Requests that are published at once, one that cannot be stored does not concern the others.
func TestTogetherOneFails(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		requests := records(publishers)
		requests[publishers/2].Document = strings.Repeat("x", 2<<20)
		for i, err := range publishTogether(t.Context(), q, requests) {
			if want := (map[bool]core.Code{true: core.CodeTooLarge})[i == publishers/2]; core.CodeOf(err) != want {
				t.Errorf("%d: %v", i, err)
			}
		}
		if ids, _ := pendingIDs(t, q); len(ids) != publishers-1 {
			t.Errorf("%d requests are stored", len(ids))
		}
	})
	t.Run("full", func(t *testing.T) {
		q := startServer(t, t.TempDir(), "").connect(t, queue.Config{MaxPending: publishers / 2})
		stored := 0
		for i, err := range publishTogether(t.Context(), q, records(publishers)) {
			if err == nil {
				stored++
			} else if core.CodeOf(err) != core.CodeOverloaded {
				t.Errorf("%d: %v", i, err)
			}
		}
		if ids, _ := pendingIDs(t, q); len(ids) != stored || stored != publishers/2 {
			t.Errorf("%d requests are stored, %d callers have no error", len(ids), stored)
		}
	})
}

// TestTogetherCancelled: a Request whose caller has gone before it was sent is not stored.
func TestTogetherCancelled(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "")
	q := s.connect(t, queue.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, err := range publishTogether(ctx, q, records(publishers)) {
		if err == nil {
			t.Errorf("%d is stored", i)
		}
	}
	if ids, _ := pendingIDs(t, q); len(ids) != 0 {
		t.Errorf("%d requests are stored", len(ids))
	}
}

// TestTogetherKilled: what was published together is there after a kill, and all that is there is delivered.
func TestTogetherKilled(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "")
	q := s.connect(t, queue.Config{})
	for range 5 {
		for range 2 {
			for _, err := range publishTogether(t.Context(), q, records(publishers)) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		after := s.killed(t).connect(t, queue.Config{})
		stored := uint64(0)
		for subject, n := range storedBySubject(t, after) {
			if stored += n; n > 2 { // the newer one is stored before the older one is removed
				t.Errorf("%s has %d messages", subject, n)
			}
		}
		c := mustConsumer(t, after, core.ClassRecords, queue.ConsumerConfig{})
		delivered, records := uint64(0), map[string]bool{}
		for delivered < stored {
			messages := fetch(t, c)
			for _, m := range messages {
				records[m.Request().RecordID] = true
			}
			mustAck(t, messages...)
			delivered += uint64(len(messages))
		}
		fetchNone(t, c)
		if len(records) != publishers {
			t.Errorf("%d records are delivered", len(records))
		}
		_, js := raw(t, after)
		if n := held(t, js, queue.StreamRequests); n != 0 {
			t.Errorf("%d messages are left", n)
		}
	}
}

// TestTogetherUnanswered: Requests of a batch that is not answered are sent again, each by itself, and only after the batch: one that is late
// replaces no newer Request.
func TestTogetherUnanswered(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	nc, js := raw(t, q)
	if err := js.DeleteStream(t.Context(), queue.StreamRequests); err != nil { // and its subjects are the test's
		t.Fatal(err)
	}
	var mu sync.Mutex
	again, batched := map[string]bool{}, map[string]bool{}
	sub, err := nc.Subscribe("tutti.requests.>", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case m.Header.Get("Nats-Batch-Id") != "":
			if batched[m.Subject] = true; again[m.Subject] {
				t.Errorf("%s comes in a batch after it was sent once more", m.Subject)
			}
			return
		case m.Header.Get(jetstream.ExpectedLastSubjSeqHeader) == "0":
			again[m.Subject] = true
		}
		_ = m.Respond([]byte(`{"stream":"` + queue.StreamRequests + `","seq":1}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for i, err := range publishTogether(t.Context(), q, records(publishers)) {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	// The queue restores the stream when it notices that it is gone, so that not all of them are sent again.
	if !slices.ContainsFunc(slices.Collect(maps.Keys(batched)), func(subject string) bool { return again[subject] }) {
		t.Errorf("none of %d requests of batches is sent again, %d others are", len(batched), len(again))
	}
}
