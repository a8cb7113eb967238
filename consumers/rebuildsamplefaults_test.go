package consumers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestRebuildComparesThroughFaults: an index of damaged documents does not replace the one before because the requests and the second
// comparison of those that differ fail.
func TestRebuildComparesThroughFaults(t *testing.T) {
	const damaged = `{"pipeline":true,"studyId":"A","repositories":[{"code":"song"}]}`
	for _, how := range []string{"upstream", "writes", "compare2"} {
		t.Run(how, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 60)
				finished := false
				w.engine.next = newEngine()
				w.engine.next.pipeline = func(string) string { return damaged }
				w.rebuild = filledRebuild{finished: &finished, check: func() {}}
				var calls atomic.Int64
				var open atomic.Bool
				w.upstream.onRecord = func(context.Context, string, string) error {
					n := calls.Add(1)
					if how == "upstream" && n > 60 || how == "compare2" && n > 120 {
						return core.NewError(core.CodeUnavailable, "down")
					}
					return nil
				}
				if how == "writes" {
					item := func(string, core.WriteOp, []byte) (core.Result, bool) {
						return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded}, calls.Load() > 0 && !open.Load()
					}
					w.engine.item, w.engine.next.item = item, item
				}
				w.boot(-1)
				job := w.awaitFor(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID, time.Hour)
				w.upstream.onRecord = nil
				open.Store(true)
				w.idle()
				w.ended(job, core.JobFailed, core.JobErrorContentDiffers)
				if finished {
					t.Error("an index of damaged documents became the repository's")
				}
			})
		})
	}
}

// TestRebuildSampleRejected: a record that the comparison requests, and the index then rejects, is in the totals of the job.
func TestRebuildSampleRejected(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		finished, edited := false, false
		w.engine.next = newEngine()
		w.rebuild = filledRebuild{finished: &finished, check: func() {
			if edited || len(w.engine.next.live()) < 20 {
				return
			}
			edited = true
			w.upstream.edit("A", "A-0003", func(r *record) { r.rev++ })
		}}
		for n := range 20 {
			w.engine.put(fmt.Sprintf("A-%04d", n), 1, `{"older":true,"studyId":"A","repositories":[{"code":"song"}]}`)
		}
		item := func(id string, op core.WriteOp, doc []byte) (core.Result, bool) {
			return core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception"}, id == "A-0003" && op == core.OpIndex && edited
		}
		w.engine.item, w.engine.next.item = item, item
		w.boot(-1)
		job := w.job(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID)
		w.ended(job, core.JobPartial, core.JobErrorRecordsRejected)
		if !finished || job.Totals.Rejected != 1 || len(w.store.dead()) != 1 {
			t.Errorf("replaced: %t, totals %+v, %d dead letters", finished, job.Totals, len(w.store.dead()))
		}
	})
}

// TestRemovedWhileCompared: a record that is removed on request while its document is compared stays removed.
func TestRemovedWhileCompared(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		finished := false
		w.engine.next = newEngine()
		var edited atomic.Bool
		w.rebuild = filledRebuild{finished: &finished, check: func() {
			if edited.Load() || len(w.engine.next.live()) < 20 {
				return
			}
			w.upstream.edit("A", "A-0003", func(r *record) { r.rev++ })
			edited.Store(true)
		}}
		w.engine.put("A-0003", 1, `{"older":true,"studyId":"A","repositories":[{"code":"song"}]}`)
		var once atomic.Bool
		w.upstream.onRecord = func(_ context.Context, _, id string) error {
			if edited.Load() && id == "A-0003" && once.CompareAndSwap(false, true) {
				w.publish(core.Request{Kind: core.KindRemove, Scope: core.ScopeRecord, Organization: "A", RecordID: id, Cause: core.CauseREST})
				for range 10000 {
					if _, has := w.engine.live()[id]; !has {
						break
					}
					time.Sleep(time.Millisecond)
				}
				if _, has := w.engine.live()[id]; has {
					t.Error("the record was not removed")
				}
			}
			return nil
		}
		w.boot(-1)
		w.ended(w.job(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID), core.JobSucceeded, "")
		_, has := w.engine.live()["A-0003"]
		_, hasNext := w.engine.next.live()["A-0003"]
		if !once.Load() || has || hasNext {
			t.Errorf("compared: %t; the removed document is in the index: %t, in the filled one: %t", once.Load(), has, hasNext)
		}
	})
}

// TestRebuildWhileChangesWait: documents whose records have changed, and wait in the queue to be written, do not count as different.
func TestRebuildWhileChangesWait(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const records = 20
		w.upstream.fill("A", records)
		finished := false
		var edited, free atomic.Bool
		w.engine.next = newEngine()
		w.rebuild = filledRebuild{finished: &finished, check: func() {
			if edited.Load() || len(w.engine.next.live()) < records {
				return
			}
			edited.Store(true)
			for n := range records {
				id := fmt.Sprintf("A-%04d", n)
				w.upstream.edit("A", id, func(r *record) { r.rev++ })
				w.index("A", id)
			}
		}}
		item := func(string, core.WriteOp, []byte) (core.Result, bool) {
			return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded}, edited.Load() && !free.Load()
		}
		w.engine.item, w.engine.next.item = item, item
		w.boot(-1)
		job := w.awaitFor(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID, time.Hour)
		w.ended(job, core.JobSucceeded, "")
		if !finished {
			t.Error("the index was not replaced")
		}
		free.Store(true)
		w.idle()
		w.verify()
	})
}
