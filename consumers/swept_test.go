package consumers_test

import (
	"fmt"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestRemovedOverCrashes: wherever a process crashes, the job says how many documents its sweep has removed, before and after.
func TestRemovedOverCrashes(t *testing.T) {
	for name, c := range map[string]struct {
		organization        string
		difference, several bool
	}{
		"repository": {}, "difference": {difference: true}, "files": {several: true}, "organization": {organization: "A"},
		"difference of an organization": {organization: "A", difference: true}, "files of an organization": {organization: "A", several: true},
	} {
		for steps := int64(1); steps < 200; steps += 3 {
			t.Run(fmt.Sprintf("%s, %d", name, steps), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					w.broker.ackWait = 3 * time.Second
					if c.several {
						w.split = threeLess
					}
					for _, of := range []string{"A", "B", "C", "D"} {
						w.upstream.fill(of, 30)
					}
					filling := w.boot(-1)
					w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
					_ = filling.stop(t, time.Minute)
					before := int64(len(w.engine.live()))
					w.upstream.drop("A", 20, 22)
					if c.difference {
						w.invalidate("A", 9, 12)
					}
					if c.organization == "" {
						w.upstream.drop("B", 0, 2)
						w.upstream.vanish("C")
						w.upstream.drop("D", 0, 1)
					}
					w.difference = c.difference
					first := w.boot(steps)
					id := w.run(c.organization, true)
					select {
					case <-first.gone:
					case <-time.After(time.Minute): // it has ended before
					}
					_ = first.stop(t, 0)
					w.boot(-1)
					job := w.job(id)
					w.ended(job, core.JobSucceeded, "")
					want := before - int64(len(w.engine.live()))
					if job.Totals.Removed != want || want < 2 || job.Totals.Rejected != 0 || c.difference && job.Totals.Drift.Surplus != want {
						t.Errorf("the totals are %+v, want %d removed", job.Totals, want)
					}
					if left := w.store.noteCount(); left != 0 {
						t.Errorf("%d notes are left", left)
					}
					if !c.several { // of which the model knows nothing
						w.verify()
					}
				})
			})
		}
	}
}

// TestRemovedBeforeAnError: an engine that fails after a part of the documents was removed makes the sweep begin anew, and nothing is counted
// twice or not at all.
func TestRemovedBeforeAnError(t *testing.T) {
	for failing := 1; failing <= 24; failing++ {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 40)
				w.upstream.fill("B", 40)
				w.upstream.fill("C", 3)
				w.boot(-1)
				w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
				w.invalidate("A", 9, 12)
				w.upstream.drop("A", 20, 22)
				w.upstream.drop("B", 0, 2)
				w.upstream.vanish("C")
				gets := 0
				w.engine.mu.Lock()
				w.engine.refuseGet = func() error {
					if gets++; gets == failing {
						return core.NewError(core.CodeOverloaded, "too many requests")
					}
					return nil
				}
				w.engine.mu.Unlock()
				job := w.job(w.run("", true))
				w.ended(job, core.JobSucceeded, "")
				if job.Totals.Removed != 10 || job.Totals.Rejected != 0 || gets < failing {
					t.Errorf("the totals are %+v, want 10 removed; %d reads", job.Totals, gets)
				}
				w.verify()
			})
		})
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
