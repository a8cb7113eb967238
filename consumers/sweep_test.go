package consumers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tutti/internal/core"
)

func TestSweep(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 200)
		w.upstream.fill("B", 1)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.upstream.drop("A", 10, 15)
		w.upstream.edit("A", "A-0020", func(r *record) { r.state = "UNPUBLISHED" })
		w.upstream.drop("B", 0, 1) // another organization is not touched
		job := w.job(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		if job.Totals.Removed != 6 || job.Totals.Indexed != 194 {
			t.Errorf("totals %+v", job.Totals)
		}
		want := w.upstream.model()
		want["B-0000"] = record{id: "B-0000", org: "B", state: published}.document()
		w.same(want)
		for _, r := range w.broker.published(core.ScopeRecord) {
			if r.Cause != core.CauseSweep || r.Kind != core.KindIndex || r.JobID != job.ID {
				t.Errorf("a sweep asked with %+v", r)
			}
		}
	})
}

// TestSweepRequestsFirst: a list may omit an existing record; nothing is removed because of the list only.
func TestSweepRequestsFirst(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 100)
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		omitted := w.upstream.lists["A"][40:45]
		w.upstream.onPage = func(context.Context, pageCall) error { // the list omits them, the records are there
			w.upstream.drop("A", 40, 45)
			return nil
		}
		w.upstream.onRecord = func(context.Context, string, string) error {
			w.upstream.change("A", func(l []record) []record {
				if len(l) < 100 {
					l = append(l, omitted...)
				}
				return l
			})
			return nil
		}
		job := w.job(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		if job.Totals.Removed != 0 {
			t.Errorf("totals %+v", job.Totals)
		}
		w.verify()
	})
}

func TestPruneGuard(t *testing.T) {
	tests := []struct {
		stored, gone int
		guarded      bool
	}{
		{100, 20, false}, // not more than 20 %
		{100, 21, true},
		{20, 10, false}, // not more than 10
		{20, 11, true},
		{10, 9, false},
		{10, 10, true}, // all of them
		{1, 1, true},
		{0, 0, false},
		{1000, 200, false},
		{1000, 201, true},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d of %d", tt.gone, tt.stored), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.pageSize = 500
				w.upstream.fill("A", tt.stored)
				w.boot(-1)
				w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
				before := w.engine.live()
				w.upstream.drop("A", 0, tt.gone)
				job := w.job(w.run("A", false))
				if tt.guarded {
					w.ended(job, core.JobPartial, core.JobErrorPruneGuard)
					if len(w.engine.live()) != len(before) || w.upstream.requestsFor("") != 0 || job.Totals.Removed != 0 {
						t.Errorf("guarded, and yet %d of %d are left, %d were asked for", len(w.engine.live()), len(before), w.upstream.requestsFor(""))
					}
					job = w.job(w.run("A", true))
				}
				w.ended(job, core.JobSucceeded, "")
				if job.Totals.Removed != int64(tt.gone) {
					t.Errorf("totals %+v", job.Totals)
				}
				w.verify()
			})
		})
	}
}

// TestSweepSparesOtherRepositories: the index may hold documents of another repository.
func TestSweepSparesOtherRepositories(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 5)
		for _, org := range []string{"A", "X"} {
			w.engine.put("theirs-"+org, 1, `{"repositories":[{"code":"lyric"}],"studyId":"`+org+`"}`)
		}
		w.boot(-1)
		w.ended(w.job(w.run("", true)), core.JobSucceeded, "")
		for _, id := range []string{"theirs-A", "theirs-X"} {
			if _, kept := w.engine.live()[id]; !kept || w.upstream.requestsFor(id) != 0 {
				t.Errorf("another repository's document %s was swept", id)
			}
		}
	})
}

// TestSweepWaits: a job ends only after the records that its sweep requested have their outcome, however long that takes.
func TestSweepWaits(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.upstream.drop("A", 0, 3)
		failures := 20
		w.upstream.onRecord = func(_ context.Context, _, id string) error {
			if failures--; failures >= 0 {
				return unavailable("the repository answered 500")
			}
			return nil
		}
		job := w.await(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		if job.Totals.Removed != 3 || failures > 0 {
			t.Errorf("totals %+v", job.Totals)
		}
		w.verify()
	})
}

// TestRejectedIsNotSwept: a document that the index rejects now keeps its old version in the index, and the job that read it
// ends partial, with the rest of its sweep done.
func TestRejectedIsNotSwept(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		w.boot(-1)
		w.upstream.fill("B", 3)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		want := w.engine.live()
		w.engine.item = func(id string, op core.WriteOp, _ []byte) (core.Result, bool) {
			return core.Result{Outcome: core.OutcomeRejected, Type: "x"}, op == core.OpIndex && id == "A-0004"
		}
		for i, scope := range []string{"A", ""} {
			w.upstream.drop("A", 6, 7)
			w.seed("C", i) // no longer listed: only a sweep of the whole repository finds it
			delete(want, fmt.Sprintf("A-%04d", 6+i))
			job := w.job(w.run(scope, false))
			w.ended(job, core.JobPartial, core.JobErrorRecordsRejected)
			if !has(job.Error.Message, "1 record ", "dead letters") {
				t.Errorf("message %q", job.Error.Message)
			}
			w.same(want)
			if _, dead := w.store.dead()["A-0004"]; !dead || job.Totals.Removed != int64(1+i) || job.Totals.Rejected != 1 {
				t.Errorf("dead letters %v, totals %+v", w.store.dead(), job.Totals)
			}
			runs, err := w.store.runs(job.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range runs {
				if want := map[string]core.JobState{"A": core.JobPartial, "B": core.JobSucceeded}[run.Organization]; run.State != want {
					t.Errorf("%s ended as %s, want %s", run.Organization, run.State, want)
				}
			}
		}
		w.upstream.drop("A", 6, 7)
		delete(want, "A-0008")
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.org == "B" {
				return core.NewError(core.CodeUpstream, "the repository answered 400")
			}
			return nil
		}
		job := w.job(w.run("", false))
		w.ended(job, core.JobPartial, "upstream_error")
		w.same(want) // A was swept although B could not be read
	})
}

func TestIndexFailsWhileSweeping(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 50)
		p := w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.upstream.drop("A", 0, 3)
		w.engine.onRefresh = func() {
			w.engine.setDown(core.NewError(core.CodeIndexBlocked, "the index is closed"))
			w.engine.onRefresh = nil
		}
		id := w.run("A", false)
		eventually(t, "the pause", func() bool { return len(p.c.Paused()) == 1 })
		w.engine.setDown(nil)
		job := w.job(id)
		w.ended(job, core.JobSucceeded, "")
		if job.Totals.Removed != 3 {
			t.Errorf("totals %+v", job.Totals)
		}
		w.verify()
	})
}

// TestSweepReadsBeyondTheCheckpoint: a record is fetched before a run starts, and written after that, with the older
// version; then it leaves the list. The run's sweep must find it although it was written after the run's start.
func TestSweepReadsBeyondTheCheckpoint(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 100)
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		fetched, write := make(chan struct{}), make(chan struct{})
		w.upstream.change("A", func(l []record) []record {
			return append(l, record{id: "late", org: "A", state: published})
		})
		w.upstream.afterRecord = func(context.Context, string, string) {
			w.upstream.afterRecord = nil
			close(fetched)
			<-write
		}
		w.index("A", "late")
		<-fetched
		w.upstream.drop("A", 100, 101)
		w.upstream.onPage = func(context.Context, pageCall) error {
			select {
			case <-write:
			default:
				close(write)
			}
			return nil
		}
		job := w.job(w.run("A", false))
		w.ended(job, core.JobSucceeded, "")
		w.verify()
		if job.Totals.Removed != 1 || job.StartCheckpoint != "" {
			t.Errorf("totals %+v, mark %q; want one removed and no mark", job.Totals, job.StartCheckpoint)
		}
	})
}

// TestSweepFromTheCheckpoint: a run that starts while nothing else is in flight takes the index's checkpoint, so that its
// sweep reads the earlier documents and not those it has written itself.
func TestSweepFromTheCheckpoint(t *testing.T) {
	for _, scope := range []string{"A", ""} {
		t.Run("scope "+scope, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 100)
				w.boot(-1)
				w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
				w.upstream.drop("A", 50, 55)
				before := w.engine.scanned.Load()
				job := w.job(w.run(scope, false))
				w.ended(job, core.JobSucceeded, "")
				if job.Totals.Removed != 5 || job.StartCheckpoint == "" {
					t.Errorf("totals %+v, mark %q", job.Totals, job.StartCheckpoint)
				}
				if n := w.engine.scanned.Load() - before; n != 5 {
					t.Errorf("the sweep read %d documents, want the 5 that are older than the run", n)
				}
				w.verify()
			})
		})
	}
}

// TestOneSweep: organizations that end at the same time sweep their job once: each document that was not seen is requested
// once, and counted.
func TestOneSweep(t *testing.T) {
	for round := range 10 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				orgs := []string{"A", "B", "C", "D", "E", "F", "G", "H"}
				for _, org := range orgs {
					w.upstream.fill(org, 40)
					w.seed(org, 3)
				}
				w.upstream.latency = 10 * time.Millisecond
				w.listingTakes = time.Second // so that all have ended before one of them looks
				w.boot(-1)
				job := w.job(w.run("", true))
				w.ended(job, core.JobSucceeded, "")
				w.verify()
				if asked := w.upstream.requestsFor(""); asked != 24 || job.Totals.Removed != 24 {
					t.Errorf("%d records were asked for, %d removed, want 24 of each", asked, job.Totals.Removed)
				}
			})
		})
	}
}
