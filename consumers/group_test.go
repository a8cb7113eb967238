package consumers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

// fillMany makes n organizations of one record each, but for large, which have several pages.
func fillMany(w *world, n int, large ...int) (records int64) {
	w.pageSize = 5
	for i := range n {
		w.upstream.fill(fmt.Sprintf("S%04d", i), 1)
	}
	for _, i := range large {
		w.upstream.fill(fmt.Sprintf("S%04d", i), 12)
	}
	return int64(n + 11*len(large))
}

// TestManyOrganizationsCostLittle: messages, writes and reads of a run grow with its organizations, not with their square, and stay far
// below one each.
func TestManyOrganizationsCostLittle(t *testing.T) {
	for _, n := range []int{64, 640} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				records := fillMany(w, n)
				w.cfg.ProgressEvery = 250 * time.Millisecond
				w.boot(-1)
				job := w.job(w.run("", false))
				w.ended(job, core.JobSucceeded, "")
				if job.Totals != (core.Totals{Expected: records, Fetched: records, Indexed: records}) {
					t.Errorf("totals %+v", job.Totals)
				}
				w.verify()
				if messages := len(w.broker.history); messages > n/8+2 {
					t.Errorf("%d messages", messages)
				}
				if writes := w.store.revision; writes > uint64(n) {
					t.Errorf("%d writes", writes)
				}
				if read := w.store.sumsRead; read > int(w.store.revision) {
					t.Errorf("%d sums were read, %d writes", read, w.store.revision)
				}
			})
		})
	}
}

// TestManyOrganizationsOverCrashes: wherever a process crashes, the run ends with every record, and its organizations with exact totals.
// Some have several pages.
func TestManyOrganizationsOverCrashes(t *testing.T) {
	for _, steps := range []int64{5, 20, 50, 90, 130, 200, 300, 450} {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.broker.ackWait = 3 * time.Second
				records := fillMany(w, 70, 3, 40, 69)
				first := w.boot(steps)
				id := w.run("", false)
				select {
				case <-first.gone:
				case <-time.After(time.Minute): // it has ended before
				}
				_ = first.stop(t, 0)
				w.boot(-1)
				job := w.job(id)
				w.ended(job, core.JobSucceeded, "")
				w.verify()
				runs, err := w.store.runs(id)
				if err != nil || len(runs) != 70 {
					t.Fatalf("%d organizations, %v", len(runs), err)
				}
				for _, run := range runs {
					if run.State != core.JobSucceeded || run.Totals.Fetched != run.Totals.Expected || run.Totals.Indexed+run.Totals.Stale != run.Totals.Expected {
						t.Errorf("%+v", run)
					}
				}
				if got := job.Totals; got.Expected != records || got.Fetched != records || got.Indexed+got.Stale != records {
					t.Errorf("totals %+v", got)
				}
			})
		})
	}
}

// TestGroupsThatEndProcesses: a group whose processes have ended twice is processed one organization at a time, from the first page of each,
// also of one whose list was read further or was restarted.
func TestGroupsThatEndProcesses(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.broker.ackWait = 3 * time.Second
		fillMany(w, 70, 3)
		w.engine.latency = time.Second // so that the first page of S0003 has not ended
		var live atomic.Pointer[process]
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if p := live.Load(); p != nil && c.org == "S0003" && c.offset > 0 {
				p.crash()
			}
			return nil
		}
		id := w.run("", false)
		for range 2 {
			p := w.make(-1)
			live.Store(p)
			p.c.Start()
			select {
			case <-p.gone:
			case <-time.After(time.Minute):
				t.Fatal("a process has not ended")
			}
			_ = p.stop(t, 0)
		}
		live.Store(nil)
		w.boot(-1)
		w.ended(w.job(id), core.JobSucceeded, "")
		w.verify()
	})
}

// TestManyOrganizationsCancel: a cancel ends the organizations of all groups, and no more of them are read.
func TestManyOrganizationsCancel(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		fillMany(w, 200)
		w.upstream.latency = time.Second
		p := w.boot(-1)
		id := w.run("", false)
		time.Sleep(10 * time.Second)
		if _, err := p.c.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		calls := len(w.upstream.pageCalls())
		time.Sleep(time.Minute)
		if more := len(w.upstream.pageCalls()) - calls; more > 8 {
			t.Errorf("%d pages were read after the cancel", more)
		}
		runs, err := w.store.runs(id)
		cancelled, indexed := 0, int64(0)
		for _, run := range runs {
			if !run.State.Final() {
				t.Errorf("%+v", run)
			}
			if run.State == core.JobCancelled {
				cancelled++
			}
			indexed += run.Totals.Indexed
		}
		if job := w.job(id); err != nil || len(runs) != 200 || cancelled < 100 || job.State != core.JobCancelled || job.Totals.Indexed > indexed {
			t.Errorf("%d organizations, %d cancelled, %v, %+v", len(runs), cancelled, err, job)
		}
	})
}
