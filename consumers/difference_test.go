package consumers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// TestDifference: a run of the difference writes and requests only the records whose documents are not what they should be.
func TestDifference(t *testing.T) {
	for _, scope := range []string{"A", ""} {
		t.Run("of "+scope, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.pageSize = 50
				w.upstream.fill("A", 300)
				w.upstream.fill("B", 100)
				w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				w.difference = true
				indexed, lists := w.engine.outcomes[core.OutcomeIndexed], len(w.upstream.pageCalls())
				job := w.job(w.run(scope, false))
				w.ended(job, core.JobSucceeded, "")
				n := int64(300)
				if scope == "" {
					n = 400
				}
				if want := (core.Totals{Expected: n, Fetched: n, Drift: core.Drift{Unchanged: n}}); job.Totals != want {
					t.Errorf("totals %+v, want %+v", job.Totals, want)
				}
				if got := w.engine.outcomes[core.OutcomeIndexed]; got != indexed || w.upstream.requestsFor("") != 0 {
					t.Errorf("%d documents were written, %d records fetched alone", got-indexed, w.upstream.requestsFor(""))
				}
				if read := len(w.upstream.pageCalls()) - lists; int64(read) > n/50+4 {
					t.Errorf("%d pages were read", read)
				}

				w.upstream.edit("A", "A-0007", func(r *record) { r.rev++ })
				w.upstream.edit("A", "A-0120", func(r *record) { r.rev++ })
				w.upstream.edit("A", "A-0200", func(r *record) { r.state = "UNPUBLISHED" })
				w.upstream.drop("A", 10, 12)
				w.engine.drop("A-0299")
				w.engine.put("A-gone", 1, record{id: "A-gone", org: "A", state: published}.document()) // as after the restart of an engine
				job = w.job(w.run(scope, false))
				w.ended(job, core.JobSucceeded, "")
				want := core.Totals{
					Expected: n - 3, Fetched: n - 3, Indexed: 3, Removed: 4,
					Drift: core.Drift{Unchanged: n - 6, Missing: 1, Different: 2, Surplus: 4},
				}
				if job.Totals != want {
					t.Errorf("totals %+v, want %+v", job.Totals, want)
				}
				if got := w.engine.outcomes[core.OutcomeIndexed]; got != indexed+3 || w.upstream.requestsFor("") != 4 {
					t.Errorf("%d documents were written, %d records fetched alone", got-indexed, w.upstream.requestsFor(""))
				}
				w.verify()
				if notes := w.store.noteCount(); notes != 0 {
					t.Errorf("%d notes are left", notes)
				}
			})
		})
	}
}

// TestDifferenceGuard: the guard counts the documents without a record on the list.
func TestDifferenceGuard(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 100)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.difference = true
		w.upstream.drop("A", 0, 21)
		job := w.job(w.run("", false))
		w.ended(job, core.JobPartial, core.JobErrorPruneGuard)
		if job.Totals.Drift.Surplus != 21 {
			t.Errorf("totals %+v", job.Totals)
		}
		if n := len(w.engine.live()); n != 100 {
			t.Errorf("%d documents are left", n)
		}
		w.ended(w.job(w.run("", true)), core.JobSucceeded, "")
		w.verify()
	})
}

// TestDifferenceWithoutIndex: rows that cannot be compared are written.
func TestDifferenceWithoutIndex(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 100)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.difference = true
		w.onGetAll = func() error { return unavailable("the index does not answer") }
		w.upstream.edit("A", "A-0007", func(r *record) { r.rev++ })
		job := w.job(w.run("", false))
		w.ended(job, core.JobSucceeded, "")
		if want := (core.Totals{Expected: 100, Fetched: 100, Indexed: 100, Drift: core.Drift{Uncompared: 100}}); job.Totals != want {
			t.Errorf("totals %+v, want %+v", job.Totals, want)
		}
		w.verify()
	})
}

// TestDifferenceUnindexable: a row that the list shows and that must not be indexed is surplus if it has a document.
func TestDifferenceUnindexable(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 100)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.difference = true
		w.upstream.listsUnpublished = true
		for i := range 3 {
			w.upstream.edit("A", fmt.Sprintf("A-%04d", 10*i), func(r *record) { r.state = "UNPUBLISHED" })
		}
		job := w.job(w.run("", false))
		w.ended(job, core.JobSucceeded, "")
		w.verify()
		if job.Totals.Drift != (core.Drift{Unchanged: 97, Surplus: 3}) {
			t.Errorf("totals %+v", job.Totals)
		}
		job = w.job(w.run("", false))
		w.ended(job, core.JobSucceeded, "")
		if n := w.upstream.requestsFor(""); n != 0 || job.Totals.Drift != (core.Drift{Unchanged: 100}) {
			t.Errorf("%d records were fetched alone, totals %+v", n, job.Totals)
		}
	})
}

// TestDifferenceStale: a document that is newer than the row is not drift.
func TestDifferenceStale(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.difference = true
		newer := false
		w.upstream.onPage = func(context.Context, pageCall) error {
			if !newer { // after the page was requested, before it is compared
				newer = true
				doc := w.engine.live()["A-0003"]
				w.engine.put("A-0003", core.Version(time.Now().Add(time.Millisecond).UnixNano()), doc[:len(doc)-1]+`,"x":1}`)
			}
			return nil
		}
		job := w.job(w.run("A", false))
		if job.Totals.Drift.Different != 0 {
			t.Errorf("totals %+v", job.Totals)
		}
	})
}

// TestDifferenceRejected: a record that the index rejects is not drift that each comparison finds again.
func TestDifferenceRejected(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		w.engine.item = func(id string, op core.WriteOp, _ []byte) (core.Result, bool) {
			return core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception"}, id == "A-0003" && op == core.OpIndex
		}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobPartial, core.JobErrorRecordsRejected)
		w.difference = true
		for range 2 {
			job := w.job(w.run("", false))
			w.ended(job, core.JobPartial, core.JobErrorRecordsRejected)
			if job.Totals.Drift != (core.Drift{Unchanged: 19}) || job.Totals.Rejected != 1 {
				t.Errorf("totals %+v", job.Totals)
			}
		}
	})
}

// TestDifferenceRepeated: what a run of the difference finds is counted once, though pages are repeated after their documents were written.
func TestDifferenceRepeated(t *testing.T) {
	for seed := range uint64(testkit.Cases(40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				r := rand.New(rand.NewPCG(seed, 2))
				w.broker.ackWait = 3 * time.Second
				w.pageSize = 20 + r.IntN(80)
				orgs := []string{"A", "B", "C"}
				for _, org := range orgs {
					w.upstream.fill(org, 1+r.IntN(200))
				}
				first := w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				_ = first.stop(t, time.Minute)
				var want core.Drift
				for id := range w.upstream.model() {
					switch r.IntN(4) {
					case 0:
						w.upstream.edit(id[:1], id, func(r *record) { r.rev++ })
						want.Different++
					case 1:
						w.engine.drop(id)
						want.Missing++
					default:
						want.Unchanged++
					}
				}
				for want.Surplus < 5 {
					gone := record{id: fmt.Sprintf("A-gone-%d", want.Surplus), org: "A", state: published}
					w.engine.put(gone.id, 1, gone.document())
					want.Surplus++
				}
				w.difference = true
				job := w.run("", false)
				for range 1 + r.IntN(4) {
					if w.outlives(w.boot(r.Int64N(400)), job) {
						break
					}
				}
				w.boot(-1)
				ended := w.job(job)
				w.ended(ended, core.JobSucceeded, "")
				got := ended.Totals.Drift
				if got.Unchanged != want.Unchanged || got.Surplus != want.Surplus || got.Found() != want.Found() || got.Missing > want.Missing {
					t.Errorf("%s, of them %d unchanged; want %s, %d unchanged: %+v", got, got.Unchanged, want, want.Unchanged, ended.Totals)
				}
				w.verify()
			})
		})
	}
}

// TestDifferenceAfterTrigger: a document of a trigger that was stored just before a run began is none that the run has written.
func TestDifferenceAfterTrigger(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		first := w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		_ = first.stop(t, time.Minute)
		w.difference = true
		job := w.run("", false)
		w.index("A", "A-0003")
		w.engine.put("A-0003", w.broker.last, w.engine.live()["A-0003"])
		w.boot(-1)
		if got := w.job(job).Totals.Drift; got != (core.Drift{Unchanged: 20}) {
			t.Errorf("the run found %s, %d unchanged", got, got.Unchanged)
		}
	})
}

// TestDifferenceRetried: a record whose write has no outcome at first is counted once.
func TestDifferenceRetried(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.difference = true
		w.upstream.edit("A", "A-0003", func(r *record) { r.rev++ })
		tries, run := 0, ""
		w.engine.item = func(id string, op core.WriteOp, source []byte) (core.Result, bool) {
			if id != "A-0003" || op != core.OpIndex {
				return core.Result{}, false
			}
			if tries++; tries > 1 {
				return core.Result{}, false
			}
			job, err := w.store.job(run)
			if err != nil {
				t.Error(err)
			}
			w.engine.docs[id] = document{version: job.StartVersion, source: source} // it is written, and its answer is lost
			return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeUnavailable}, true
		}
		run = w.run("", false)
		job := w.job(run)
		if want := (core.Totals{Expected: 20, Fetched: 20, Indexed: 1, Retried: 1, Drift: core.Drift{Unchanged: 19, Different: 1}}); job.Totals != want || tries != 2 {
			t.Errorf("totals %+v, want %+v, after %d writes", job.Totals, want, tries)
		}
	})
}
