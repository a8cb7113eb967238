package consumers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestRemovalUnderAnotherOrganization: a removal of a record under an organization that is not its own leaves nothing behind
// that could keep the record's document out, also when that is in flight.
func TestRemovalUnderAnotherOrganization(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 3)
		w.upstream.fill("B", 50)
		removed := make(chan struct{})
		w.upstream.onPage = func(context.Context, pageCall) error {
			<-removed // its Request is older than the removal, its rows come later
			return nil
		}
		w.boot(-1)
		id := w.run("B", false)
		eventually(t, "the page to be read", func() bool { return len(w.upstream.pageCalls()) == 1 })
		w.remove("A", "B-0010")
		w.index("nobody", "B-0011")
		eventually(t, "both to end", func() bool { return w.broker.size() == 1 })
		close(removed)
		job := w.job(id)
		w.ended(job, core.JobSucceeded, "")
		if job.Totals.Indexed != 50 || job.Totals.Stale != 0 {
			t.Errorf("totals %+v", job.Totals)
		}
		want := w.upstream.model()
		for _, id := range []string{"A-0000", "A-0001", "A-0002"} {
			delete(want, id)
		}
		w.same(want)
	})
}

// TestSweepTimeout: a record that the run did not see cannot be requested. The job ends partial and says so; the Request
// stays in the queue, and does not delay other runs.
func TestSweepTimeout(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		gone := w.upstream.model()
		w.upstream.drop("A", 7, 8)
		w.upstream.onRecord = func(context.Context, string, string) error {
			return core.NewError(core.CodeUnavailable, "status 500")
		}
		job := w.awaitFor(w.run("A", false), 10*time.Minute)
		w.ended(job, core.JobPartial, core.JobErrorSweepIncomplete)
		w.same(gone)
		w.upstream.onRecord = nil
		w.idle()
		w.verify()
	})
}

// TestSweepOfCancelledJob: a job that is cancelled while its sweep waits releases its scope.
func TestSweepOfCancelledJob(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.cfg.SweepTimeout = time.Hour
		w.upstream.fill("A", 50)
		p := w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.upstream.drop("A", 7, 8)
		asked := make(chan struct{}, 100)
		w.upstream.onRecord = func(context.Context, string, string) error {
			select {
			case asked <- struct{}{}:
			default:
			}
			return core.NewError(core.CodeUnavailable, "status 500")
		}
		id := w.run("A", false)
		<-asked
		if _, err := p.c.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		w.upstream.onRecord = nil
		w.ended(w.awaitFor(w.run("A", false), 5*time.Minute), core.JobSucceeded, "")
		w.idle()
		w.verify()
	})
}

// TestRetryAfterIsBounded: one response of an upstream cannot stop a run for a day, nor keep a cancelled one.
func TestRetryAfterIsBounded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 10)
		refusals := 1
		w.upstream.onPage = func(context.Context, pageCall) error {
			if refusals--; refusals >= 0 {
				return &core.Error{Code: core.CodeOverloaded, Message: "busy", RetryAfter: 24 * time.Hour}
			}
			return nil
		}
		p := w.boot(-1)
		began := time.Now()
		w.ended(w.awaitFor(w.run("A", false), time.Hour), core.JobSucceeded, "")
		if took := time.Since(began); took > 10*time.Minute {
			t.Errorf("took %s", took)
		}
		refusals = 1
		id := w.run("A", false)
		eventually(t, "the refusal", func() bool { return len(w.upstream.pageCalls()) >= 3 })
		began = time.Now()
		if _, err := p.c.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the page to end", func() bool { return w.broker.size() == 0 })
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the cancelled job's page took %s", took)
		}
	})
}

// TestRepublishKeepsTheDelay: after ten deliveries a Request is republished with its delay.
func TestRepublishKeepsTheDelay(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.cfg.RetryBase, w.cfg.RetryMax = 10*time.Second, 10*time.Second
		w.upstream.fill("A", 1)
		var at []time.Time
		w.upstream.onRecord = func(context.Context, string, string) error {
			at = append(at, time.Now())
			if len(at) < 25 {
				return errors.Join(core.NewError(core.CodeUnavailable, "status 500"))
			}
			return nil
		}
		w.boot(-1)
		w.index("A", "A-0000")
		eventually(t, "the record", func() bool { return w.broker.size() == 0 })
		for i := 1; i < len(at); i++ {
			if wait := at[i].Sub(at[i-1]); wait < 5*time.Second {
				t.Errorf("attempt %d came %s after the one before", i+1, wait)
			}
		}
		w.verify()
	})
}

// TestOfferedRequestsReplaceNothing: a sweep's Request does not replace a pending removal.
func TestOfferedRequestsReplaceNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		omitted := w.upstream.lists["A"][7]
		w.upstream.drop("A", 7, 8)
		w.upstream.onPage = func(context.Context, pageCall) error {
			w.upstream.onPage = nil
			w.upstream.onRecord = func(context.Context, string, string) error {
				return core.NewError(core.CodeUnavailable, "status 500") // the removal is not reached by this
			}
			return nil
		}
		hold := make(chan struct{})
		w.engine.hold = func(_ context.Context, b core.Batch) error {
			if len(b.Items) == 1 && b.Items[0].Op == core.OpDelete {
				<-hold
			}
			return nil
		}
		w.remove("A", omitted.id)
		id := w.run("A", false)
		eventually(t, "the sweep to wait", func() bool { return w.broker.size() == 2 })
		w.upstream.onRecord = nil
		close(hold)
		job := w.awaitFor(id, 5*time.Minute)
		w.ended(job, core.JobSucceeded, "")
		for _, r := range w.broker.published(core.ScopeRecord) {
			if r.Kind == core.KindIndex && r.RecordID == omitted.id {
				t.Errorf("the removal was replaced by %+v", r)
			}
		}
		w.verify()
	})
}

// TestOrphan: a job whose Request became a dead letter does not run for ever.
func TestOrphan(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 500)
		w.upstream.fill("B", 10)
		p := w.make(-1)
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.org == "A" && c.offset > 0 {
				p.crash()
			}
			return nil
		}
		p.c.Start()
		id := w.run("", false)
		<-p.gone
		_ = p.stop(t, 0)
		w.broker.clear()
		w.upstream.onPage = nil
		q := w.boot(-1)
		if err := q.c.EndOrphan(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		job, err := w.store.job(id)
		if err != nil || !job.State.Final() || job.State == core.JobSucceeded || job.Error == nil {
			t.Fatalf("job %+v, %v", job, err)
		}
		w.ended(w.awaitFor(w.run("", false), 5*time.Minute), core.JobSucceeded, "")
		w.verify()
	})
}

// TestSweepWithAnOlderRequestInFlight: a record is fetched for an older Request, disappears upstream, and is written late:
// the sweep requests it again although that Request is still in flight.
func TestSweepWithAnOlderRequestInFlight(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		fetched, write := make(chan struct{}), make(chan struct{})
		w.upstream.afterRecord = func(context.Context, string, string) {
			w.upstream.afterRecord = nil
			close(fetched)
			<-write
		}
		w.index("A", "A-0007")
		<-fetched
		w.upstream.drop("A", 7, 8)
		id := w.run("A", false)
		eventually(t, "the sweep", func() bool {
			return len(w.broker.published(core.ScopeRecord)) > 0 && w.engine.scanned.Load() > 0 && w.broker.size() == 2
		})
		close(write)
		w.ended(w.awaitFor(id, 5*time.Minute), core.JobSucceeded, "")
		w.idle()
		w.verify()
	})
}

// TestHalfCancelledJob: a process crashes while it cancels a job, after the job and before its organizations. Their pages
// are not read any more, and the organizations end with the next of them.
func TestHalfCancelledJob(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 500)
		p := w.boot(-1)
		ids := make(chan string, 1)
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.offset != 99 {
				return nil
			}
			id := <-ids
			_, err := jobPort{p}.Update(t.Context(), id, func(j *core.Job) error {
				j.State = core.JobCancelled
				return nil
			})
			return err
		}
		id := w.run("A", false)
		ids <- id
		w.idle()
		for _, c := range w.upstream.pageCalls() {
			if c.offset > 99 {
				t.Errorf("the page at %d was read", c.offset)
			}
		}
		runs, err := runPort{p}.Organizations(t.Context(), id)
		if err != nil || len(runs) != 1 || runs[0].State != core.JobCancelled {
			t.Errorf("organizations %+v, %v", runs, err)
		}
	})
}

// TestHalfCancelledJobWhilePaused: the job's only page waits for the index when another process cancels the job and crashes
// before its organization. The page ends the organization when the index is back.
func TestHalfCancelledJobWhilePaused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		p := w.boot(-1)
		w.upstream.onPage = func(context.Context, pageCall) error {
			w.engine.setDown(errDown)
			return nil
		}
		id := w.run("A", false)
		eventually(t, "the page waits", func() bool { return len(w.upstream.pageCalls()) == 1 && len(p.c.Paused()) == 1 })
		if _, err := (jobPort{p}).Update(t.Context(), id, func(j *core.Job) error {
			j.State = core.JobCancelled
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w.engine.setDown(nil)
		w.idle()
		runs, err := runPort{p}.Organizations(t.Context(), id)
		if err != nil || len(runs) != 1 || runs[0].State != core.JobCancelled {
			t.Errorf("organizations %+v, %v", runs, err)
		}
		if n := len(w.upstream.pageCalls()); n != 1 {
			t.Errorf("the page was read %d times", n)
		}
	})
}
