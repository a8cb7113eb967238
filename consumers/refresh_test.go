package consumers_test

import (
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestEndedJobCanBeSearched: searches see what a job has written and removed when it ends, for one refresh of the index,
// whatever the number of its records, and none for a record that is requested by itself.
func TestEndedJobCanBeSearched(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, org := range []string{"A", "B", "C"} {
			w.upstream.fill(org, 250)
		}
		w.boot(-1)
		before := 0
		run := func(name, org string, refreshes int) {
			t.Helper()
			w.ended(w.await(w.run(org, false)), core.JobSucceeded, "")
			found, n := w.engine.found()
			if want := w.upstream.model(); !maps.Equal(found, want) {
				t.Errorf("%s: %d documents are found of %d", name, len(found), len(want))
			}
			if n-before != refreshes {
				t.Errorf("%s: the index was refreshed %d times, want %d", name, n-before, refreshes)
			}
			before = n
		}
		run("a new index", "", 1)
		w.upstream.drop("A", 0, 1)
		run("a repository with a sweep", "", 2)
		w.upstream.drop("B", 0, 1)
		run("an organization with a sweep", "B", 2)
		w.index("C", "C-0000")
		w.idle()
		if _, n := w.engine.found(); n != before {
			t.Errorf("a record by itself was refreshed %d times", n-before)
		}
	})
}

// TestFailedRefresh: a job whose documents cannot be made visible does not succeed, and still ends.
func TestFailedRefresh(t *testing.T) {
	for name, c := range map[string]struct {
		old   int // documents before the job
		fails int
		state core.JobState
		code  string
	}{
		"for a while":              {fails: 4, state: core.JobSucceeded},
		"for a while, for a sweep": {old: 3, fails: 4, state: core.JobSucceeded},
		"for good":                 {fails: 1 << 30, state: core.JobPartial, code: core.JobErrorNotRefreshed},
		"for good, for a sweep":    {old: 3, fails: 1 << 30, state: core.JobPartial, code: core.JobErrorNotRefreshed},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 20)
				w.seed("A", c.old)
				left := c.fails
				w.engine.refuseRefresh = func() error {
					if left--; left >= 0 {
						return unavailable("not all shards of the index answered")
					}
					return nil
				}
				w.boot(-1)
				job := w.job(w.run("", false))
				w.ended(job, c.state, c.code)
				want := core.Totals{Expected: 20, Fetched: 20, Indexed: 20}
				if c.code == "" {
					want.Removed = int64(c.old)
				}
				if job.Totals != want {
					t.Errorf("totals %+v, want %+v", job.Totals, want)
				}
			})
		})
	}
}

// TestRefreshWaitsForIndex: a job waits while the index is down at its end, however long, and can be cancelled.
func TestRefreshWaitsForIndex(t *testing.T) {
	for name, cancel := range map[string]bool{"until it is back": false, "until the job is cancelled": true} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 20)
				var down atomic.Bool
				w.engine.onRefresh = func() {
					if down.CompareAndSwap(false, true) {
						w.engine.setDown(unavailable("the index does not answer"))
					}
				}
				p := w.boot(-1)
				id := w.run("", false)
				eventually(t, "the pause", func() bool { return down.Load() && len(p.c.Paused()) > 0 })
				time.Sleep(time.Hour) // of fake time
				if job, err := w.store.job(id); err != nil || job.State != core.JobRunning {
					t.Errorf("the job is %s, %v", job.State, err)
				}
				state, code := core.JobSucceeded, ""
				if cancel {
					if _, err := p.c.Cancel(t.Context(), id); err != nil {
						t.Fatal(err)
					}
					state, code = core.JobCancelled, core.JobErrorCancelled
				}
				w.engine.setDown(nil)
				w.ended(w.job(id), state, code)
			})
		})
	}
}
