package queue_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/jobs"
)

// run returns a page, organization or repository Request.
func run(scope core.Scope, repository, job string) core.Request {
	r := record("S1", "")
	r.Scope, r.Repository, r.JobID = scope, repository, job
	switch scope {
	case core.ScopePage:
		r.Page = &core.Page{Limit: 10}
	case core.ScopeRepository, core.ScopeIDs:
		r.Organization = ""
	case core.ScopeRecord, core.ScopeRecords, core.ScopeOrganization, core.ScopeRetry:
	}
	return r
}

// TestJobIDs: a job has an id while a Request of it is pending, and keeps its organizations as long.
func TestJobIDs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		check := func(want ...string) {
			t.Helper()
			ids, err := q.JobIDs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(ids)); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
		check()
		single := record("S1", "A1")
		single.JobID = "of a record"
		second := run(core.ScopePage, "song", "page")
		second.Page.Number = 1
		mustPublish(t, q, single, run(core.ScopePage, "song", "page"), second,
			run(core.ScopeOrganization, "other", "a.b"), run(core.ScopeRepository, "song", "ü"), run(core.ScopeIDs, "song", "list"))
		check("a.b", "list", "page", "ü")
		c := mustConsumer(t, q, core.ClassRuns, queue.ConsumerConfig{})
		inHand := fetchAll(t, c, 2)
		check("a.b", "list", "page", "ü")
		mustAck(t, inHand...)
		check("a.b", "page")
		for _, job := range []string{"page", "list"} {
			if _, err := q.Jobs().CreateOrganization(t.Context(), job, core.OrganizationRun{Organization: "S1"}); err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, q.Jobs().PruneOlder(t.Context(), 0, jobs.Ages{}), "")
		for job, want := range map[string]int{"page": 1, "list": 0} {
			if runs, err := q.Jobs().Organizations(t.Context(), job); err != nil || len(runs) != want {
				t.Errorf("job %s has %d organizations, %v", job, len(runs), err)
			}
		}
	})
}

func TestDeadLettersOfRuns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		second, again := run(core.ScopePage, "gone", "one"), run(core.ScopePage, "gone", "one")
		second.Page.Number, again.Page.Epoch = 1, 1
		all := []core.Request{
			run(core.ScopePage, "gone", "one"), second, again, run(core.ScopePage, "gone", "two"),
			run(core.ScopeOrganization, "gone", "one"), run(core.ScopeOrganization, "gone", "two"),
			run(core.ScopeRepository, "gone", "one"), run(core.ScopeRepository, "gone", "two"),
		}
		_, js := raw(t, q)
		bury := func() {
			t.Helper()
			mustPublish(t, q, all...)
			for _, job := range []string{"three", "four"} {
				subject, err := queue.RequestSubject(run(core.ScopeOrganization, "gone", job))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := js.Publish(t.Context(), subject, []byte("no request")); err != nil {
					t.Fatal(err)
				}
			}
			if moved, err := q.MoveUnknown(t.Context(), []string{"song"}); err != nil || moved != len(all)+2 {
				t.Fatalf("moved %d, %v", moved, err)
			}
		}
		bury()
		first := list(t, q, "gone", core.ReasonUnknownRepository)
		bury() // The same again replaces its letter.
		letters := list(t, q, "gone", core.ReasonUnknownRepository)
		if len(first) != len(all)+2 || len(letters) != len(first) || q.DeadLetters().Count()["gone"] != len(first) {
			t.Fatalf("%d letters, then %d", len(first), len(letters))
		}
		jobs := make(map[string]int)
		for _, l := range letters {
			jobs[l.JobID]++
			if l.Repository != "gone" || l.Organization == "" && l.Request.Scope != core.ScopeRepository {
				t.Errorf("letter %+v", l)
			}
			got, err := q.DeadLetters().Get(t.Context(), l.ID)
			if err != nil || !cmp.Equal(got, l) {
				t.Errorf("got %+v, %v", got, err)
			}
		}
		if want := map[string]int{"one": 5, "two": 3, "three": 1, "four": 1}; !cmp.Equal(jobs, want) {
			t.Errorf("jobs %v, want %v", jobs, want)
		}
		if q.DeadLetters().Has("gone", "S1", "") {
			t.Error("a run's letter was taken for a record's")
		}
		if err := q.DeadLetters().Delete(t.Context(), letters[0].ID); err != nil {
			t.Fatal(err)
		}
		if left := list(t, q, "gone", ""); len(left) != len(letters)-1 {
			t.Errorf("%d letters left", len(left))
		}
	})
}
