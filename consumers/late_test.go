package consumers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

// lateRows makes most rows of a page of 50 too old to be written with it.
func lateRows(w *world) {
	w.pageSize = 50
	w.upstream.fill("A", 50)
	w.upstream.rowLatency = 400 * time.Millisecond
}

// rejecting makes the engine reject the documents of the records from A-first on.
func (w *world) rejecting(first int) {
	w.engine.item = func(id string, op core.WriteOp, _ []byte) (core.Result, bool) {
		refused := op == core.OpIndex && id >= fmt.Sprintf("A-%04d", first)
		return core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception"}, refused
	}
}

// TestJobWaitsForLateRows: rows that are too old are requested one by one. A job into an empty index, which has no sweep,
// ends once they have ended as well, and counts each once.
func TestJobWaitsForLateRows(t *testing.T) {
	for _, scope := range []string{"A", ""} {
		t.Run("scope "+scope, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				lateRows(w)
				w.upstream.latency = 3 * time.Second
				w.boot(-1)
				job := w.await(w.run(scope, false))
				w.ended(job, core.JobSucceeded, "")
				w.verify()
				late := int64(w.upstream.requestsFor(""))
				if late == 0 || job.Totals != (core.Totals{Expected: 50, Fetched: 50, Indexed: 50, Retried: late}) {
					t.Errorf("totals %+v, %d records asked for by themselves", job.Totals, late)
				}
				if n := w.store.noteCount(); n != 0 {
					t.Errorf("%d notes are left", n)
				}
			})
		})
	}
}

// TestLateRowsAreRequestedOnce: late rows of an earlier page that ended before the last page did are not requested again.
func TestLateRowsAreRequestedOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		lateRows(w)
		w.upstream.rowLatency *= 2
		w.pageSize = 25
		w.boot(-1)
		w.ended(w.await(w.run("A", false)), core.JobSucceeded, "")
		w.verify()
		if n := w.upstream.mostRequests(); n != 1 {
			t.Errorf("a record was asked for %d times", n)
		}
	})
}

// TestRejectedLateRows: late rows that the index rejects count as rejected, those that no longer exist as removed.
func TestRejectedLateRows(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		lateRows(w)
		w.rejecting(47)
		w.upstream.onRecord = func(_ context.Context, _, id string) error {
			if id == "A-0046" {
				for read := 0; read < 2; time.Sleep(time.Millisecond) { // the second page says how many there are, within that millisecond
					read = len(w.upstream.pageCalls())
				}
				w.upstream.edit("A", id, func(r *record) { r.state = "UNPUBLISHED" })
			}
			return nil
		}
		w.boot(-1)
		job := w.slowJob(w.run("A", false))
		w.ended(job, core.JobPartial, core.JobErrorRecordsRejected)
		want := core.Totals{Expected: 50, Fetched: 50, Indexed: 46, Removed: 1, Rejected: 3, Retried: job.Totals.Retried}
		if job.Totals != want || len(w.store.dead()) != 3 {
			t.Errorf("totals %+v, want %+v; %d dead letters", job.Totals, want, len(w.store.dead()))
		}
	})
}

// TestRejectedBySweep: a record that the pages did not contain is rejected when the sweep requests it.
func TestRejectedBySweep(t *testing.T) {
	for _, org := range []string{"A", "B"} { // B is an organization that is no longer listed
		t.Run("organization "+org, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 50)
				w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				w.upstream.unlisted = org + "-alone"
				w.engine.put(w.upstream.unlisted, 1, record{id: w.upstream.unlisted, org: org, state: published}.document())
				w.upstream.mu.Lock()
				w.upstream.lists["B"] = nil
				w.upstream.mu.Unlock()
				w.engine.item = func(id string, op core.WriteOp, _ []byte) (core.Result, bool) {
					return core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception"}, id == w.upstream.unlisted
				}
				job := w.job(w.run("", true))
				w.ended(job, core.JobPartial, core.JobErrorRecordsRejected)
				if job.Totals.Rejected != 1 || job.Totals.Removed != 0 || len(w.store.dead()) != 1 {
					t.Errorf("totals %+v, dead letters %v", job.Totals, w.store.dead())
				}
			})
		})
	}
}

// TestLateRowsOverACrash: the process that requested the late rows crashes before they have ended. The next one waits for
// them.
func TestLateRowsOverACrash(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		lateRows(w)
		w.rejecting(48)
		var down atomic.Bool
		down.Store(true)
		w.upstream.onRecord = func(context.Context, string, string) error {
			if down.Load() {
				return unavailable("the repository answered 500")
			}
			return nil
		}
		reported := make(chan struct{})
		w.afterUpdate = func(_ *process, run core.OrganizationRun) {
			if len(run.Late) > 0 && run.AllPagesDone() {
				w.afterUpdate = nil
				close(reported)
			}
		}
		first := w.boot(-1)
		id := w.run("A", false)
		<-reported
		first.crash()
		_ = first.stop(t, 0)
		down.Store(false)
		w.upstream.rowLatency = 0
		time.Sleep(w.broker.ackWait)
		w.boot(-1)
		job := w.slowJob(id)
		w.ended(job, core.JobPartial, core.JobErrorRecordsRejected)
		want := core.Totals{Expected: 50, Fetched: 50, Indexed: 48, Rejected: 2, Retried: job.Totals.Retried}
		if job.Totals != want || len(w.upstream.pageCalls()) != 2 { // the second is past the end
			t.Errorf("totals %+v, want %+v; pages %v", job.Totals, want, w.upstream.pageCalls())
		}
	})
}

// TestLateRowsOfARereadPage: a page that requested late rows is reread after a crash, when all its rows are in time. They
// count once.
func TestLateRowsOfARereadPage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		lateRows(w)
		requested := make(chan struct{})
		w.afterPublish = func(r core.Request) {
			if r.Scope == core.ScopeRecord && r.RecordID == "A-0049" {
				close(requested)
			}
		}
		first := w.boot(-1)
		id := w.run("A", false)
		<-requested
		first.crash()
		_ = first.stop(t, 0)
		w.afterPublish, w.upstream.rowLatency = nil, 0
		time.Sleep(w.broker.ackWait)
		w.boot(-1)
		job := w.slowJob(id)
		w.ended(job, core.JobSucceeded, "")
		w.verify()
		if got := job.Totals; got.Fetched != 50 || got.Indexed+got.Stale != 50 {
			t.Errorf("totals %+v", got)
		}
	})
}

// TestLateRowsThatDoNotEnd: the upstream fails for the records for longer than the job waits. A cancel does not wait either.
func TestLateRowsThatDoNotEnd(t *testing.T) {
	prepare := func(w *world) *atomic.Bool {
		lateRows(w)
		var up atomic.Bool
		w.upstream.onRecord = func(context.Context, string, string) error {
			if !up.Load() {
				return unavailable("the repository answered 500")
			}
			return nil
		}
		return &up
	}
	t.Run("partial", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			up := prepare(w)
			w.boot(-1)
			job := w.await(w.run("A", false))
			w.ended(job, core.JobPartial, core.JobErrorSweepIncomplete)
			if n := int64(len(w.engine.live())); job.Totals.Indexed != n {
				t.Errorf("totals %+v with %d documents", job.Totals, n)
			}
			up.Store(true)
			w.idle()
			w.verify()
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.cfg.SweepTimeout = time.Hour
			up := prepare(w)
			p := w.boot(-1)
			id := w.run("A", false)
			eventually(t, "a late record", func() bool { return w.upstream.requestsFor("A-0049") > 0 })
			eventually(t, "the end of the page", func() bool {
				runs, err := w.store.runs(id)
				return err == nil && len(runs) == 1 && len(runs[0].Late) > 0
			})
			if _, err := p.c.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			within(t, 10*time.Second, "the end of the page's message", func() bool {
				return w.broker.pendingOf(core.ClassPages) == 0
			})
			up.Store(true)
			w.idle()
			w.verify()
		})
	})
}
