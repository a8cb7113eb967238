package consumers_test

import (
	"sync"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestOutageTwoProcesses: a run that two processes share is paused by an outage, whichever of them crashes, stops or is cut off
// from the queue meanwhile, and resumes, fails or is cancelled like that of one process.
func TestOutageTwoProcesses(t *testing.T) {
	for name, tt := range map[string]struct {
		during func(t *testing.T, one, two *process)
		state  core.JobState
		code   string
	}{
		"recovers":    {nil, core.JobSucceeded, ""},
		"one crashes": {func(_ *testing.T, one, _ *process) { one.crash() }, core.JobSucceeded, ""},
		"one stops": {func(t *testing.T, one, _ *process) {
			if err := one.stop(t, time.Minute); err != nil {
				t.Error(err)
			}
		}, core.JobSucceeded, ""},
		"one is cut off": {func(_ *testing.T, one, _ *process) {
			reconnect := one.cutOff()
			time.Sleep(5 * time.Minute)
			reconnect()
		}, core.JobSucceeded, ""},
		"both are cut off": {func(_ *testing.T, one, two *process) {
			first, second := one.cutOff(), two.cutOff()
			time.Sleep(5 * time.Minute)
			first()
			second()
		}, core.JobSucceeded, ""},
		"fails":        {nil, core.JobFailed, "unavailable"},
		"is cancelled": {nil, core.JobCancelled, core.JobErrorCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				down := outages(w)
				for _, org := range []string{"A", "B", "C", "D", "E", "F", "G", "H"} {
					w.upstream.fill(org, 500)
				}
				w.seed("A", 3)
				begin := sync.OnceFunc(func() { down.Store(true) })
				w.upstream.says = func(c pageCall, total int) int {
					if c.n == 12 {
						begin()
					}
					return total
				}
				one, two := w.boot(-1), w.boot(-1)
				id := w.run("", false)
				began := time.Now()
				w.paused(id)
				time.Sleep(10 * time.Minute)
				if tt.during != nil {
					tt.during(t, one, two)
				}
				time.Sleep(35 * time.Minute)
				w.paused(id)
				switch tt.state {
				case core.JobSucceeded:
					down.Store(false)
				case core.JobCancelled:
					if _, err := two.c.Cancel(t.Context(), id); err != nil {
						t.Error(err)
					}
				default:
					time.Sleep(time.Until(began.Add(62 * time.Minute)))
				}
				job := w.job(id)
				w.ended(job, tt.state, tt.code)
				if took := time.Since(began); took > 70*time.Minute {
					t.Errorf("it took %s", took)
				}
				w.wantNoPause(two, job)
				if !one.crashed() {
					w.wantNoPause(one, job)
				}
				if n := len(w.store.dead()); n != 0 {
					t.Errorf("%d dead letters", n)
				}
				if tt.state == core.JobSucceeded {
					w.verify()
					return
				}
				if _, kept := w.engine.live()["A-old-0000"]; !kept {
					t.Error("a run that did not succeed has swept")
				}
			})
		})
	}
}
