package consumers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
)

func TestRepositoryRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for i, org := range []string{"A", "B", "C"} {
			w.upstream.fill(org, 50*(i+1))
		}
		w.boot(-1)
		job := w.job(w.run("", false))
		w.ended(job, core.JobSucceeded, "")
		w.verify()
		if want := (core.Totals{Expected: 300, Fetched: 300, Indexed: 300}); job.Totals != want {
			t.Errorf("totals %+v", job.Totals)
		}
		runs, err := w.store.runs(job.ID)
		if err != nil || len(runs) != 3 {
			t.Fatalf("%v, %v", runs, err)
		}
		for i, run := range runs {
			if run.State != core.JobSucceeded || run.Totals.Indexed != int64(50*(i+1)) {
				t.Errorf("%+v", run)
			}
		}
	})
}

func TestOrganizationsThatCannotBeNamed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 5)
		w.upstream.orgs = append(w.upstream.orgs, "", strings.Repeat("x", 513), "A", "\xff")
		w.boot(-1)
		job := w.job(w.run("", false))
		w.ended(job, core.JobSucceeded, "")
		if runs, err := w.store.runs(job.ID); err != nil || len(runs) != 1 {
			t.Errorf("%v, %v", runs, err)
		}
		w.verify()
	})
}

func TestOneOrganizationFails(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, org := range []string{"A", "B", "C"} {
			w.upstream.fill(org, 50)
		}
		w.upstream.fill("gone", 5)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.upstream.vanish("gone")
		w.upstream.drop("A", 0, 1)
		w.upstream.drop("B", 0, 1)
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.org == "B" {
				return unavailable("the repository answered 500")
			}
			return nil
		}
		job := w.job(w.run("", false))
		w.ended(job, core.JobPartial, "unavailable")
		if !has(job.Error.Message, "B: ") {
			t.Errorf("message %q", job.Error.Message)
		}
		got := w.engine.live()
		if _, kept := got["gone-0000"]; !kept {
			t.Error("the repository was swept although an organization failed")
		}
		if _, kept := got["B-0000"]; !kept {
			t.Error("an organization was swept that could not be read")
		}
		if _, kept := got["A-0000"]; kept || job.Totals.Removed != 1 {
			t.Error("an organization was not swept because another one failed")
		}
	})
}

func TestVanishedOrganization(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 80)
		w.upstream.fill("B", 5)
		w.upstream.fill("C", 5)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.upstream.vanish("B")
		w.upstream.vanish("C")
		job := w.job(w.run("", false))
		w.ended(job, core.JobSucceeded, "")
		w.verify()
		if job.Totals.Removed != 10 {
			t.Errorf("totals %+v", job.Totals)
		}
	})
}

func TestVanishedOrganizationIsGuarded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		w.upstream.fill("B", 20)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		want := w.engine.live()
		w.upstream.vanish("B")
		w.ended(w.job(w.run("", false)), core.JobPartial, core.JobErrorPruneGuard)
		w.same(want)
		w.ended(w.job(w.run("", true)), core.JobSucceeded, "")
		w.verify()
	})
}

func TestZeroOrganizations(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.seed("A", 3)
		w.ended(w.job(w.run("", false)), core.JobPartial, core.JobErrorPruneGuard)
		if len(w.engine.live()) != 3 {
			t.Error("an empty list removed documents")
		}
		w.ended(w.job(w.run("", true)), core.JobSucceeded, "")
		w.verify()
	})
}

func TestListOfOrganizationsFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		times int64
		err   error
		state core.JobState
		code  string
		calls int64
	}{
		{"once", 1, unavailable("no"), core.JobSucceeded, "", 2},
		{"always", 99, unavailable("no"), core.JobFailed, "unavailable", 5},
		{"for good", 99, core.NewError(core.CodeUpstream, "400"), core.JobFailed, "upstream_error", 1},
		{"a foreign 404 once", 1, errForeignNotFound, core.JobSucceeded, "", 2},
		{"a foreign 404 always", 99, errForeignNotFound, core.JobFailed, "upstream_error", 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 5)
				w.seed("B", 2)
				var calls atomic.Int64
				w.upstream.onList = func() error {
					if calls.Add(1) <= tt.times {
						return tt.err
					}
					return nil
				}
				w.boot(-1)
				w.ended(w.await(w.run("", true)), tt.state, tt.code)
				if tt.state == core.JobFailed && (calls.Load() != tt.calls || len(w.engine.live()) != 2) {
					t.Errorf("%d calls, index %v", calls.Load(), w.engine.live())
				}
			})
		})
	}
}

// TestListOfOrganizationsChanges: a process crashes while it expands a repository, and the next one lists fewer or other
// organizations. The job must still end.
func TestListOfOrganizationsChanges(t *testing.T) {
	for _, change := range []string{"fewer", "more", "others"} {
		t.Run(change, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.broker.ackWait = 3 * time.Second
				w.upstream.fill("A", 5)
				w.upstream.fill("B", 5)
				w.upstream.fill("C", 5)
				published := 0
				var first *process
				w.onPublish = func(r core.Request) error {
					if r.Scope == core.ScopeOrganization {
						if published++; published == 2 && first != nil {
							first.crash()
							return errCrashed
						}
					}
					return nil
				}
				first = w.boot(-1)
				id := w.run("", true)
				<-first.gone
				if change != "more" {
					w.upstream.vanish("B")
					w.upstream.vanish("C")
				}
				if change != "fewer" {
					w.upstream.fill("D", 5)
					w.upstream.fill("E", 5)
				}
				_ = first.stop(t, 0)
				first = nil
				w.boot(-1)
				job := w.job(id)
				if change == "more" {
					w.ended(job, core.JobSucceeded, "")
				}
				w.ended(w.job(w.run("", true)), core.JobSucceeded, "")
				w.verify()
			})
		})
	}
}

func TestJobsOfOneScopeRunOneAfterTheOther(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 30)
		w.upstream.fill("B", 30)
		hold := make(chan struct{})
		w.upstream.onPage = func(ctx context.Context, c pageCall) error {
			if c.org == "A" {
				<-hold
			}
			return nil
		}
		w.boot(-1)
		w.boot(-1)
		ids := []string{w.run("A", false), w.run("A", false), w.run("A", false)}
		other := w.run("B", false)
		w.ended(w.await(other), core.JobSucceeded, "") // another scope does not wait
		time.Sleep(time.Minute)
		running := 0
		for _, id := range ids {
			if job, err := w.store.job(id); err == nil && job.State == core.JobRunning {
				running++
			}
		}
		if running != 1 {
			t.Errorf("%d jobs of one scope run", running)
		}
		close(hold)
		var jobs []core.Job
		for _, id := range ids {
			job := w.job(id)
			w.ended(job, core.JobSucceeded, "")
			jobs = append(jobs, job)
		}
		slices.SortFunc(jobs, func(x, y core.Job) int { return x.StartedAt.Compare(*y.StartedAt) })
		for i := 1; i < len(jobs); i++ {
			if jobs[i].StartedAt.Before(*jobs[i-1].EndedAt) {
				t.Errorf("%s began before %s ended", jobs[i].ID, jobs[i-1].ID)
			}
		}
	})
}

func TestCancel(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1000)
		w.upstream.fill("B", 10)
		w.seed("B", 1)
		hold, reached := make(chan struct{}), make(chan struct{})
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.org == "A" && c.offset == 297 {
				close(reached)
				<-hold
			}
			return nil
		}
		p := w.boot(-1)
		id := w.run("", false)
		<-reached
		job, err := p.c.Cancel(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		w.ended(job, core.JobCancelled, core.JobErrorCancelled)
		close(hold)
		w.idle()
		synctest.Wait()
		after, err := w.store.job(id)
		if err != nil {
			t.Fatal(err)
		}
		w.ended(after, core.JobCancelled, core.JobErrorCancelled)
		// Work in flight is finished, no more is started.
		if n := len(w.upstream.pageCalls()); n > 6 {
			t.Errorf("%d pages were read", n)
		}
		runs, err := w.store.runs(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			if !run.State.Final() {
				t.Errorf("%s is left as %s", run.Organization, run.State)
			}
		}
		if _, err := p.c.Cancel(t.Context(), id); core.CodeOf(err) != core.CodeConflict || !has(core.MessageOf(err), "cancelled") {
			t.Errorf("cancelling twice: %v", err)
		}
		if _, err := p.c.Cancel(t.Context(), "nobody"); core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("cancelling nothing: %v", err)
		}
		w.upstream.onPage = nil
		w.ended(w.job(w.run("", true)), core.JobSucceeded, "") // the scope is free again
		w.verify()
	})
}

func TestCancelQueued(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 10)
		hold := make(chan struct{})
		w.upstream.onPage = func(context.Context, pageCall) error {
			<-hold
			return nil
		}
		p := w.boot(-1)
		first := w.run("A", false)
		synctest.Wait()
		second := w.run("A", false)
		eventually(t, "the second job", func() bool { _, err := w.store.job(second); return err == nil })
		if _, err := p.c.Cancel(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		close(hold)
		w.ended(w.job(first), core.JobSucceeded, "")
		w.ended(w.job(second), core.JobCancelled, core.JobErrorCancelled)
		if n := len(w.upstream.pageCalls()); n != 1 {
			t.Errorf("%d pages were read", n)
		}
	})
}

// TestTotalsOfAFailedJob: a failed job still reports its totals.
func TestTotalsOfAFailedJob(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 500)
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.offset < 297 {
				return nil
			}
			eventually(t, "the pages before", func() bool {
				runs, err := w.store.runs("job-1")
				return err == nil && runs[0].DoneThrough == 2
			})
			return errors.New("not even an error of core")
		}
		w.boot(-1)
		job := w.job(w.run("A", false))
		w.ended(job, core.JobFailed, "internal")
		if want := (core.Totals{Expected: 500, Fetched: 298, Indexed: 298}); job.Totals != want || has(job.Error.Message, "not even") {
			t.Errorf("job %+v, %+v", job, job.Error)
		}
	})
}

func TestManyOrganizations(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for i := range 60 {
			w.upstream.fill(fmt.Sprintf("S%02d", i), 10+i)
		}
		w.pageSize = 10
		w.boot(-1)
		w.boot(-1)
		job := w.job(w.run("", false))
		w.ended(job, core.JobSucceeded, "")
		w.verify()
		if want := int64(60*10 + 60*59/2); job.Totals.Indexed+job.Totals.Stale != want {
			t.Errorf("totals %+v", job.Totals)
		}
		if job.Totals.Fetched != job.Totals.Expected {
			t.Errorf("totals %+v", job.Totals)
		}
	})
}

// TestStateDoesNotGrow: a process's state does not grow with the number of jobs.
func TestStateDoesNotGrow(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for i := range 40 {
			w.upstream.fill(fmt.Sprintf("S%02d", i), 3)
		}
		p := w.boot(-1)
		for range 5 {
			w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
			w.ended(w.job(w.run("S00", false)), core.JobSucceeded, "")
		}
		synctest.Wait()
		if lanes, hand := p.c.PendingProgress(), p.c.InFlight(); lanes > 45 || hand != 0 {
			t.Errorf("%d organizations' progress and %d messages are remembered", lanes, hand)
		}
	})
}

// TestProgressWritesAreShared: many short pages share the writes of their organization's progress.
func TestProgressWritesAreShared(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1000)
		w.pageSize = 5
		w.cfg.ProgressEvery = 250 * time.Millisecond
		w.boot(-1)
		began := time.Now()
		job := w.job(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		took := time.Since(began)
		if job.Totals.Indexed != 1000 {
			t.Errorf("totals %+v", job.Totals)
		}
		cell, _ := w.store.get(runKey(job.ID, "A"))
		if limit := uint64(took/(250*time.Millisecond)) + 12; cell.revision > 2*limit {
			t.Errorf("%d writes in %s", cell.revision, took)
		}
	})
}

// TestWaitingOrganizationsAreQueued: an organization is running once a page of it is read, not while its first one is
// queued.
func TestWaitingOrganizationsAreQueued(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const organizations = 20
		for i := range organizations {
			w.upstream.fill(fmt.Sprintf("O%02d", i), 3)
		}
		release := make(chan struct{})
		w.upstream.onPage = func(context.Context, pageCall) error {
			<-release
			return nil
		}
		w.boot(-1)
		id := w.run("", false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		states := map[core.JobState]int{}
		runs, err := w.store.runs(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			states[run.State]++
		}
		reading := len(w.upstream.pageCalls())
		if reading == 0 || reading == organizations || states[core.JobRunning] != reading || states[core.JobQueued] != organizations-reading {
			t.Errorf("%d organizations are read: %v", reading, states)
		}
		close(release)
		w.ended(w.job(id), core.JobSucceeded, "")
	})
}
