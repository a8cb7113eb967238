package consumers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"tutti/consumers/run"
	"tutti/internal/core"
)

// TestRemovalDuringRun: a record that is removed on request stays removed through every later step of a run of its scope that began before,
// also over a restart of the process; the next trigger, or a run that begins later, brings it back.
func TestRemovalDuringRun(t *testing.T) {
	const id = "A-0199"
	for _, c := range []struct {
		name                    string
		difference, overlapping bool
		rebuild                 bool // of an index that is that of the world
		scope                   string
	}{
		{name: "repository"},
		{name: "organization", scope: "A"},
		{name: "difference", difference: true},
		{name: "pages that overlap", overlapping: true},
		{name: "rebuild", rebuild: true},
	} {
		for page := range 5 { // 0: while the organizations are listed, or the first page
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s page %d restart %t", c.name, page, restart), func(t *testing.T) {
					in(t, func(t *testing.T, w *world) {
						w.pageSize, w.upstream.nonOverlapping = 50, !c.overlapping
						w.upstream.fill("A", 200)
						if c.rebuild {
							w.rebuild = filledRebuild{finished: new(bool), check: func() {}}
						}
						p := w.boot(-1)
						w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
						var removed atomic.Bool
						remove := func() {
							if !removed.CompareAndSwap(false, true) {
								return
							}
							w.remove("A", id)
							eventually(w.t, "the document is removed", func() bool { return !w.engine.has(id) })
						}
						if page == 0 && c.scope == "" {
							w.upstream.onList = func() error { remove(); return nil }
						}
						first := len(w.upstream.pageCalls())
						w.upstream.onPage = func(_ context.Context, call pageCall) error {
							if call.n-first == max(page, 1) {
								remove()
							}
							return nil
						}
						w.difference = c.difference
						var job string
						if c.rebuild {
							job = w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID
						} else {
							job = w.run(c.scope, false)
						}
						if restart {
							eventually(w.t, "the step of the run", removed.Load)
							p.crash()
							w.boot(-1)
						}
						w.ended(w.job(job), core.JobSucceeded, "")
						if !removed.Load() {
							t.Fatal("nothing was removed")
						}
						if w.engine.live()[id] != "" {
							t.Errorf("the run has restored the document: %s", w.engine.live()[id])
						}
						if n := len(w.engine.live()); n != 199 {
							t.Errorf("%d documents", n)
						}
						if page%2 == 0 {
							w.index("A", id)
							eventually(w.t, "the trigger brings it back", func() bool { return w.engine.has(id) })
						} else {
							w.ended(w.job(w.run(c.scope, false)), core.JobSucceeded, "")
						}
						w.verify()
					})
				})
			}
		}
	}
}

// TestRemovalBeforeRunBegins: a run that was queued before a removal and begins after it, because another one was in progress, brings the
// record back.
func TestRemovalBeforeRunBegins(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.pageSize = 50
		w.upstream.fill("A", 200)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		first, second := len(w.upstream.pageCalls()), ""
		w.upstream.onPage = func(_ context.Context, call pageCall) error {
			if call.n == first+1 {
				second = w.run("", false)
				w.remove("A", "A-0199")
				eventually(w.t, "the document is removed", func() bool { return !w.engine.has("A-0199") })
			}
			return nil
		}
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.ended(w.job(second), core.JobSucceeded, "")
		w.verify()
	})
}

// beginning is a Rebuild whose Begin is called by the test.
type beginning struct {
	filledRebuild
	begin func(jobID string)
}

func (b beginning) Begin(_ context.Context, jobID string, _ run.Counts) error {
	b.begin(jobID)
	return nil
}

// TestRemovalBeforeIndexIsCreated: the index that a rebuild fills has no removal of the time before it was created. So the run begins once
// it exists: until then its job is queued, and the run brings back what was removed.
func TestRemovalBeforeIndexIsCreated(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		begun := false
		w.rebuild = beginning{filledRebuild{finished: new(bool), check: func() {}}, func(id string) {
			begun = true
			job, err := w.store.job(id)
			if err != nil || job.State != core.JobQueued || job.StartedAt != nil || job.Joinable() {
				t.Errorf("while the index is created the job is %+v, %v", job, err)
			}
			w.remove("A", "A-0001")
			eventually(w.t, "the document is removed", func() bool { return !w.engine.has("A-0001") })
		}}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.ended(w.job(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID), core.JobSucceeded, "")
		if !begun {
			t.Error("no rebuild began")
		}
		w.verify()
	})
}
