package consumers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestCancelStopsTheSweep: once a job is cancelled, only documents whose records are being fetched at that moment are
// removed, and no more Requests are published.
func TestCancelStopsTheSweep(t *testing.T) {
	for _, scope := range []string{"A", ""} {
		t.Run("scope "+scope, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				const stored, fetched, concurrency = 600, 50, 4
				w.upstream.fill("A", 1)
				w.seed("A", stored)
				p := w.boot(-1)
				id, calls, published := "", atomic.Int64{}, 0
				w.upstream.onRecord = func(context.Context, string, string) error {
					if calls.Add(1) == fetched {
						if _, err := p.c.Cancel(t.Context(), id); err != nil {
							t.Error(err)
						}
						published = len(w.broker.published(core.ScopeRecord))
					}
					return nil
				}
				id = w.run(scope, true)
				w.idle()
				job, err := w.store.job(id)
				if err != nil {
					t.Fatal(err)
				}
				w.ended(job, core.JobCancelled, core.JobErrorCancelled)
				if n := stored + 1 - len(w.engine.live()); n < fetched-concurrency || n > fetched+concurrency {
					t.Errorf("%d documents were removed, %d records were fetched before the cancel", n, fetched)
				}
				if n := len(w.broker.published(core.ScopeRecord)); n > published+256 {
					t.Errorf("%d Requests were published, %d of them before the cancel", n, published)
				}
				if n := len(w.store.dead()); n > 0 {
					t.Errorf("%d Requests of the cancelled sweep became dead letters", n)
				}
				w.upstream.onRecord = nil
				w.ended(w.job(w.run(scope, true)), core.JobSucceeded, "")
				w.verify()
			})
		})
	}
}

// TestCancelledSweepDoesNotWait: a sweep waits for a record for which the upstream does not respond. A cancel ends that
// wait.
func TestCancelledSweepDoesNotWait(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.cfg.SweepTimeout = time.Hour
		w.upstream.fill("A", 50)
		p := w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.upstream.drop("A", 7, 8)
		called, answer := make(chan struct{}), make(chan struct{})
		w.upstream.onRecord = func(context.Context, string, string) error {
			close(called)
			<-answer
			return nil
		}
		id := w.run("A", false)
		<-called
		if _, err := p.c.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		within(t, 10*time.Second, "the end of the sweep", func() bool { return w.broker.pendingOf(core.ClassPages) == 0 })
		close(answer)
		w.idle()
	})
}

// TestCancelKeepsOtherRequests: a sweep's Request replaces another one for the same record. Cancelling the sweep's job must
// not drop the other request.
func TestCancelKeepsOtherRequests(t *testing.T) {
	failing := func(w *world) *atomic.Bool {
		var fails atomic.Bool
		fails.Store(true)
		w.upstream.onRecord = func(context.Context, string, string) error {
			if fails.Load() {
				return unavailable("the repository answered 500")
			}
			return nil
		}
		return &fails
	}
	prepare := func(t *testing.T, w *world) *process {
		w.upstream.fill("A", 50)
		p := w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.upstream.drop("A", 7, 8)
		return p
	}
	cancel := func(t *testing.T, p *process, id string) {
		t.Helper()
		if _, err := p.c.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	swept := func(w *world, n int) func() bool {
		return func() bool {
			published := 0
			for _, r := range w.broker.published(core.ScopeRecord) {
				if r.AsOf > 0 {
					published++
				}
			}
			return published >= n
		}
	}
	t.Run("a trigger that is retried", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			p := prepare(t, w)
			fails := failing(w)
			w.index("A", "A-0007")
			eventually(t, "a failure", func() bool { return w.upstream.requestsFor("A-0007") > 0 })
			id := w.run("A", false)
			eventually(t, "the sweep", swept(w, 1))
			cancel(t, p, id)
			fails.Store(false)
			w.idle()
			w.verify()
		})
	})
	t.Run("a batch that waits for another", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.upstream.fill("A", 50)
			p := w.boot(-1)
			w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
			fetched, write := make(chan struct{}), make(chan struct{})
			w.upstream.afterRecord = func(context.Context, string, string) {
				w.upstream.afterRecord = nil
				close(fetched)
				<-write
			}
			w.indexAll("A-0007")
			<-fetched
			w.upstream.drop("A", 7, 8)
			w.indexAll("A-0007")
			id := w.run("A", false)
			eventually(t, "the sweep", swept(w, 1))
			eventually(t, "all of them in flight", func() bool { return w.broker.available() == 0 })
			cancel(t, p, id)
			close(write)
			w.idle()
			w.verify()
		})
	})
	t.Run("the sweep of another job", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			p := prepare(t, w)
			fails := failing(w)
			first := w.run("A", false)
			eventually(t, "the first sweep", swept(w, 1))
			second := w.run("", false)
			eventually(t, "the second sweep", swept(w, 2))
			cancel(t, p, second)
			fails.Store(false)
			job := w.awaitFor(first, time.Minute)
			w.ended(job, core.JobSucceeded, "")
			if job.Totals.Removed != 1 {
				t.Errorf("totals %+v", job.Totals)
			}
			w.idle()
			w.verify()
		})
	})
}
