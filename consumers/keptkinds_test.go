package consumers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/consumers"
	"tutti/internal/core"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
)

// wantDecided fails unless a rebuild decides the types that the list decides, of which v has the given one. It returns the note of the job.
func (w *world) wantDecided(types *map[string]mapping.Type, v mapping.Type) (note string) {
	w.t.Helper()
	*types = nil
	job := w.job(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID)
	if job.Error == nil || !strings.Contains(job.Error.Message, "decided") {
		w.t.Fatalf("the rebuild ended as %+v", job)
	}
	if want := typesOf(w.listed(), kinds.Given{}); !maps.Equal(*types, want) || (*types)["v"] != v {
		w.t.Errorf("v is of type %q, want %q; note %q (-from the list +got):\n%s", (*types)["v"], v, job.Note, cmp.Diff(want, *types))
	}
	return job.Note
}

// ended reports whether a value of a cell is that of a run that has ended.
func ended(value string) bool {
	fields := strings.Fields(value)
	return len(fields) > 1 && strings.Contains(fields[1], ",")
}

// TestRejectedAfterTheRun: a Request that a page of a run publishes once the run has ended, or while another process ends it once more, has
// read its record later than the run counted it: if it is rejected, its kind is what it is now, not what was counted.
func TestRejectedAfterTheRun(t *testing.T) {
	for name, crashes := range map[string]bool{"run has ended": false, "ended twice": true} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.counting(core.MaxKindsBytes)
				w.upstream.fill("A", 1)
				w.upstream.edit("A", "A-0000", func(r *record) { r.v = "1" })
				w.engine.item = func(_ string, op core.WriteOp, _ []byte) (core.Result, bool) {
					return core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception"}, op == core.OpIndex
				}
				var types map[string]mapping.Type
				w.rebuild = decidingRebuild{types: &types}
				crashed := make(chan struct{})
				w.onSetCell = func(p *process, value string) error {
					if ended(value) && crashes {
						crashes = false
						p.crash()
						close(crashed)
					}
					return nil
				}
				twice := crashes
				w.boot(-1)
				run := w.run("", false)
				if twice {
					<-crashed
				} else {
					w.ended(w.job(run), core.JobPartial, core.JobErrorRecordsRejected)
				}
				before := w.store.dead()["A-0000"].Version
				w.upstream.edit("A", "A-0000", func(r *record) { r.v, r.rev = `"x"`, r.rev+1 })
				w.publish(core.Request{Scope: core.ScopeRecord, Organization: "A", RecordID: "A-0000", JobID: run})
				if twice {
					w.boot(-1)
					eventually(t, "the Request", func() bool { return w.store.dead()["A-0000"].Version > before })
					if job, err := w.store.job(run); err != nil || job.State.Final() {
						t.Fatalf("the run has ended before its second end: %+v, %v", job, err)
					}
					w.ended(w.job(run), core.JobPartial, core.JobErrorRecordsRejected)
				}
				w.idle()
				if letter := w.store.dead()["A-0000"]; letter.Version <= before || letter.JobID != run {
					t.Fatalf("the dead letter is %+v", letter)
				}
				w.wantDecided(&types, mapping.Keyword)
			})
		})
	}
}

// TestEndOfAnotherRun: a run that cannot store what it has counted does not say of an earlier one, which has left documents that it had not
// counted, that its counts are of all documents.
func TestEndOfAnotherRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.counting(core.MaxKindsBytes)
		w.upstream.fill("A", 40)
		returned := func(from, to int, v string) []record {
			var all []record
			for i := from; i < to; i++ {
				all = append(all, record{id: fmt.Sprintf("A-%04d", i), org: "A", state: published, v: v})
			}
			return all
		}
		texts, numbers := returned(0, 15, `"x"`), returned(40, 55, "1")
		w.upstream.change("A", func(all []record) []record { return append(all[15:], texts...) })
		var types map[string]mapping.Type
		w.rebuild = decidingRebuild{types: &types}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.upstream.change("A", func(all []record) []record { return append(all[:25], numbers...) })
		w.ended(w.job(w.run("", false)), core.JobPartial, core.JobErrorPruneGuard)
		w.upstream.change("A", func(all []record) []record { return append(all[:25], texts...) })
		for _, r := range numbers {
			w.remove("A", r.id)
		}
		w.idle()
		failed := false
		w.onSetCell = func(_ *process, value string) error {
			if fields := strings.Fields(value); len(fields) == 3 && !ended(value) {
				failed = true
				return unavailable("the cell cannot be stored")
			}
			return nil
		}
		w.difference = true // which writes no document that is as it was
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		if !failed {
			t.Fatal("no counts were to be stored")
		}
		w.wantDecided(&types, mapping.Keyword)
	})
}

// TestRunThatFails: a run that has not read all leaves the counts of the one before.
func TestRunThatFails(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.counting(core.MaxKindsBytes)
		w.upstream.fill("A", 20)
		w.upstream.fill("B", 20)
		var types map[string]mapping.Type
		w.rebuild = decidingRebuild{types: &types}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.difference = true // which writes no document that is as it was
		w.upstream.onPage = func(_ context.Context, call pageCall) error {
			if call.org == "B" {
				return core.NewError(core.CodeUpstream, "the list cannot be read")
			}
			return nil
		}
		if job := w.job(w.run("", false)); job.State != core.JobPartial {
			t.Fatalf("the run ended as %+v", job)
		}
		w.upstream.onPage = nil
		job := w.job(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID)
		if want := typesOf(w.listed(), kinds.Given{}); job.Note != "" || !maps.Equal(types, want) {
			t.Errorf("note %q (-from the list +got):\n%s", job.Note, cmp.Diff(want, types))
		}
	})
}

// uncounting is a KindCounter that counts nothing of the first page, as a process of a release that counts no kinds.
type uncounting struct {
	consumers.KindCounter
	pages *atomic.Int64
}

func (c uncounting) Take(records int64) core.Kinds {
	all := c.KindCounter.Take(records)
	if records > 0 && c.pages.Add(1) == 1 {
		return nil
	}
	return all
}

// TestUncountedPage: counts that lack records do not decide.
func TestUncountedPage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var pages atomic.Int64
		w.kinds = func() consumers.KindCounter {
			return uncounting{kinds.NewCounter(nil, core.MaxKindsBytes), &pages}
		}
		w.pageSize = 10
		w.upstream.fill("A", 15)
		for i := range 10 {
			w.upstream.edit("A", fmt.Sprintf("A-%04d", i), func(r *record) { r.v = `"x"` })
		}
		w.upstream.edit("A", "A-0012", func(r *record) { r.v = "1" })
		var types map[string]mapping.Type
		w.rebuild = decidingRebuild{types: &types}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		if note := w.wantDecided(&types, mapping.Keyword); !strings.HasSuffix(note, "the last run could not count the JSON kinds of all records") {
			t.Errorf("the note is %q", note)
		}
	})
}

// TestDocumentsOfAnOrganizationStay: counts of a run that leaves documents of one organization that it had not counted do not decide.
func TestDocumentsOfAnOrganizationStay(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.counting(core.MaxKindsBytes)
		returned := func(from int, v string) (all []record) {
			for i := from; i < from+15; i++ {
				all = append(all, record{id: fmt.Sprintf("B-%04d", i), org: "B", state: published, v: v})
			}
			return all
		}
		texts, numbers := returned(0, `"x"`), returned(20, "1")
		list := func(records []record) {
			w.upstream.change("B", func([]record) []record { return slices.Clone(records) })
		}
		w.upstream.fill("A", 100)
		w.upstream.fill("B", 0)
		list(texts)
		var types map[string]mapping.Type
		w.rebuild = decidingRebuild{types: &types}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		list(numbers)
		w.ended(w.job(w.run("", false)), core.JobPartial, core.JobErrorPruneGuard)
		list(texts)
		for _, r := range numbers {
			w.remove("B", r.id)
		}
		w.idle()
		w.wantDecided(&types, mapping.Keyword)
	})
}

// TestWaitingRequestOfSeveralDocuments: what the documents of a record were when they were counted does not decide while the Request for its
// change waits.
func TestWaitingRequestOfSeveralDocuments(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.split = twoOrThree
		w.counting(core.MaxKindsBytes)
		w.upstream.fill("A", 1)
		w.upstream.edit("A", "A-0000", func(r *record) { r.v = "1" })
		var types map[string]mapping.Type
		w.rebuild = decidingRebuild{types: &types}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.upstream.edit("A", "A-0000", func(r *record) { r.v, r.rev = `"x"`, r.rev+2 })
		var decided atomic.Bool
		var calls atomic.Int64
		w.upstream.onRecord = func(context.Context, string, string) error {
			if calls.Add(1) == 1 { // the rebuild reads the record by itself while its Request waits
				eventually(t, "the rebuild", decided.Load)
			}
			return nil
		}
		w.index("A", "A-0000")
		eventually(t, "the Request", func() bool { return calls.Load() > 0 })
		w.await(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID)
		decided.Store(true)
		if want := typesOf(w.listed(), kinds.Given{}); !maps.Equal(types, want) || types["f0"] != mapping.Keyword {
			t.Errorf("(-from the list +got):\n%s", cmp.Diff(want, types))
		}
		w.idle()
	})
}
