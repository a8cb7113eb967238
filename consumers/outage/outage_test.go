package outage_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tutti/consumers/loop"
	"tutti/consumers/outage"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// running has jobs that run.
type running struct{ core.Jobs }

func (running) Get(context.Context, string) (core.Job, error) {
	return core.Job{State: core.JobRunning}, nil
}

// TestOutage: during an outage one call at a time probes the repository and the others wait; one that is answered ends it for all. A run waits
// as long as it may from its own start.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		process := loop.NewProcess(time.Minute)
		l := loop.New(process, nil, nil, loop.Config{Logger: slog.New(slog.DiscardHandler), RetryBase: time.Second, RetryMax: time.Second})
		o := outage.New(l, state.New(state.Config{Loop: l, Store: running{}}), slog.New(slog.DiscardHandler), time.Hour)
		began, down := time.Now(), errors.New("down")
		job := core.Job{StartedAt: &began}
		if o.Reason() != "" || o.GaveUp(job, time.Time{}) {
			t.Errorf("without an outage: %q", o.Reason())
		}
		o.Start(down, 1, began)
		var asked atomic.Int64
		for range 3 {
			go func() {
				done, err := o.Await(t.Context(), job)
				if err != nil {
					t.Error(err)
					return
				}
				if asked.Add(1) == 1 {
					time.Sleep(time.Minute)
					if n := asked.Load(); n != 1 {
						t.Errorf("%d calls probe at the same time", n)
					}
					done(down)
					return
				}
				done(nil)
			}()
		}
		time.Sleep(100 * time.Millisecond)
		if n := asked.Load(); n != 0 {
			t.Errorf("%d calls began before the delay after a failure", n)
		}
		time.Sleep(30 * time.Second)
		if n := asked.Load(); o.Reason() == "" || n != 1 {
			t.Errorf("during the outage: %q, %d calls", o.Reason(), n)
		}
		time.Sleep(10 * time.Minute)
		if n := asked.Load(); o.Reason() != "" || n != 3 {
			t.Errorf("after the outage: %q, %d calls", o.Reason(), n)
		}
		o.Start(down, 1, time.Now())
		time.Sleep(time.Hour)
		late := time.Now().Add(-time.Minute)
		if !o.GaveUp(job, time.Time{}) || o.GaveUp(core.Job{StartedAt: &late}, time.Time{}) {
			t.Error("a run waits for an hour from its own start")
		}
	})
}
