package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"tutti/internal/core"
)

func watched(t *testing.T, q store) core.Job {
	t.Helper()
	job := core.Job{ID: "job-1", Repository: "song", Scope: core.ScopeRepository, State: core.JobRunning}
	if err := q.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		run := core.OrganizationRun{Organization: fmt.Sprintf("S%d", i), State: core.JobRunning, DoneThrough: -1}
		if _, err := q.CreateOrganization(t.Context(), job.ID, run); err != nil {
			t.Fatal(err)
		}
	}
	return job
}

// watch runs a watch whose changes arrive on the channel, and returns how to end it.
func watch(t *testing.T, q store, id string) (<-chan core.JobChange, func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	changes, ended := make(chan core.JobChange), make(chan error, 1)
	go func() {
		ended <- q.Watch(ctx, id, func(c core.JobChange) error {
			select {
			case changes <- c:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return changes, func() error {
		cancel()
		return <-ended
	}
}

func next(t *testing.T, changes <-chan core.JobChange) core.JobChange {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(20 * time.Second):
		t.Fatal("no change was told")
		return core.JobChange{}
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	q := open(t)
	job := watched(t, q)
	other := core.Job{ID: "job-10", Repository: "song", State: core.JobRunning}
	if err := q.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	changes, stop := watch(t, q, job.ID)
	first := next(t, changes)
	if first.Job == nil || first.Job.ID != job.ID {
		t.Fatalf("first: %+v", first)
	}
	last := first.Revision
	for i := range 3 {
		c := next(t, changes)
		if c.Run == nil || c.Run.Organization != fmt.Sprintf("S%d", i) || c.Revision <= last {
			t.Fatalf("%d: %+v after %d", i, c, last)
		}
		last = c.Revision
	}
	if c := next(t, changes); c.Job != nil || c.Run != nil || c.Revision != last {
		t.Fatalf("marker: %+v", c)
	}
	if _, err := q.UpdateOrganization(t.Context(), job.ID, "S1", func(r *core.OrganizationRun) error {
		r.Totals.Fetched = 7
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c := next(t, changes)
	if c.Run == nil || c.Run.Organization != "S1" || c.Run.Totals.Fetched != 7 || c.Revision <= last {
		t.Fatalf("change: %+v", c)
	}
	if err := stop(); err == nil {
		t.Error("a watch that was ended gave nil")
	}
}

// TestWatchOverRestart: the server goes and comes back; the watch goes on with what changed since.
func TestWatchOverRestart(t *testing.T) {
	t.Parallel()
	s := startServer(t, "127.0.0.1:0")
	q := s.connect(t)
	job := watched(t, q)
	changes, stop := watch(t, q, job.ID)
	var last uint64
	for range 5 {
		last = next(t, changes).Revision
	}
	connected := q.bucket.Conn.NC.StatusChanged(nats.CONNECTED)
	s.end()
	s.start(t)
	<-connected
	if _, err := q.Update(t.Context(), job.ID, func(j *core.Job) error {
		j.State = core.JobSucceeded
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c := next(t, changes)
	if c.Job == nil || c.Job.State != core.JobSucceeded || c.Revision <= last {
		t.Fatalf("after the restart: %+v", c)
	}
	_ = stop()
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	q := open(t)
	if err := q.Watch(t.Context(), "none", nil); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("unknown job: %v", err)
	}
	job := watched(t, q)
	mine := errors.New("enough")
	if err := q.Watch(t.Context(), job.ID, func(core.JobChange) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("got %v, want the caller's error", err)
	}
}
