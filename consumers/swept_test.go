package consumers_test

import (
	"fmt"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestRemovedOverCrashes: wherever a process crashes, the job says how many documents its sweep has removed, before and after.
func TestRemovedOverCrashes(t *testing.T) {
	for _, organization := range []string{"", "A"} {
		for _, difference := range []bool{false, true} {
			for steps := int64(1); steps < 160; steps += 3 {
				t.Run(fmt.Sprintf("%d, organization %q, difference %v", steps, organization, difference), func(t *testing.T) {
					in(t, func(t *testing.T, w *world) {
						w.broker.ackWait = 3 * time.Second
						for _, of := range []string{"A", "B", "C", "D"} {
							w.upstream.fill(of, 40)
						}
						filling := w.boot(-1)
						w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
						_ = filling.stop(t, time.Minute)
						w.invalidate("A", 9, 12)
						w.upstream.drop("A", 20, 22)
						want := int64(5)
						if organization == "" {
							w.upstream.drop("B", 0, 2)
							w.upstream.vanish("C")
							want += 2 + 40
						}
						w.difference = difference
						first := w.boot(steps)
						id := w.run(organization, true)
						select {
						case <-first.gone:
						case <-time.After(time.Minute): // it has ended before
						}
						_ = first.stop(t, 0)
						w.boot(-1)
						job := w.job(id)
						w.ended(job, core.JobSucceeded, "")
						if job.Totals.Removed != want || job.Totals.Rejected != 0 || difference && job.Totals.Drift.Surplus != want {
							t.Errorf("the totals are %+v, want %d removed", job.Totals, want)
						}
						if left := w.store.noteCount(); left != 0 {
							t.Errorf("%d notes are left", left)
						}
						w.verify()
					})
				})
			}
		}
	}
}

// TestRemovedByARebuildOverCrashes: a rebuild that removes documents at its end, and is interrupted, says how many it has removed.
func TestRemovedByARebuildOverCrashes(t *testing.T) {
	for steps := int64(1); steps < 160; steps += 3 {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.broker.ackWait = 3 * time.Second
				w.upstream.fill("A", 40)
				w.upstream.fill("B", 5)
				filling := w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				_ = filling.stop(t, time.Minute)
				w.invalidate("A", 9, 12)
				w.upstream.drop("A", 20, 22)
				w.upstream.vanish("B")
				finished := false
				w.engine.next, w.rebuild = newEngine(), filledRebuild{finished: &finished, check: func() {}}
				first := w.boot(steps)
				id := w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true, Force: true}).JobID
				select {
				case <-first.gone:
				case <-time.After(time.Minute): // it has ended before
				}
				_ = first.stop(t, 0)
				w.boot(-1)
				job := w.job(id)
				w.ended(job, core.JobSucceeded, "")
				if job.Totals.Removed != 10 || job.Totals.Rejected != 0 || !finished {
					t.Errorf("the totals are %+v, want 10 removed; finished %t", job.Totals, finished)
				}
				w.verify()
			})
		})
	}
}
