package consumers_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// TestHeldBackRowsAreNotWritten: rows of a page wait 40 s for a slow index. One of their records is removed after the page
// was requested, and the index forgets that removal, as a shard does that reopens: the row must not reappear.
func TestHeldBackRowsAreNotWritten(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.bulk.BatchCount, w.bulk.MaxInFlight = 10, 1
		w.upstream.fill("A", 100)
		var once sync.Once
		w.engine.hold = func(context.Context, core.Batch) error {
			once.Do(func() {
				time.Sleep(20 * time.Second)
				w.upstream.edit("A", "A-0090", func(r *record) { r.state = "UNPUBLISHED" })
				w.engine.drop("A-0090")
				w.engine.reopen()
				time.Sleep(20 * time.Second)
			})
			return nil
		}
		w.boot(-1)
		w.ended(w.slowJob(w.run("A", false)), core.JobSucceeded, "")
		w.verify()
		n, gone := w.upstream.requestsFor(""), w.upstream.requestsFor("A-0090") // which left the page; the others came in time when it was read again
		if n != gone || n < 1 || n > 2 {
			t.Errorf("%d records were asked for by themselves, %d times the one that left the page", n, gone)
		}
	})
}

// slowJob is job for a job that takes minutes, which job would poll too often.
func (w *world) slowJob(id string) core.Job {
	w.t.Helper()
	job := w.awaitFor(id, 10*time.Hour)
	w.idle()
	return job
}

// aged fails the test for each document written although its body was requested too long ago.
func (w *world) aged() {
	w.engine.item = func(id string, op core.WriteOp, _ []byte) (core.Result, bool) {
		if age := time.Since(w.upstream.requestedAt(id)); op == core.OpIndex && age > bulk.DefaultMaxBodyAge+time.Second {
			w.t.Errorf("%s was written %s after it was asked for", id, age)
		}
		return core.Result{}, false
	}
}

// TestSlowPages: an upstream takes 12 s for a page. Only rows that are too old are requested one by one, the pages become as
// small as necessary, and the sweep does not count requested records as missing.
func TestSlowPages(t *testing.T) {
	for _, disjoint := range []bool{false, true} {
		t.Run(map[bool]string{true: "disjoint", false: "overlapping"}[disjoint], func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.pageSize, w.upstream.nonOverlapping = 500, disjoint
				w.upstream.fill("A", 2000)
				w.boot(-1)
				w.ended(w.slowJob(w.run("A", false)), core.JobSucceeded, "")
				w.upstream.change("A", func(l []record) []record {
					for i := range l {
						l[i].rev++
					}
					return l
				})
				before := len(w.upstream.pageCalls())
				w.upstream.rowLatency = 24 * time.Millisecond
				w.aged()
				w.ended(w.slowJob(w.run("A", false)), core.JobSucceeded, "")
				w.verify()
				reads := map[pageCall]bool{}
				for _, c := range w.upstream.pageCalls()[before:] {
					c.n = 0
					if reads[c] {
						t.Errorf("%+v was read twice", c)
					}
					reads[c] = true
				}
				if n := w.upstream.requestsFor(""); n == 0 || n > 100 {
					t.Errorf("%d of 2000 records were asked for by themselves", n)
				}
			})
		})
	}
}

// TestPagesGrowAgain: pages that became smaller grow to the configured size once the upstream is fast again.
func TestPagesGrowAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 2000)
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.n <= 2 {
				time.Sleep(bulk.DefaultMaxBodyAge)
			}
			return nil
		}
		w.boot(-1)
		w.ended(w.slowJob(w.run("A", false)), core.JobSucceeded, "")
		w.verify()
		var limits []int
		for _, c := range w.upstream.pageCalls()[:6] {
			limits = append(limits, c.limit)
		}
		if want := []int{100, 50, 25, 50, 100, 100}; !slices.Equal(limits, want) {
			t.Errorf("pages of %v rows, want %v", limits, want)
		}
	})
}

// TestSlowIndexProgresses: an index writes five documents a second, so that a page takes 20 s.
func TestSlowIndexProgresses(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.bulk.BatchCount, w.bulk.MaxInFlight, w.engine.latency = 5, 1, time.Second
		w.upstream.fill("A", 500)
		w.aged()
		w.boot(-1)
		w.ended(w.slowJob(w.run("A", false)), core.JobSucceeded, "")
		w.verify()
		if n := w.upstream.requestsFor(""); n > 50 {
			t.Errorf("%d of 500 records were asked for by themselves", n)
		}
	})
}

// TestSlowRecord: a record that takes longer to fetch than the maximum age of a body is still written.
func TestSlowRecord(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		w.upstream.latency = 12 * time.Second
		w.boot(-1)
		w.index("A", "A-0000")
		w.idle()
		w.verify()
	})
}

// TestSweepWithLateRows: two thirds of a page were too old and are being requested one by one when the run is swept. They do
// not count as records that the upstream lost.
func TestSweepWithLateRows(t *testing.T) {
	for _, scope := range []string{"A", ""} {
		t.Run("of "+scope, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.pageSize = 500
				w.upstream.fill("A", 500)
				w.boot(-1)
				w.ended(w.slowJob(w.run(scope, false)), core.JobSucceeded, "")
				w.upstream.drop("A", 0, 1)
				w.upstream.rowLatency, w.upstream.latency = 60*time.Millisecond, 100*time.Millisecond
				job := w.slowJob(w.run(scope, false))
				w.ended(job, core.JobSucceeded, "")
				w.verify()
				if n := w.upstream.requestsFor(""); job.Totals.Removed != 1 || n < 300 {
					t.Errorf("%d records were removed, %d asked for by themselves", job.Totals.Removed, n)
				}
			})
		})
	}
}
