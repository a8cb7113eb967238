package consumers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
)

// invalidate makes the records [from, to) of an organization's list invalid.
func (w *world) invalidate(org string, from, to int) {
	w.upstream.listsUnpublished = true
	w.upstream.change(org, func(l []record) []record {
		for i := from; i < to; i++ {
			l[i].state = "UNPUBLISHED"
		}
		return l
	})
}

// TestInvalidRecords: what the list shows as invalid is removed without a request, under the guard, which counts it together with what
// was not seen.
func TestInvalidRecords(t *testing.T) {
	kinds := map[string]struct {
		scope      string
		difference bool
		pages      bool
		split      func(rec core.Record, each func(id string, document []byte) error) error
		perRecord  int
	}{
		"organization":           {scope: "A", perRecord: 1},
		"repository":             {perRecord: 1},
		"pages":                  {pages: true, perRecord: 1},
		"difference":             {difference: true, perRecord: 1},
		"difference, pages":      {difference: true, pages: true, scope: "A", perRecord: 1},
		"documents of files":     {split: threeLess, pages: true, perRecord: 3},
		"files, an organization": {split: threeLess, scope: "A", perRecord: 3},
	}
	tests := map[string]struct {
		invalid, unseen int
		code            string
	}{
		"few":                    {invalid: 20},
		"few and unseen":         {invalid: 12, unseen: 8},
		"many":                   {invalid: 21, code: core.JobErrorManyInvalid},
		"all":                    {invalid: 100, code: core.JobErrorManyInvalid},
		"together, more invalid": {invalid: 11, unseen: 10, code: core.JobErrorManyInvalid},
		"together, as many":      {invalid: 11, unseen: 11, code: core.JobErrorPruneGuard},
		"together, more unseen":  {invalid: 2, unseen: 19, code: core.JobErrorPruneGuard},
		"only unseen":            {unseen: 21, code: core.JobErrorPruneGuard},
	}
	for kind, k := range kinds {
		for name, tt := range tests {
			t.Run(kind+"/"+name, func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					w.split = k.split
					w.upstream.fill("A", 100)
					if k.pages {
						w.pageSize = 16
					}
					w.boot(-1)
					w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
					before := w.engine.live()
					w.invalidate("A", 0, tt.invalid)
					w.upstream.drop("A", 100-tt.unseen, 100)
					w.difference = k.difference
					gone := int64(k.perRecord * (tt.invalid + tt.unseen))
					drift := func() core.Drift {
						if !k.difference {
							return core.Drift{}
						}
						return core.Drift{Unchanged: 100 - gone, Surplus: gone}
					}
					job := w.job(w.run(k.scope, false))
					if tt.code != "" {
						w.ended(job, core.JobPartial, tt.code)
						if diff := cmp.Diff(before, w.engine.live()); diff != "" || job.Totals.Removed != 0 || w.upstream.requestsFor("") != 0 {
							t.Errorf("totals %+v, %d requests, index %s", job.Totals, w.upstream.requestsFor(""), diff)
						}
						if job.Totals.Drift != drift() {
							t.Errorf("drift %+v, want %+v", job.Totals.Drift, drift())
						}
						w.wantGuardMessage(job, before, gone, tt.invalid, k.perRecord)
						job = w.job(w.run(k.scope, true))
					}
					w.ended(job, core.JobSucceeded, "")
					if job.Totals.Removed != gone || job.Totals.Drift != drift() {
						t.Errorf("totals %+v, want %d removed, drift %+v", job.Totals, gone, drift())
					}
					if asked := w.upstream.requestsFor(""); asked != tt.unseen {
						t.Errorf("%d records were requested, want %d", asked, tt.unseen)
					}
					if left := len(w.engine.live()); left != len(before)-int(gone) {
						t.Errorf("%d documents are left of %d, %d should be gone", left, len(before), gone)
					}
					if notes := w.store.noteCount(); notes != 0 {
						t.Errorf("%d notes are left", notes)
					}
				})
			})
		}
	}
}

// wantGuardMessage checks the number and the first ten ids in the error of the guard. The invalid records have the lowest ids.
func (w *world) wantGuardMessage(job core.Job, before map[string]string, gone int64, invalid, perRecord int) {
	w.t.Helper()
	message := ""
	if job.Error != nil {
		message = job.Error.Message
	}
	var ids []string
	for i := 0; len(ids) < 10; i++ {
		record := i / perRecord
		if record >= invalid {
			record += 100 - int(gone)/perRecord // the unseen ones are at the end
		}
		id := fmt.Sprintf("A-%04d", record)
		if perRecord > 1 {
			id = fmt.Sprintf("%s/%d", id, i%perRecord)
		}
		ids = append(ids, id)
	}
	if !has(message, fmt.Sprintf("%d of %d documents", gone, len(before)), "nothing was removed", ": "+strings.Join(ids, ", ")) ||
		strings.Count(message, "A-") != 10 {
		w.t.Errorf("the guard's message is %q, want %d and %v", message, gone, ids)
	}
}

// TestInvalidRecordsOfGroups: the organizations of a group hold what their lists showed as invalid, or leave the group.
func TestInvalidRecordsOfGroups(t *testing.T) {
	for _, difference := range []bool{false, true} {
		t.Run(fmt.Sprintf("difference %v", difference), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				fillMany(w, 70, 3, 40)
				w.upstream.fill("T", 400)
				w.pageSize = 500
				w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				before := len(w.engine.live())
				w.difference = difference
				w.invalidate("S0003", 0, 2)
				w.invalidate("T", 0, 70) // more than a group holds
				job := w.job(w.run("", false))
				w.ended(job, core.JobSucceeded, "")
				if job.Totals.Removed != 72 || w.upstream.requestsFor("") != 0 || len(w.engine.live()) != before-72 {
					t.Errorf("totals %+v, %d requests, %d documents", job.Totals, w.upstream.requestsFor(""), len(w.engine.live()))
				}
				w.invalidate("S0040", 0, 12) // all of one organization
				job = w.job(w.run("", false))
				w.ended(job, core.JobPartial, core.JobErrorManyInvalid)
				if job.Totals.Removed != 0 || job.Error == nil || !has(job.Error.Message, "S0040: ", "12 of 12 documents") {
					t.Errorf("totals %+v, error %+v", job.Totals, job.Error)
				}
			})
		})
	}
}

// TestInvalidRecordsOverCrashes: wherever a process crashes, the run removes what its list showed as invalid when it was read last.
func TestInvalidRecordsOverCrashes(t *testing.T) {
	for _, steps := range []int64{3, 8, 13, 18, 23, 28, 33, 38, 43, 48, 53, 58, 63, 68} {
		for _, difference := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, difference %v", steps, difference), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					w.broker.ackWait = 3 * time.Second
					w.pageSize = 10
					w.upstream.fill("A", 40)
					w.upstream.fill("B", 40)
					filling := w.boot(-1)
					w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
					_ = filling.stop(t, time.Minute)
					w.invalidate("A", 9, 14)
					w.invalidate("B", 0, 1)
					w.difference = difference
					first := w.boot(steps)
					id := w.run("", false)
					select {
					case <-first.gone:
					case <-time.After(time.Minute): // it has ended before
					}
					_ = first.stop(t, 0)
					w.upstream.edit("A", "A-0011", func(r *record) { r.state = published }) // without a message
					w.boot(-1)
					job := w.job(id)
					w.ended(job, core.JobSucceeded, "")
					w.difference = true
					w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
					w.verify()
					if asked := w.upstream.requestsFor("A-0009") + w.upstream.requestsFor("B-0000"); asked != 0 {
						t.Errorf("%d invalid records were requested", asked)
					}
				})
			})
		}
	}
}

// TestInvalidThenValid: a record that becomes valid after its page, with a message, keeps its document; one in a list of ids, or with a
// trigger of its own, is removed without a guard.
func TestInvalidThenValid(t *testing.T) {
	for _, difference := range []bool{false, true} {
		t.Run(fmt.Sprintf("difference %v", difference), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.pageSize = 10
				w.upstream.fill("A", 40)
				w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				w.invalidate("A", 0, 5)
				w.difference = difference
				w.upstream.onPage = func(_ context.Context, c pageCall) error {
					if c.offset > 25 {
						w.upstream.onPage = nil
						w.upstream.edit("A", "A-0002", func(r *record) { r.state = published })
						w.index("A", "A-0002")
					}
					return nil
				}
				job := w.job(w.run("A", false))
				w.ended(job, core.JobSucceeded, "")
				w.verify()
				if job.Totals.Removed != 4 {
					t.Errorf("totals %+v", job.Totals)
				}
				w.invalidate("A", 0, 40)
				for i := range 20 {
					w.index("A", fmt.Sprintf("A-%04d", i))
				}
				w.idle()
				if n := len(w.engine.live()); n != 20 {
					t.Errorf("%d documents are left", n)
				}
			})
		})
	}
}

// TestInvalidThenWritten: a document that is written between the sweep's scan and its removal is newer than the run, and stays.
func TestInvalidThenWritten(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.invalidate("A", 0, 3)
		const newer = `{"written":"after the scan"}`
		written := false
		w.engine.hold = func(_ context.Context, b core.Batch) error {
			if !written && slices.ContainsFunc(b.Items, func(it core.BatchItem) bool { return it.Op == core.OpDelete && it.ID == "A-0001" }) {
				written = true
				w.engine.put("A-0001", core.Version(time.Now().UnixNano())+1, newer)
			}
			return nil
		}
		job := w.job(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		if left := w.engine.live(); !written || left["A-0001"] != newer || len(left) != 48 || job.Totals.Removed != 2 {
			t.Errorf("%d documents are left, that one is %s, totals %+v", len(left), left["A-0001"], job.Totals)
		}
	})
}

// TestInvalidWhileTheIndexFails: an index that does not answer while the sweep removes delays it; the invalid records need no requests.
func TestInvalidWhileTheIndexFails(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.invalidate("A", 0, 3)
		failures := 2
		w.engine.item = func(_ string, op core.WriteOp, _ []byte) (core.Result, bool) {
			if op != core.OpDelete || failures == 0 {
				return core.Result{}, false
			}
			failures--
			return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeUnavailable}, true
		}
		job := w.job(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		if job.Totals.Removed != 3 || failures > 0 || w.upstream.requestsFor("") != 0 {
			t.Errorf("totals %+v, %d failures left, %d requests", job.Totals, failures, w.upstream.requestsFor(""))
		}
		w.verify()
	})
}

// TestInvalidRecordsOfALateLeaver: an organization that leaves its group after its page was read, because a record was requested by
// itself, takes with it what its list showed.
func TestInvalidRecordsOfALateLeaver(t *testing.T) {
	for _, difference := range []bool{false, true} {
		t.Run(fmt.Sprintf("difference %v", difference), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				fillMany(w, 70)
				w.upstream.fill("T", 20)
				w.pageSize = 50
				w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				w.difference = difference
				w.upstream.edit("T", "T-0001", func(r *record) { r.rev++ })
				w.invalidate("T", 3, 4)
				var alone atomic.Bool
				w.upstream.onRecord = func(_ context.Context, _, id string) error {
					alone.Store(true)
					return nil
				}
				w.engine.item = func(id string, op core.WriteOp, _ []byte) (core.Result, bool) {
					return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded}, op == core.OpIndex && id == "T-0001" && !alone.Load()
				}
				job := w.job(w.run("", false))
				w.ended(job, core.JobSucceeded, "")
				w.verify()
				if asked := w.upstream.requestsFor(""); asked != 1 || w.upstream.requestsFor("T-0001") != 1 || job.Totals.Removed != 1 {
					t.Errorf("%d records were requested, %d removed", asked, job.Totals.Removed)
				}
			})
		})
	}
}
