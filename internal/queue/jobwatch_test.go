package queue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue"
)

func watched(t *testing.T, q *queue.Queue) core.Job {
	t.Helper()
	job := core.Job{ID: "job-1", Repository: "song", Scope: core.ScopeRepository, State: core.JobRunning}
	if err := q.Jobs().Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		run := core.OrganizationRun{Organization: fmt.Sprintf("S%d", i), State: core.JobRunning, DoneThrough: -1}
		if _, err := q.Jobs().CreateOrganization(t.Context(), job.ID, run); err != nil {
			t.Fatal(err)
		}
	}
	return job
}

// watch runs a watch whose changes arrive on the channel, and returns how to end it.
func watch(t *testing.T, q *queue.Queue, id string) (<-chan core.JobChange, func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	changes, ended := make(chan core.JobChange), make(chan error, 1)
	go func() {
		ended <- q.Jobs().Watch(ctx, id, func(c core.JobChange) error {
			select {
			case changes <- c:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return changes, func() error {
		cancel()
		return <-ended
	}
}

func next(t *testing.T, changes <-chan core.JobChange) core.JobChange {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(20 * time.Second):
		t.Fatal("no change was told")
		return core.JobChange{}
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		job := watched(t, q)
		other := core.Job{ID: "job-10", Repository: "song", State: core.JobRunning}
		if err := q.Jobs().Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		changes, stop := watch(t, q, job.ID)
		first := next(t, changes)
		if first.Job == nil || first.Job.ID != job.ID {
			t.Fatalf("first: %+v", first)
		}
		last := first.Revision
		for i := range 3 {
			c := next(t, changes)
			if c.Run == nil || c.Run.Organization != fmt.Sprintf("S%d", i) || c.Revision <= last {
				t.Fatalf("%d: %+v after %d", i, c, last)
			}
			last = c.Revision
		}
		if c := next(t, changes); c.Job != nil || c.Run != nil || c.Revision != last {
			t.Fatalf("marker: %+v", c)
		}
		if _, err := q.Jobs().UpdateOrganization(t.Context(), job.ID, "S1", func(r *core.OrganizationRun) error {
			r.Totals.Fetched = 7
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		c := next(t, changes)
		if c.Run == nil || c.Run.Organization != "S1" || c.Run.Totals.Fetched != 7 || c.Revision <= last {
			t.Fatalf("change: %+v", c)
		}
		if err := stop(); err == nil {
			t.Error("a watch that was ended gave nil")
		}
	})
}

// TestWatchOverRestart: the server goes and comes back; the watch goes on with what changed since.
func TestWatchOverRestart(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "127.0.0.1:0")
	q := s.connect(t, queue.Config{})
	job := watched(t, q)
	changes, stop := watch(t, q, job.ID)
	var last uint64
	for range 5 {
		last = next(t, changes).Revision
	}
	s.stop(t)
	s.start(t)
	eventually(t, "a change of the job", func() bool {
		_, err := q.Jobs().Update(t.Context(), job.ID, func(j *core.Job) error {
			j.State = core.JobSucceeded
			return nil
		})
		return err == nil
	})
	c := next(t, changes)
	if c.Job == nil || c.Job.State != core.JobSucceeded || c.Revision <= last {
		t.Fatalf("after the restart: %+v", c)
	}
	_ = stop()
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	if err := q.Jobs().Watch(t.Context(), "none", nil); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("unknown job: %v", err)
	}
	job := watched(t, q)
	mine := errors.New("enough")
	if err := q.Jobs().Watch(t.Context(), job.ID, func(core.JobChange) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("got %v, want the caller's error", err)
	}
}

func TestNotedPages(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		note := func(organization string, reading, page int, ids ...uint64) {
			t.Helper()
			if err := q.PageNotes().NotePage(t.Context(), "job", organization, reading, page, ids); err != nil {
				t.Fatal(err)
			}
		}
		want := func(organization string, reading, last, n int) {
			t.Helper()
			got, err := q.PageNotes().NotedIDs(t.Context(), "job", organization, reading, last)
			if err != nil || len(got) != n || !slices.IsSorted(got) {
				t.Errorf("%s, reading %d up to %d: %d, %v, want %d ids", organization, reading, last, got, err, n)
			}
		}
		note("S.1", 0, 0, 1, 2, 3)
		note("S.1", 0, 1, 3, 4)
		note("S.1", 0, 10, 99)
		note("S.1", 1, 0, 5)
		note("S", 0, 0, 6)
		note("S.1", 0, 1, 3, 4, 1<<63)
		want("S.1", 0, 1, 5)
		want("S.1", 0, 10, 6)
		want("S.1", 1, 3, 1)
		want("S", 0, 0, 1)
		want("none", 0, 3, 0)
		before, err := q.PageNotes().IDsOnEarlierPages(t.Context(), "job", "S.1", 0, 10, []uint64{2, 4, 5, 1 << 63, 99})
		if wanted := (map[uint64]struct{}{2: {}, 4: {}, 1 << 63: {}}); err != nil || !maps.Equal(before, wanted) {
			t.Errorf("noted before page 10: %v, %v, want %v", before, err, wanted)
		}
		late := func(organization string, page, epoch int, ids ...string) {
			t.Helper()
			if err := q.PageNotes().NoteRequestedIDs(t.Context(), "job", organization, page, epoch, ids); err != nil {
				t.Fatal(err)
			}
		}
		wantLate := func(organization string, pages map[int]int, ids ...string) {
			t.Helper()
			got, err := q.PageNotes().RequestedIDs(t.Context(), "job", organization, pages)
			if err != nil || !slices.Equal(got, ids) {
				t.Errorf("%s, pages %v: late records %q, %v, want %q", organization, pages, got, err, ids)
			}
		}
		many := make([]string, 2500)
		for i := range many {
			many[i] = fmt.Sprintf("%05d", i)
		}
		late("S.1", 1, 0, "a", "b.*>\n")
		late("S.1", 1, 1, "b.*>\n", "c")
		late("S.1", 10, 0, "d", "a")
		late("S", 2, 0, many...)
		wantLate("S.1", map[int]int{1: 0, 10: 0}, "a", "b.*>\n", "d")
		wantLate("S.1", map[int]int{1: 1}, "b.*>\n", "c")
		wantLate("S", map[int]int{2: 0}, many...)
		want("S.1", 0, 10, 6)
		invalid := func(reading, page int, ids ...uint64) {
			t.Helper()
			if err := q.PageNotes().NoteInvalid(t.Context(), "job", "S.1", reading, page, ids); err != nil {
				t.Fatal(err)
			}
		}
		wantInvalid := func(reading, last int, ids ...uint64) {
			t.Helper()
			got, err := q.PageNotes().NotedInvalid(t.Context(), "job", "S.1", reading, last)
			if err != nil || !slices.Equal(got, ids) {
				t.Errorf("reading %d up to %d: invalid %d, %v, want %d", reading, last, got, err, ids)
			}
		}
		invalid(0, 0, 2, 1)
		invalid(0, 1, 3)
		invalid(0, 10, 1<<63, 2)
		invalid(1, 0, 7)
		wantInvalid(0, 9, 1, 2, 3)
		wantInvalid(0, 10, 1, 2, 3, 1<<63)
		invalid(0, 1) // the page was read again, and shows none
		wantInvalid(0, 10, 1, 2, 1<<63)
		wantInvalid(1, 10, 7)
		want("S.1", 0, 10, 6)
		if err := q.PageNotes().ForgetPages(t.Context(), "job", "S.1"); err != nil {
			t.Fatal(err)
		}
		want("S.1", 0, 10, 0)
		wantInvalid(0, 10)
		wantLate("S.1", map[int]int{1: 0, 10: 0})
		want("S", 0, 0, 1)
	})
}

// TestDeadLettersOfMessages: a message that was not understood is kept once for each source and content.
func TestDeadLettersOfMessages(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	letters := q.DeadLetters()
	for _, m := range []struct{ source, document string }{
		{"webhook", `{"a":1}`}, {"webhook", `{"a":2}`}, {"kafka song-analysis", `{"a":1}`}, {"webhook", `{"a":1}`},
	} {
		kept := core.NewDeadLetterDocument([]byte(m.document))
		l := core.DeadLetter{
			Repository: "song", Reason: core.ReasonNotUnderstood, Source: m.source, Attempts: 1,
			Document: kept.Bytes, SHA256: kept.SHA256, Size: kept.Size,
		}
		if err := letters.Put(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		got, err := letters.Get(t.Context(), letters.DeadLetterID(l))
		if err != nil || got.Source != m.source || string(got.Document) != m.document {
			t.Errorf("%+v: got %+v, %v", m, got, err)
		}
	}
	all, _, err := letters.List(t.Context(), core.DeadLetterFilter{Repository: "song", Limit: 100})
	if err != nil || len(all) != 3 || all[0].Attempts != 2 {
		t.Errorf("%d letters, %v: %+v", len(all), err, all)
	}
	if n := letters.CountReason("song", core.ReasonNotUnderstood); n != 3 {
		t.Errorf("%d letters are counted, want 3", n)
	}
	if n := letters.CountReason("song", core.ReasonRejected) + letters.CountReason("other", core.ReasonNotUnderstood); n != 0 {
		t.Errorf("%d letters of others are counted", n)
	}
	if letters.Has("song", "", "") {
		t.Error("a message's letter counts as a record's")
	}
}
