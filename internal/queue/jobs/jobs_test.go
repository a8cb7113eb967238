package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tutti/internal/core"
	"tutti/internal/queue/jobs"
)

func TestJobLife(t *testing.T) {
	t.Parallel()
	j := open(t)
	job := newJob(t, core.JobQueued)
	_, err := j.Get(t.Context(), job.ID)
	wantCode(t, err, core.CodeNotFound)
	if err := j.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	wantCode(t, j.Create(t.Context(), job), core.CodeConflict)
	wantCode(t, j.Create(t.Context(), core.Job{}), core.CodeInvalid)
	got, err := j.Get(t.Context(), job.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(job, got); diff != "" {
		t.Fatal(diff)
	}
	got, err = j.Update(t.Context(), job.ID, func(job *core.Job) error {
		job.State = core.JobRunning
		return nil
	})
	if err != nil || got.State != core.JobRunning {
		t.Fatalf("job %+v, %v", got, err)
	}

	mine := core.NewError(core.CodeNotFound, "mine")
	_, err = j.Update(t.Context(), job.ID, func(job *core.Job) error {
		job.State = core.JobFailed
		return mine
	})
	if !errors.Is(err, mine) {
		t.Errorf("the function's error came back as %v", err)
	}
	got, err = j.Update(t.Context(), job.ID, func(*core.Job) error { return jobs.ErrUnchanged })
	if err != nil || got.State != core.JobRunning {
		t.Errorf("job %+v, %v", got, err)
	}
	_, err = j.Update(t.Context(), "unknown", func(*core.Job) error { return nil })
	wantCode(t, err, core.CodeNotFound)
}

func TestUpdatesOfManyAreAllKept(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	a, b := s.connect(t), s.connect(t)
	job := mustCreate(t, a, newJob(t, core.JobRunning))
	if _, err := a.CreateOrganization(t.Context(), job.ID, core.OrganizationRun{Organization: "S1"}); err != nil {
		t.Fatal(err)
	}
	const writers, each = 6, 10
	var writing sync.WaitGroup
	for i := range writers {
		j := []store{a, b}[i%2]
		writing.Go(func() {
			ctx := context.WithoutCancel(t.Context())
			for range each {
				_, err := j.Update(ctx, job.ID, func(job *core.Job) error {
					job.Totals.Indexed++
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				_, err = j.UpdateOrganization(ctx, job.ID, "S1", func(run *core.OrganizationRun) error {
					run.Totals.Fetched++
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	got, err := a.Get(t.Context(), job.ID)
	if err != nil || got.Totals.Indexed != writers*each {
		t.Errorf("%d of %d, %v", got.Totals.Indexed, writers*each, err)
	}
	run, err := b.Organization(t.Context(), job.ID, "S1")
	if err != nil || run.Totals.Fetched != writers*each {
		t.Errorf("%d of %d, %v", run.Totals.Fetched, writers*each, err)
	}
}

func TestOrganizations(t *testing.T) {
	t.Parallel()
	j := open(t)
	job, other := newJob(t, core.JobRunning), newJob(t, core.JobRunning)
	want := []core.OrganizationRun{
		{Organization: "a.*>", State: core.JobQueued, DoneThrough: -1},
		{Organization: "b", State: core.JobQueued, DoneThrough: 3, Ahead: map[int]core.Totals{5: {Fetched: 2}}},
		{Organization: "ü", State: core.JobQueued, DoneThrough: -1},
	}
	for _, i := range []int{2, 0, 1} {
		for _, first := range []bool{true, false} {
			created, err := j.CreateOrganization(t.Context(), job.ID, want[i])
			if err != nil || created != first {
				t.Fatalf("created %v, %v", created, err)
			}
		}
	}
	if _, err := j.CreateOrganization(t.Context(), other.ID, core.OrganizationRun{Organization: "b"}); err != nil {
		t.Fatal(err)
	}
	got, err := j.Organizations(t.Context(), job.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	one, err := j.Organization(t.Context(), job.ID, "b")
	if err != nil || !cmp.Equal(one, want[1]) {
		t.Errorf("got %+v, %v", one, err)
	}
	_, err = j.Organization(t.Context(), job.ID, "c")
	wantCode(t, err, core.CodeNotFound)
	_, err = j.UpdateOrganization(t.Context(), job.ID, "c", func(*core.OrganizationRun) error { return nil })
	wantCode(t, err, core.CodeNotFound)
	_, err = j.CreateOrganization(t.Context(), job.ID, core.OrganizationRun{})
	wantCode(t, err, core.CodeInvalid)
}

func jobIDs(jobs []core.Job) []string {
	ids := make([]string, 0, len(jobs))
	for _, job := range jobs {
		ids = append(ids, job.ID)
	}
	return ids
}

func TestListJobs(t *testing.T) {
	t.Parallel()
	q := open(t)
	if jobs, next, err := q.List(t.Context(), core.JobFilter{}); err != nil || len(jobs) != 0 || next != "" {
		t.Fatalf("%v, %q, %v", jobs, next, err)
	}
	var want []string
	for i := range 9 {
		job := newJob(t, core.JobSucceeded)
		if i%3 == 2 {
			job.State, job.Repository = core.JobRunning, "other"
		} else {
			want = append(want, job.ID)
		}
		mustCreate(t, q, job)
	}
	// A change moves a job in the stream, but not in the list.
	if _, err := q.Update(t.Context(), want[0], func(job *core.Job) error {
		job.Returned++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(want)
	for _, f := range []core.JobFilter{{Repository: "song"}, {State: core.JobSucceeded}} {
		var got []string
		f.Limit = 2
		for {
			jobs, next, err := q.List(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, jobIDs(jobs)...)
			if f.Cursor = next; next == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v: %s", f, diff)
		}
	}
	_, _, err := q.List(t.Context(), core.JobFilter{Cursor: "!"})
	wantCode(t, err, core.CodeInvalid)
}

func TestPruneJobs(t *testing.T) {
	t.Parallel()
	q := open(t)
	var all []core.Job
	for i := range 6 {
		state := core.JobSucceeded
		if i == 1 {
			state = core.JobRunning
		}
		job := mustCreate(t, q, newJob(t, state))
		if _, err := q.CreateOrganization(t.Context(), job.ID, core.OrganizationRun{Organization: "S1"}); err != nil {
			t.Fatal(err)
		}
		all = append(all, job)
	}
	if err := q.Prune(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	jobs, _, err := q.List(t.Context(), core.JobFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{all[5].ID, all[4].ID, all[1].ID}, jobIDs(jobs)); diff != "" {
		t.Fatal(diff)
	}
	for i, job := range all {
		runs, err := q.Organizations(t.Context(), job.ID)
		kept := i == 1 || i >= 4
		if err != nil || (len(runs) == 1) != kept {
			t.Errorf("job %d has the organizations %v, %v", i, runs, err)
		}
		_, err = q.Get(t.Context(), job.ID)
		if (err == nil) != kept {
			t.Errorf("job %d: %v", i, err)
		}
	}
}

func TestCountJobs(t *testing.T) {
	t.Parallel()
	q := open(t)
	want := make(map[core.JobState]int)
	for _, state := range core.JobStates() {
		want[state] = 0
	}
	check := func() {
		t.Helper()
		got, err := q.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	check()
	for i, state := range []core.JobState{core.JobQueued, core.JobRunning, core.JobRunning, core.JobFailed} {
		job := newJob(t, state)
		job.Repository = fmt.Sprint(i)
		mustCreate(t, q, job)
		if _, err := q.CreateOrganization(t.Context(), job.ID, core.OrganizationRun{
			Organization: "S1", State: core.JobRunning,
		}); err != nil {
			t.Fatal(err)
		}
		want[state]++
	}
	check()
}

func TestPruneOrphans(t *testing.T) {
	t.Parallel()
	q := open(t, "waits")
	queued, running := mustCreate(t, q, newJob(t, core.JobQueued)).ID, mustCreate(t, q, newJob(t, core.JobRunning)).ID
	ended := mustCreate(t, q, newJob(t, core.JobPartial)).ID
	cells := map[string]string{
		"queued.a": queued, "running.a": running, "queued.b": ended, "running.b": ended,
		"queued.c": "gone", "running.c": "gone", "queued.d": "waits", "spaced.a": queued, "spaced.b": ended, "spaced.c": "gone", "else.a": ended, "else.b": "gone",
	}
	for name, id := range cells {
		if err := q.bucket.Cells().SetCell(t.Context(), name, id, 0); err != nil {
			t.Fatal(err)
		}
	}
	ids := []string{queued, running, ended, "gone", "waits"}
	for _, id := range ids {
		for _, name := range []string{"S1", "S2"} {
			if _, err := q.CreateOrganization(t.Context(), id, core.OrganizationRun{Organization: name}); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(removedCells, removedJobs []string) {
		t.Helper()
		for name, id := range cells {
			got, _, err := q.bucket.Cells().Cell(t.Context(), name)
			if slices.Contains(removedCells, name) {
				id = ""
			}
			if err != nil || got != id {
				t.Errorf("cell %s holds %q, %v, want %q", name, got, err, id)
			}
		}
		for _, id := range ids {
			runs, err := q.Organizations(t.Context(), id)
			if want := !slices.Contains(removedJobs, id); err != nil || (len(runs) == 2) != want || (len(runs) == 0) == want {
				t.Errorf("job %s has %d organizations, %v", id, len(runs), err)
			}
		}
	}
	check(nil, nil)
	if err := q.Prune(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	check([]string{"queued.b", "running.b"}, nil) // What is young may get its job yet, or delays the next job.
	if err := q.PruneOlder(t.Context(), 10, jobs.Ages{Cells: time.Hour}); err != nil {
		t.Fatal(err)
	}
	check([]string{"queued.b", "running.b", "queued.c", "running.c", "spaced.b", "spaced.c"}, []string{"gone"})
	for _, name := range []string{"queued.b", "queued.c"} {
		if err := q.bucket.Cells().SetCell(t.Context(), name, queued, 0); err != nil {
			t.Errorf("filling a removed cell: %v", err)
		}
	}
}

// TestCellsDoNotExpire: the stream removes what was not written for 90 days, so that Prune writes old cells again. One that is written at
// the same time keeps its new value.
func TestCellsDoNotExpire(t *testing.T) {
	t.Parallel()
	q := open(t, "waits")
	values := map[string]string{"index.a": "identity", "fill.a": "done", "queued.a": "waits"}
	read := func() map[string]uint64 {
		revisions := make(map[string]uint64)
		for name, want := range values {
			value, revision, err := q.bucket.Cells().Cell(t.Context(), name)
			if err != nil || value != want {
				t.Fatalf("cell %s holds %q, %v, want %q", name, value, err, want)
			}
			revisions[name] = revision
		}
		return revisions
	}
	for name, value := range values {
		wantCode(t, q.bucket.Cells().SetCell(t.Context(), name, value, 0), "")
	}
	wantCode(t, q.bucket.Cells().SetCell(t.Context(), "emptied", "once", 0), "")
	_, revision, _ := q.bucket.Cells().Cell(t.Context(), "emptied")
	wantCode(t, q.bucket.Cells().SetCell(t.Context(), "emptied", "", revision), "")
	written := read()
	wantCode(t, q.Prune(t.Context(), 10), "")
	if young := read(); !maps.Equal(young, written) {
		t.Errorf("young cells were written again: %v, %v", young, written)
	}
	wantCode(t, q.PruneOlder(t.Context(), 10, jobs.Ages{Orphans: time.Hour, Cells: -time.Hour}), "")
	for name, revision := range read() {
		if again := revision > written[name]; again == (name == "queued.a") {
			t.Errorf("cell %s was at revision %d, is at %d", name, written[name], revision)
		}
	}
	if value, _, err := q.bucket.Cells().Cell(t.Context(), "emptied"); err != nil || value != "" {
		t.Errorf("the emptied cell holds %q, %v", value, err)
	}
}

// TestListsAmidUpdates: a list holds what was acknowledged before it began, however often that is replaced until it ends. The server
// may count too few messages of a consumer that is made at such a moment; that is seldom, so `make chaos` repeats the test.
func TestListsAmidUpdates(t *testing.T) {
	t.Parallel()
	q := open(t)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 40 {
				job := fmt.Sprintf("job-%d-%d", w, i)
				run := core.OrganizationRun{Organization: "S1", State: core.JobRunning}
				if _, err := q.CreateOrganization(t.Context(), job, run); err != nil {
					t.Error(err)
					return
				}
				var one sync.WaitGroup
				one.Go(func() {
					for n := range int64(4) {
						if _, err := q.UpdateOrganization(t.Context(), job, "S1", func(run *core.OrganizationRun) error {
							run.Totals.Fetched = n + 1
							return nil
						}); err != nil {
							t.Error(err)
						}
					}
				})
				for range 3 {
					one.Go(func() {
						if runs, err := q.Organizations(t.Context(), job); err != nil || len(runs) != 1 {
							t.Errorf("%d organizations, %v", len(runs), err)
						}
					})
				}
				one.Wait()
			}
		})
	}
	all.Wait()
}

// TestSelectedJobsAreNotRead: a page of the jobs of a repository or in a state, and the counts of the states, are those of all jobs; once they
// were read, only the jobs of the page and those that have changed are read, however many there are.
func TestSelectedJobsAreNotRead(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	q, other := s.connect(t), s.connect(t)
	const jobs, limit = 300, 5
	stored := map[string]core.Job{}
	for i := range jobs {
		job := newJob(t, []core.JobState{core.JobSucceeded, core.JobFailed, core.JobSucceeded}[i%3])
		job.Repository = []string{"song", "lyric"}[i%2]
		stored[job.ID] = mustCreate(t, q, job)
	}
	check := func(when string, most int) {
		t.Helper()
		for _, f := range []core.JobFilter{
			{Repository: "lyric"}, {State: core.JobFailed}, {Repository: "song", State: core.JobSucceeded}, {State: core.JobRunning}, {Repository: "none"},
		} {
			var want, got []core.Job
			for _, job := range stored {
				if (f.Repository == "" || job.Repository == f.Repository) && (f.State == "" || job.State == f.State) {
					want = append(want, job)
				}
			}
			slices.SortFunc(want, func(a, b core.Job) int { return strings.Compare(b.ID, a.ID) })
			want = want[:min(2*limit, len(want))]
			f.Limit = limit
			for range 2 {
				before := q.bucket.Conn.NC.Stats().InMsgs
				page, next, err := q.List(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				if reads := int(q.bucket.Conn.NC.Stats().InMsgs - before); most > 0 && reads > len(page)+most {
					t.Errorf("%s: %d messages for %d jobs of %+v", when, reads, len(page), f)
				}
				most = min(most, 4) // the changes are read once
				got = append(got, page...)
				if f.Cursor = next; next == "" {
					break
				}
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %+v: %s", when, f, diff)
			}
		}
		want := map[core.JobState]int{}
		for _, state := range core.JobStates() {
			want[state] = 0
		}
		for _, job := range stored {
			want[job.State]++
		}
		before := q.bucket.Conn.NC.Stats().InMsgs
		counts, err := q.Counts(t.Context())
		if diff := cmp.Diff(want, counts); diff != "" || err != nil || q.bucket.Conn.NC.Stats().InMsgs-before > 4 {
			t.Errorf("%s: the counts, with %d messages: %s (%v)", when, q.bucket.Conn.NC.Stats().InMsgs-before, diff, err)
		}
	}
	check("at first", 0)
	check("without a change", 4)
	changed := 0
	for id := range stored {
		job, err := other.Update(t.Context(), id, func(j *core.Job) error {
			j.State = core.JobRunning
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		stored[id] = job
		if changed++; changed == 5 {
			break
		}
	}
	added := newJob(t, core.JobFailed)
	stored[added.ID] = mustCreate(t, other, added)
	check("after changes by another process", 4+6+2)
	if err := other.Prune(t.Context(), 20); err != nil {
		t.Fatal(err)
	}
	for id := range stored {
		if _, err := other.Get(t.Context(), id); core.CodeOf(err) == core.CodeNotFound {
			delete(stored, id)
		}
	}
	if len(stored) > 30 {
		t.Fatalf("%d jobs are left", len(stored))
	}
	check("after a prune", 4)
}

// TestJobChanges: the jobs that changed after a revision are read in their last state; an update that changes nothing is no change.
func TestJobChanges(t *testing.T) {
	t.Parallel()
	q := open(t)
	after, err := q.LastRevision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changed := func() (found []string) {
		t.Helper()
		if err := q.EachChangedAfter(t.Context(), after, func(revision uint64, job core.Job) error {
			if revision <= after {
				t.Errorf("revision %d after %d", revision, after)
			}
			after, found = revision, append(found, fmt.Sprintf("%s %s", job.ID, job.State))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return found
	}
	a, b := mustCreate(t, q, newJob(t, core.JobRunning)), mustCreate(t, q, newJob(t, core.JobQueued))
	if _, err := q.CreateOrganization(t.Context(), a.ID, core.OrganizationRun{Organization: "S1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Update(t.Context(), a.ID, func(j *core.Job) error { j.State = core.JobFailed; return nil }); err != nil {
		t.Fatal(err)
	}
	if got, want := changed(), []string{b.ID + " queued", a.ID + " failed"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if j, err := q.Update(t.Context(), a.ID, func(*core.Job) error { return nil }); err != nil || j.State != core.JobFailed {
		t.Errorf("%+v, %v", j, err)
	}
	if got := changed(); len(got) != 0 {
		t.Errorf("changed without a change: %v", got)
	}
	var many []string // more than are read one by one
	for range 30 {
		many = append(many, mustCreate(t, q, newJob(t, core.JobQueued)).ID+" queued")
		if _, err := q.CreateOrganization(t.Context(), a.ID, core.OrganizationRun{Organization: many[0]}); err != nil {
			t.Fatal(err)
		}
	}
	if got := changed(); !slices.Equal(got, many) {
		t.Errorf("%v, want %v", got, many)
	}
}
