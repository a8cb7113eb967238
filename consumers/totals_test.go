package consumers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tutti/internal/core"
)

// countsNeverFall fails the test when an organization's counts fall.
func (w *world) countsNeverFall() {
	last := map[string]core.Totals{}
	w.afterUpdate = func(_ *process, run core.OrganizationRun) {
		w.engine.mu.Lock()
		defer w.engine.mu.Unlock()
		was, now := last[run.Organization], run.Totals
		if now.Fetched < was.Fetched || now.Indexed < was.Indexed || now.Stale < was.Stale || now.Rejected < was.Rejected ||
			now.Retried < was.Retried || now.Expected < was.Expected {
			w.t.Errorf("the totals fell from %+v to %+v", was, now)
		}
		last[run.Organization] = now
	}
}

// shiftAlways changes the list before each page: rows are removed, added and moved.
func (w *world) shiftAlways(changes int) {
	random, fresh := rand.New(rand.NewPCG(1, 2)), 0
	w.upstream.onPage = func(_ context.Context, c pageCall) error {
		if c.n < 2 || c.n > changes {
			return nil
		}
		w.upstream.change(c.org, func(l []record) []record {
			at := random.IntN(min(len(l), c.offset+1))
			switch n := min(1+random.IntN(8), len(l)-at); random.IntN(3) {
			case 0:
				return slices.Delete(l, at, at+n)
			case 1:
				moved := slices.Clone(l[at : at+n])
				return append(slices.Delete(l, at, at+n), moved...)
			default:
				fresh++
				return slices.Insert(l, at, record{id: fmt.Sprintf("A-fresh-%d", fresh), org: c.org, state: published})
			}
		})
		return nil
	}
}

// TestTotalsOfAShiftingList: each record counts once, however often the list makes its page be reread.
func TestTotalsOfAShiftingList(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.pageSize = 100
		w.upstream.fill("A", 1000)
		w.shiftAlways(40)
		bad := func(id string) bool { return id[len(id)-1] == '7' }
		w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) {
			return core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception"}, bad(id)
		}
		w.countsNeverFall()
		w.boot(-1)
		job := w.await(w.run("A", false))
		if n := len(w.upstream.pageCalls()); n < 20 {
			t.Errorf("%d pages were read, so the list has not stepped back", n)
		}
		rejected := int64(len(w.store.dead()))
		indexed := int64(len(w.engine.live()))
		if got := job.Totals; got.Indexed != indexed || got.Rejected != rejected || got.Fetched != indexed+rejected {
			t.Errorf("totals %+v, want %d indexed and %d rejected", got, indexed, rejected)
		}
	})
}

// TestTotalsOfARereadList: a reread list counts the records that the second reading finds beyond the first.
func TestTotalsOfARereadList(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.nonOverlapping, w.pageSize = true, 10
		w.upstream.fill("A", 95)
		w.shift(15, func(l []record) []record { return slices.Delete(l, 0, 1) })
		w.countsNeverFall()
		w.boot(-1)
		job := w.job(w.run("A", true))
		w.ended(job, core.JobSucceeded, "")
		if run := w.onlyRun(job); run.Rereads != 1 {
			t.Errorf("read again %d times", run.Rereads)
		}
		if want := (core.Totals{Expected: 94, Fetched: 94, Indexed: 94}); job.Totals != want {
			t.Errorf("totals %+v, want %+v", job.Totals, want)
		}
	})
}

// TestTotalsOfARestartedList: pages that ended before a page that was in flight when its process crashed are reread and
// count once.
func TestTotalsOfARestartedList(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.pageSize = 10
		w.upstream.fill("A", 95)
		w.countsNeverFall()
		ahead := make(chan struct{})
		watch := w.afterUpdate
		w.afterUpdate = func(p *process, run core.OrganizationRun) {
			watch(p, run)
			if len(run.Ahead) == 3 {
				close(ahead)
			}
		}
		release := make(chan struct{})
		w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) {
			select {
			case <-release:
				return core.Result{}, false
			default:
				return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded}, id == "A-0015"
			}
		}
		w.cfg.PageAttempts = 1000
		first := w.boot(-1)
		id := w.run("A", false)
		<-ahead
		first.crash()
		_ = first.stop(t, 0)
		w.afterUpdate = watch
		close(release)
		time.Sleep(w.broker.ackWait)
		w.boot(-1)
		job := w.job(id)
		w.ended(job, core.JobSucceeded, "")
		got := job.Totals
		if got.Retried = 0; got != (core.Totals{Expected: 95, Fetched: 95, Indexed: 95}) {
			t.Errorf("totals %+v", got)
		}
	})
}
