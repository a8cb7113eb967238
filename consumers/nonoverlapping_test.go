package consumers_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

func (w *world) onlyRun(job core.Job) core.OrganizationRun {
	w.t.Helper()
	runs, err := w.store.runs(job.ID)
	if err != nil || len(runs) != 1 {
		w.t.Fatalf("%d organizations (%v), want one", len(runs), err)
	}
	return runs[0]
}

// TestNonOverlappingPages: an unchanged list is read once, each row once, whatever its length.
func TestNonOverlappingPages(t *testing.T) {
	for _, rows := range []int{0, 1, 9, 10, 11, 95, 100} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.nonOverlapping, w.pageSize = true, 10
				w.upstream.fill("A", rows)
				w.boot(-1)
				job := w.job(w.run("A", true))
				w.ended(job, core.JobSucceeded, "")
				w.verify()
				want := core.Totals{Expected: int64(rows), Fetched: int64(rows), Indexed: int64(rows)}
				if job.Totals != want {
					t.Errorf("totals %+v, want %+v", job.Totals, want)
				}
				if calls, want := w.upstream.wholePages(10), rows/10+1; calls != want {
					t.Errorf("%d pages were read, want %d", calls, want)
				}
				if n := w.store.noteCount(); n != 0 {
					t.Errorf("the ids of %d pages are still kept", n)
				}
			})
		})
	}
}

// wholePages counts the calls for pages of a size; the rows between them are requested one by one.
func (u *upstream) wholePages(size int) int {
	return len(slices.DeleteFunc(u.pageCalls(), func(c pageCall) bool { return c.limit != size }))
}

// shift changes the list once, when a page of it is requested.
func (w *world) shift(atCall int, edit func([]record) []record) {
	w.upstream.onPage = func(_ context.Context, c pageCall) error {
		if c.n == atCall {
			w.upstream.change(c.org, edit)
		}
		return nil
	}
}

// TestNonOverlappingShift: rows that move while the list is read are found by rereading it. A record that disappears after
// it was read is removed by the next run, as with any list.
func TestNonOverlappingShift(t *testing.T) {
	edits := map[string]func(l []record) []record{
		"a row goes before what was read": func(l []record) []record { return slices.Delete(l, 0, 1) },
		"one goes and one comes": func(l []record) []record {
			return append(slices.Delete(l, 0, 1), record{id: "A-new", org: "A", state: published})
		},
		"a row comes before what was read": func(l []record) []record { return slices.Insert(l, 0, record{id: "A-new", org: "A", state: published}) },
		"the end goes":                     func(l []record) []record { return l[:12] },
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.nonOverlapping, w.pageSize = true, 10
				w.upstream.fill("A", 40)
				w.shift(3, edit)
				w.boot(-1)
				job := w.job(w.run("A", true))
				w.ended(job, core.JobSucceeded, "")
				got := w.engine.live()
				for id := range w.upstream.model() {
					if got[id] == "" {
						t.Errorf("%s is not in the index", id)
					}
				}
				run := w.onlyRun(job)
				if run.Rereads != 1 {
					t.Errorf("the list was read again %d times, want once", run.Rereads)
				}
				rows, records := int64(len(w.upstream.model())), int64(len(got))
				if job.Totals.Expected != rows || job.Totals.Fetched < rows || job.Totals.Fetched > records {
					t.Errorf("totals %+v, want %d expected, and between that and %d fetched", job.Totals, rows, records)
				}
				w.ended(w.job(w.run("A", true)), core.JobSucceeded, "")
				w.verify()
			})
		})
	}
}

// TestNonOverlappingShiftsRepeatedly: a list that moves in both readings ends the job partial and unswept, with all rows
// that were read in the index.
func TestNonOverlappingShiftsRepeatedly(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.nonOverlapping, w.pageSize = true, 10
		w.upstream.fill("A", 40)
		w.seed("A", 3) // would be swept
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.offset == 20 {
				w.upstream.change("A", func(l []record) []record { return slices.Delete(l, 0, 1) })
			}
			return nil
		}
		w.boot(-1)
		job := w.job(w.run("A", true))
		w.ended(job, core.JobPartial, core.JobErrorListShifted)
		if run := w.onlyRun(job); run.Rereads != 1 || run.Totals.Removed != 0 {
			t.Errorf("run: %+v", run)
		}
		if n := w.store.noteCount(); n != 0 {
			t.Errorf("the ids of %d pages are still kept", n)
		}
	})
}

// TestNonOverlappingCrashBeforeReread: the process crashes after it stored that the list is restarted and before the first
// page's Request is stored.
func TestNonOverlappingCrashBeforeReread(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.nonOverlapping, w.pageSize = true, 10
		w.upstream.fill("A", 40)
		w.shift(3, func(l []record) []record { return slices.Delete(l, 0, 1) })
		var first *process
		w.onPublish = func(r core.Request) error {
			if r.Scope == core.ScopePage && r.Page.Epoch == 1 && r.Page.Number == 0 {
				first.crash()
				return unavailable("the process died")
			}
			return nil
		}
		first = w.boot(-1)
		id := w.run("A", false)
		<-first.gone
		_ = first.stop(t, 0)
		w.onPublish = nil
		w.boot(-1)
		job := w.job(id)
		w.ended(job, core.JobSucceeded, "")
		if run := w.onlyRun(job); run.Rereads != 1 || run.Totals.Fetched != 39 {
			t.Errorf("run: %+v", run)
		}
	})
}

// TestNonOverlappingStopInSweep: a process that stops while an organization is swept has already judged its list.
func TestNonOverlappingStopInSweep(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.nonOverlapping, w.pageSize = true, 10
		w.upstream.fill("A", 40)
		w.seed("A", 3)
		var mended atomic.Bool
		w.upstream.onRecord = func(context.Context, string, string) error {
			if mended.Load() {
				return nil
			}
			return unavailable("not now")
		}
		id := w.run("A", false)
		for range 2 {
			before := w.upstream.requestsFor("")
			p := w.boot(-1)
			eventually(t, "the sweep", func() bool { return w.upstream.requestsFor("") > before })
			_ = p.stop(t, time.Second)
		}
		mended.Store(true)
		w.boot(-1)
		job := w.job(id)
		w.ended(job, core.JobSucceeded, "")
		w.verify()
		if calls := w.upstream.wholePages(10); calls != 5 {
			t.Errorf("%d pages were read, want 5", calls)
		}
		if n := w.store.noteCount(); n != 0 {
			t.Errorf("the ids of %d pages are still kept", n)
		}
	})
}

// TestNonOverlappingIDsAreRemoved: no ids stay of the pages of a list that could not be read, or whose job was cancelled.
func TestNonOverlappingIDsAreRemoved(t *testing.T) {
	for name, cancel := range map[string]bool{"failed": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.nonOverlapping, w.pageSize = true, 10
				w.upstream.fill("A", 40)
				reached := make(chan struct{})
				var once sync.Once
				w.upstream.onPage = func(ctx context.Context, c pageCall) error {
					if c.offset < 30 {
						return nil
					}
					once.Do(func() { close(reached) })
					if cancel {
						<-time.After(time.Minute)
						return nil
					}
					return core.NewError(core.CodeUpstream, "the repository answered 400")
				}
				p := w.boot(-1)
				id := w.run("A", false)
				<-reached
				if cancel {
					if _, err := p.c.Cancel(t.Context(), id); err != nil {
						t.Fatal(err)
					}
				}
				w.idle()
				if job, err := w.store.job(id); err != nil || job.State == core.JobSucceeded {
					t.Errorf("job %+v, %v", job, err)
				}
				if n := w.store.noteCount(); n != 0 {
					t.Errorf("the ids of %d pages are still kept", n)
				}
			})
		})
	}
}
