package consumers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

// ahead returns a version d in the future, as stored before the clock was set back.
func ahead(d time.Duration) core.Version { return core.Version(time.Now().Add(d).UnixNano()) }

// TestVersionFromTheFuture: a clock was set back, so that a stored version is higher than those of new messages. A record that is
// fetched now must still replace the stored one; it is written with the stored version plus one.
func TestVersionFromTheFuture(t *testing.T) {
	triggers := map[string]func(w *world){
		"trigger":               func(w *world) { w.index("A", "A-0000") },
		"batch":                 func(w *world) { w.indexAll("A-0000") },
		"run":                   func(w *world) { w.run("A", false) },
		"run of the repository": func(w *world) { w.run("", false) },
	}
	for name, change := range map[string]func(w *world){
		"updated":     func(w *world) { w.upstream.edit("A", "A-0000", func(r *record) { r.rev = 7 }) },
		"unpublished": func(w *world) { unpublish(w, "A", "A-0000") },
		"deleted":     func(w *world) { remove(w, "A", "A-0000") },
		"moved":       func(w *world) { w.upstream.move("A-0000", "B") },
		"republished": func(w *world) { w.engine.remove("A-0000", ahead(50*time.Second)) },
	} {
		for triggerName, trigger := range triggers {
			for _, by := range []time.Duration{12 * time.Second, 40 * time.Second} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, triggerName, by), func(t *testing.T) {
					in(t, func(t *testing.T, w *world) {
						w.upstream.fill("A", 30)
						w.upstream.fill("B", 1)
						p := w.boot(-1)
						w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
						w.engine.put("A-0000", ahead(by), record{id: "A-0000", org: "A", state: published}.document())
						change(w)
						began := time.Now()
						trigger(w)
						w.idle()
						w.verify()
						if took := time.Since(began); took > 5*time.Second {
							t.Errorf("took %s", took)
						}
						if !p.c.ClockAlarm() || len(p.c.Paused()) != 0 {
							t.Errorf("alarm %v, paused %v", p.c.ClockAlarm(), p.c.Paused())
						}
						time.Sleep(2 * time.Minute)
						if p.c.ClockAlarm() {
							t.Error("the alarm does not end")
						}
					})
				})
			}
		}
	}
}

// TestRemovalOfAFutureVersion: a requested removal applies at once, although the stored version is in the future.
func TestRemovalOfAFutureVersion(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		stored := ahead(40 * time.Second)
		w.engine.put("A-0000", stored, record{id: "A-0000", org: "A", state: published}.document())
		w.boot(-1)
		w.remove("A", "A-0000")
		w.idle()
		w.same(map[string]string{})
		if d := w.engine.docs["A-0000"]; d.version != stored+1 {
			t.Errorf("removed as of %d, want %d", d.version, stored+1)
		}
	})
}

// TestStoredVersionAMomentAhead: if the stored version is ahead by less than the clock skew, no update is lost and no alarm is
// raised.
func TestStoredVersionAMomentAhead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		w.engine.put("A-0000", ahead(4*time.Second), `{"studyId":"A","rev":-1}`)
		p := w.boot(-1)
		w.index("A", "A-0000")
		w.idle()
		w.verify()
		if p.c.ClockAlarm() {
			t.Error("the clock alarm is set")
		}
	})
}

// TestTwoWritersAfterAFutureVersion: two processes have read the same version from the future. The one that fetched first
// but writes last must not overwrite the newer document.
func TestTwoWritersAfterAFutureVersion(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		stored := ahead(40 * time.Second)
		w.engine.put("A-0000", stored, record{id: "A-0000", org: "A", state: published}.document())
		write := make(chan struct{})
		var calls atomic.Int64
		w.upstream.afterRecord = func(context.Context, string, string) {
			if calls.Add(1) == 2 { // after the conflict
				<-write
			}
		}
		slow := w.boot(-1)
		w.index("A", "A-0000")
		eventually(t, "the second fetch", func() bool { return calls.Load() == 2 })
		reconnect := slow.cutOff()
		w.boot(-1)
		w.upstream.edit("A", "A-0000", func(r *record) { r.rev = 7 })
		w.index("A", "A-0000")
		w.idle()
		w.verify()
		close(write)
		eventually(t, "the late write", func() bool { return w.engine.count(core.OutcomeStale) == 3 })
		reconnect()
		w.idle()
		w.verify()
	})
}

// TestSweepOfFutureVersions: a run sweeps the documents of deleted records even if their versions are higher than its own. Each
// document with a future version is requested separately; the guard against mass removals does not count them.
func TestSweepOfFutureVersions(t *testing.T) {
	for _, scope := range []string{"A", ""} {
		t.Run("scope "+scope, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 40)
				w.boot(-1)
				for _, r := range w.upstream.lists["A"] {
					w.engine.put(r.id, ahead(90*time.Second), r.document())
				}
				w.upstream.drop("A", 3, 6)
				unpublish(w, "A", "A-0020")
				job := w.job(w.run(scope, false))
				w.ended(job, core.JobSucceeded, "")
				w.verify()
				if job.Totals.Removed != 4 {
					t.Errorf("totals %+v", job.Totals)
				}
			})
		})
	}
}
