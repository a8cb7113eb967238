package queue_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/subjects"
)

func TestFetchGivesWhatIsThere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		for i := range 5 {
			mustPublish(t, q, record("S1", numbered(i)))
		}
		for got := 0; got < 5; { // Fetch does not wait for more than there are
			messages, err := c.Fetch(t.Context(), 100, 0, time.Hour)
			if err != nil || len(messages) == 0 {
				t.Fatalf("%d messages, %v", len(messages), err)
			}
			got += len(messages)
			mustAck(t, messages...)
		}

		start := time.Now()
		fetchNone(t, c)
		if d := time.Since(start); d < 100*time.Millisecond {
			t.Errorf("an empty Fetch of 100 ms took %s", d)
		}
		if messages, err := c.Fetch(t.Context(), 100, 0, 0); err != nil || len(messages) != 0 {
			t.Errorf("a Fetch without waiting gave %v, %v", messages, err)
		}
	})
}

func TestFetchWakesAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		const rounds = 50
		fetched := make(chan time.Time)
		failed := make(chan error, 1)
		go func() {
			defer close(fetched)
			for range rounds {
				messages, err := c.Fetch(context.WithoutCancel(t.Context()), 100, 0, 10*time.Second)
				at := time.Now()
				if err == nil && len(messages) == 1 {
					err = messages[0].Ack(context.WithoutCancel(t.Context()))
				}
				if err != nil {
					failed <- err
					return
				}
				fetched <- at
			}
		}()
		var waits []time.Duration
		for i := range rounds {
			mustPublish(t, q, record("S1", numbered(i)))
			published := time.Now()
			at, ok := <-fetched
			if !ok {
				t.Fatal(<-failed)
			}
			waits = append(waits, at.Sub(published))
		}
		slices.Sort(waits)
		t.Logf("after the PubAck: median %s, worst %s", waits[rounds/2], waits[rounds-1])
		if waits[rounds/2] > 100*time.Millisecond {
			t.Errorf("half of the messages came later than %s", waits[rounds/2])
		}
	})
}

func TestFetchBudgets(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		var want []string
		for i := range 20 {
			want = append(want, numbered(i))
			mustPublish(t, q, record("S1", numbered(i)))
		}
		var got []string
		limits := []struct{ messages, bytes int }{{3, 0}, {100, 1200}, {100, 1}, {5, 1 << 20}, {100, 0}}
		for i := 0; len(got) < len(want); i++ { // a Fetch returns as soon as there is one message: the last limits may need several
			limit := limits[min(i, len(limits)-1)]
			messages, err := c.Fetch(t.Context(), limit.messages, limit.bytes, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if len(messages) == 0 || len(messages) > limit.messages ||
				limit.bytes == 1200 && len(messages) > 5 || limit.bytes == 1 && len(messages) != 1 {
				t.Fatalf("Fetch %d with %+v gave %d messages", i, limit, len(messages))
			}
			for _, m := range messages {
				got = append(got, m.Request().RecordID)
			}
			mustAck(t, messages...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v", got)
		}
	})
}

func TestFetchStopsWithContext(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := c.Fetch(ctx, 10, 0, time.Hour)
		wantCode(t, err, core.CodeUnavailable)
		// What the pull left behind brings in is not lost, and shorter waits keep their time.
		fetchNone(t, c)
		mustPublish(t, q, record("S1", "A1"))
		got := fetch(t, c)
		if got[0].Deliveries() != 1 {
			t.Errorf("delivery %d", got[0].Deliveries())
		}
		mustAck(t, got...)
	})
}

func TestCloseGivesBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{AckWait: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Fetch(ctx, 10, 0, 20*time.Second); err == nil {
			t.Fatal("no error from a cancelled context")
		}
		ctx, cancel = context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, err := c.Fetch(ctx, 10, 0, 20*time.Second); err == nil {
			t.Fatal("no error from a context that ended")
		}
		mustPublish(t, q, record("S1", "A1")) // Taken by the open pull.
		lag := func() int {
			lags, err := q.Pending(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return lags[0].InFlight
		}
		eventually(t, "the delivery", func() bool { return lag() == 1 })
		c.Close()
		c.Close()
		_, err := c.Fetch(t.Context(), 1, 0, time.Second)
		wantCode(t, err, core.CodeUnavailable)
		again := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{AckWait: time.Minute})
		mustAck(t, fetch(t, again)...)
	})
}

func TestCloseEndsFetch(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		failed := make(chan error, 1)
		go func() {
			_, err := c.Fetch(context.WithoutCancel(t.Context()), 10, 0, time.Minute)
			failed <- err
		}()
		awaitPull(t, q)
		c.Close()
		wantCode(t, <-failed, core.CodeUnavailable)
	})
}

func TestClassesAreApart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		page := record("S1", "")
		page.Scope, page.JobID, page.Page = core.ScopePage, "job", &core.Page{Limit: 10, Before: []uint64{1 << 63}}
		organization := record("S1", "")
		organization.Scope, organization.JobID = core.ScopeOrganization, "job"
		repository := record("", "")
		repository.Scope, repository.JobID = core.ScopeRepository, "job"
		mustPublish(t, q, record("S1", "A1"), page, organization, repository)
		for class, want := range map[core.Class][]core.Scope{
			core.ClassRecords: {core.ScopeRecord},
			core.ClassPages:   {core.ScopePage},
			core.ClassRuns:    {core.ScopeOrganization, core.ScopeRepository},
		} {
			var got []core.Scope
			c := mustConsumer(t, q, class, queue.ConsumerConfig{})
			for len(got) < len(want) {
				for _, m := range fetch(t, c) {
					got = append(got, m.Request().Scope)
					mustAck(t, m)
				}
			}
			fetchNone(t, c)
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", class, got, want)
			}
		}
		if _, err := q.Consumer(t.Context(), "song", "other", queue.ConsumerConfig{}); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("an unknown class gave %v", err)
		}
		_, err := q.Consumer(t.Context(), "song", core.ClassRuns, queue.ConsumerConfig{MaxAckPending: -1})
		wantCode(t, err, core.CodeInvalid)
	})
}

func TestAckWaitAndInProgress(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{AckWait: 1500 * time.Millisecond})
		mustPublish(t, q, record("S1", "A1"))
		m := fetch(t, c)[0]
		for range 4 {
			messages, err := c.Fetch(t.Context(), 1, 0, 500*time.Millisecond)
			if err != nil || len(messages) != 0 {
				t.Fatalf("delivered again while in progress: %v, %v", messages, err)
			}
			if err := m.InProgress(); err != nil {
				t.Fatal(err)
			}
		}
		again := fetch(t, c)[0]
		if again.Deliveries() != 2 {
			t.Fatalf("delivery %d", again.Deliveries())
		}
		start := time.Now()
		if err := again.Nak(200 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		third := fetch(t, c)[0]
		if time.Since(start) < 150*time.Millisecond || third.Deliveries() != 3 {
			t.Errorf("delivery %d after %s", third.Deliveries(), time.Since(start))
		}
		mustAck(t, third)
	})
}

func TestMaxAckPendingHoldsBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{MaxAckPending: 3})
		for i := range 5 {
			mustPublish(t, q, record("S1", numbered(i)))
		}
		var messages []core.Message
		for len(messages) < 3 {
			messages = append(messages, fetch(t, c)...)
		}
		if len(messages) != 3 {
			t.Fatalf("%d messages", len(messages))
		}
		fetchNone(t, c)
		mustAck(t, messages...)
		if rest := fetch(t, c); len(rest) > 2 {
			t.Fatalf("%d messages", len(rest))
		} else {
			mustAck(t, rest...)
		}
	})
}

func TestTwoProcessesShare(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		first, second := s.connect(t, queue.Config{}), s.connect(t, queue.Config{})
		a := mustConsumer(t, first, core.ClassRecords, queue.ConsumerConfig{})
		b := mustConsumer(t, second, core.ClassRecords, queue.ConsumerConfig{})
		const total = 200
		got := make(chan string, 2*total)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{}, 2)
		for _, c := range []*queue.Consumer{a, b} {
			go func() {
				defer func() { ended <- struct{}{} }()
				for ctx.Err() == nil {
					messages, err := c.Fetch(ctx, 10, 0, time.Second)
					if err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
					for _, m := range messages {
						if err := m.Ack(context.WithoutCancel(ctx)); err != nil {
							t.Error(err)
						}
						got <- m.Request().RecordID
					}
				}
			}()
		}
		for i := range total {
			mustPublish(t, first, record("S1", numbered(i)))
		}
		seen := make(map[string]int)
		for range total {
			seen[<-got]++
		}
		cancel()
		<-ended
		<-ended
		if len(seen) != total || len(got) != 0 {
			t.Fatalf("%d different ids of %d, %d more", len(seen), total, len(got))
		}
	})
}

func TestConsumerIsMadeAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		_, js := raw(t, q)
		mustPublish(t, q, record("S1", "A1"))
		if err := js.DeleteConsumer(t.Context(), queue.StreamRequests, "records-"+subjects.EncodeToken("song")); err != nil {
			t.Fatal(err)
		}
		mustAck(t, fetch(t, c)...)
	})
}

func TestNotUnderstood(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		_, js := raw(t, q)
		subject, err := queue.RequestSubject(record("S1", "bad"))
		if err != nil {
			t.Fatal(err)
		}
		other, err := queue.RequestSubject(record("S1", "other"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(t.Context(), subject, []byte("no request")); err != nil {
			t.Fatal(err)
		}
		foreign := `{"kind":"index","scope":"record","repository":"song","organization":"S1","recordId":"else"}`
		if _, err := js.Publish(t.Context(), other, []byte(foreign)); err != nil {
			t.Fatal(err)
		}
		fetchNone(t, c)
		mustPublish(t, q, record("S1", "good"))
		got := fetch(t, c)
		if len(got) != 1 || got[0].Request().RecordID != "good" {
			t.Fatalf("got %+v", got[0].Request())
		}
		mustAck(t, got...)
		letters, _, err := q.DeadLetters().List(t.Context(), core.DeadLetterFilter{Repository: "song", Reason: core.ReasonNotUnderstood})
		if err != nil || len(letters) != 2 {
			t.Fatalf("letters %+v, %v", letters, err)
		}
		bad := letters[1]
		if bad.Organization != "S1" || bad.RecordID != "bad" || string(bad.Document) != "no request" {
			t.Errorf("letter %+v", bad)
		}
		if n := held(t, js, queue.StreamRequests); n != 0 {
			t.Errorf("the stream holds %d messages", n)
		}
	})
}

func TestCrashLoop(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		cfg := queue.ConsumerConfig{MaxDeliver: 4, AckWait: 50 * time.Millisecond}
		c := mustConsumer(t, q, core.ClassRecords, cfg)
		r := record("S1", "poison")
		r.Attempts = 10
		mustPublish(t, q, r)
		for range 4 {
			one := s.connect(t, queue.Config{}) // as each process that it ends
			fetch(t, mustConsumer(t, one, core.ClassRecords, cfg))
		}
		eventually(t, "the dead letter", func() bool {
			fetchNone(t, c)
			return q.DeadLetters().Has("song", "S1", "poison")
		})
		letters, _, err := q.DeadLetters().List(t.Context(), core.DeadLetterFilter{})
		if err != nil || len(letters) != 1 {
			t.Fatalf("letters %+v, %v", letters, err)
		}
		l := letters[0]
		const hint = "processing started many times and never finished: it may have crashed the process each time"
		if l.Hint != hint || l.Reason != core.ReasonCrashLoop || l.Attempts != 14 || l.Request == nil || l.Request.RecordID != "poison" {
			t.Errorf("letter %+v", l)
		}
		_, js := raw(t, q)
		eventually(t, "an empty stream", func() bool { return held(t, js, queue.StreamRequests) == 0 })
		eventually(t, "nothing in hand", func() bool {
			lags, err := q.Pending(t.Context())
			return err == nil && lags[0].InFlight == 0
		})
		wantNotes(t, q, 0)
	})
}

func TestPendingRecords(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		run := record("S1", "")
		run.Scope, run.JobID = core.ScopeOrganization, "job"
		mustPublish(t, q, record("S1", "a.b"), record("S1", "ü"), record("S2", "c"), run)
		for organization, want := range map[string][]string{"S1": {"a.b", "ü"}, "S2": {"c"}, "": {"a.b", "c", "ü"}, "S3": nil} {
			ids, err := q.PendingRecords(t.Context(), "song", organization)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for id, of := range ids {
				got = append(got, id)
				if (of == "S2") != (id == "c") || of == "" {
					t.Errorf("%s is of %q", id, of)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%q: got %v, want %v", organization, got, want)
			}
		}
		var inHand []core.Message
		for len(inHand) < 3 {
			inHand = append(inHand, fetch(t, c)...)
		}
		if ids, err := q.PendingRecords(t.Context(), "song", ""); err != nil || len(ids) != 3 {
			t.Errorf("in hand: %v, %v", ids, err)
		}
		mustAck(t, inHand...)
		if ids, err := q.PendingRecords(t.Context(), "song", ""); err != nil || len(ids) != 0 {
			t.Errorf("acked: %v, %v", ids, err)
		}
	})
}

// TestMoveUnknownElsewhere: the consumer and the Requests of a repository that another process has in its configuration stay, until that
// process has ended.
func TestMoveUnknownElsewhere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q, other := s.connect(t, queue.Config{}), s.connect(t, queue.Config{})
		elsewhere := record("S1", "A1")
		elsewhere.Repository = strings.Repeat("elsewhere", 40) // its consumer has a hash in its name
		c, err := other.Consumer(t.Context(), elsewhere.Repository, core.ClassRecords, queue.ConsumerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		mustPublish(t, other, elsewhere)
		if moved, err := q.MoveUnknown(t.Context(), []string{"song"}); err != nil || moved != 0 {
			t.Fatalf("moved %d, %v, want 0", moved, err)
		}
		got := fetch(t, c)
		if len(got) != 1 {
			t.Fatalf("the other process has %d messages, want 1", len(got))
		}
		mustAck(t, got...)
		mustPublish(t, other, elsewhere)
		c.Close()
		if moved, err := q.MoveUnknown(t.Context(), []string{"song"}); err != nil || moved != 1 {
			t.Fatalf("moved %d, %v, want 1", moved, err)
		}
	})
}

func TestMoveUnknown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		gone := record("S1", "A1")
		gone.Repository = "gone"
		run := gone
		run.Scope, run.RecordID, run.JobID = core.ScopeOrganization, "", "job"
		mustPublish(t, q, gone, run, record("S1", "stays"))
		mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		old, err := q.Consumer(t.Context(), "gone", core.ClassRecords, queue.ConsumerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		old.Close()
		for _, want := range []int{2, 0} {
			if moved, err := q.MoveUnknown(t.Context(), []string{"song"}); err != nil || moved != want {
				t.Fatalf("moved %d, %v, want %d", moved, err, want)
			}
		}
		letters, _, err := q.DeadLetters().List(t.Context(), core.DeadLetterFilter{Repository: "gone", Reason: core.ReasonUnknownRepository})
		if err != nil || len(letters) != 2 || letters[0].Request == nil {
			t.Fatalf("letters %+v, %v", letters, err)
		}
		if ids, err := q.PendingRecords(t.Context(), "song", ""); err != nil || len(ids) != 1 {
			t.Errorf("the known repository has %v, %v", ids, err)
		}
		defer func() { // with the repository in the configuration each is processed when it is retried
			for _, l := range letters {
				if l.Hint != "the repository is not configured; configure it and retry, or discard" {
					t.Errorf("the hint is %q", l.Hint)
				}
				mustPublish(t, q, *l.Request)
			}
			if moved, err := q.MoveUnknown(t.Context(), []string{"song", "gone"}); err != nil || moved != 0 {
				t.Errorf("moved %d, %v, want 0", moved, err)
			}
			for _, class := range []core.Class{core.ClassRecords, core.ClassRuns} {
				c, err := q.Consumer(t.Context(), "gone", class, queue.ConsumerConfig{})
				if err != nil {
					t.Fatal(err)
				}
				mustAck(t, fetch(t, c)...)
				c.Close()
			}
		}()
		_, js := raw(t, q)
		var names []string
		stream, err := js.Stream(t.Context(), queue.StreamRequests)
		if err != nil {
			t.Fatal(err)
		}
		for name := range stream.ConsumerNames(t.Context()).Name() {
			names = append(names, name)
		}
		if !slices.Equal(names, []string{"records-" + subjects.EncodeToken("song")}) {
			t.Errorf("consumers %v", names)
		}
	})
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "")
	reg := prometheus.NewRegistry()
	q := s.connect(t, queue.Config{Metrics: queue.NewMetrics(reg), MaxPending: 2})
	c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	mustPublish(t, q, record("S1", "A1"))
	if err := fetch(t, c)[0].Nak(0); err != nil {
		t.Fatal(err)
	}
	fetch(t, c)
	mustPublish(t, q, record("S1", "A2"))
	wantCode(t, q.Publish(t.Context(), record("S1", "A3")), core.CodeOverloaded)
	if _, err := q.Pending(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := q.Held(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, l := range []core.DeadLetter{
		{Repository: "song", RecordID: "A1", Reason: core.ReasonRejected},
		{Repository: "song", RecordID: "A1", Reason: core.ReasonRejected, Hint: "of the same failure"},
		{Repository: "from outside", RecordID: "A1", Reason: core.ReasonUnknownRepository},
	} {
		if err := q.DeadLetters().Put(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	want := `
# HELP tutti_consumer_pending_messages Requests pending for a durable consumer, not yet delivered.
# TYPE tutti_consumer_pending_messages gauge
tutti_consumer_pending_messages{consumer="song/records"} 1
# HELP tutti_consumer_redeliveries_total Deliveries of a Request to a durable consumer after the first.
# TYPE tutti_consumer_redeliveries_total counter
tutti_consumer_redeliveries_total{consumer="song/records"} 1
# HELP tutti_dead_letters Stored dead letters, by reason.
# TYPE tutti_dead_letters gauge
tutti_dead_letters{reason="rejected",repository="song"} 1
tutti_dead_letters{reason="unknown_repository",repository="unknown"} 1
# HELP tutti_dead_letters_total Dead letters written, including replacements.
# TYPE tutti_dead_letters_total counter
tutti_dead_letters_total{reason="rejected",repository="song"} 1
tutti_dead_letters_total{reason="unknown_repository",repository="unknown"} 1
# HELP tutti_queue_max_requests Requests that the queue may hold (queue.maxPending); more get 503.
# TYPE tutti_queue_max_requests gauge
tutti_queue_max_requests 2
# HELP tutti_queue_requests Requests that the queue holds, pending or in flight, of all repositories.
# TYPE tutti_queue_requests gauge
tutti_queue_requests 2
# HELP tutti_queue_restarts_total Restarts of the embedded queue's server after storage errors.
# TYPE tutti_queue_restarts_total counter
tutti_queue_restarts_total 0
# HELP tutti_queue_undelivered_total Requests that the queue's server would not have delivered any more, such as after it was killed: published again, removed because of a newer Request, or stored as dead letters.
# TYPE tutti_queue_undelivered_total counter
tutti_queue_undelivered_total 0
# HELP tutti_requests_published_total Requests published to the queue, by result: stored or the error code.
# TYPE tutti_requests_published_total counter
tutti_requests_published_total{result="overloaded"} 1
tutti_requests_published_total{result="stored"} 2
`
	eventually(t, "the metrics", func() bool {
		return testutil.GatherAndCompare(reg, strings.NewReader(want)) == nil
	})
}
