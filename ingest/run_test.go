package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/ingest"
	"tutti/internal/core"
)

func TestRunQueuesAJob(t *testing.T) {
	q := &queueFake{}
	q.create = func(job core.Job) error {
		if n := len(q.requests()); n != 1 {
			t.Errorf("the job was created after %d publishes", n)
		}
		return nil
	}
	job, err := newService(t, q, ingest.Config{}).
		Run(t.Context(), core.ScopeOrganization, "song.ca", "PACA-CA", core.RunFlags{Force: true}, core.CauseREST, "req-1")
	if err != nil {
		t.Fatal(err)
	}
	want := core.Job{
		ID: job.ID, Scope: core.ScopeOrganization, Repository: "song.ca", Organization: "PACA-CA", IndexName: "analyses",
		State: core.JobQueued, Cause: core.CauseREST, Force: true, RequestID: "req-1", QueuedAt: noon.UTC(),
	}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, q.All[job.ID]); diff != "" {
		t.Error("stored:", diff)
	}
	request := []core.Request{{
		ID: "req-1", Kind: core.KindIndex, Scope: core.ScopeOrganization, Repository: "song.ca",
		Organization: "PACA-CA", JobID: job.ID, Cause: core.CauseREST, Force: true, ReceivedAt: noon.UTC(),
	}}
	if diff := cmp.Diff(request, q.requests()); diff != "" {
		t.Error(diff)
	}
	if len(job.ID) != 36 || job.ID[14] != '7' {
		t.Errorf("job id %q is no UUID of version 7", job.ID)
	}
}

func TestRunRefusesBadInput(t *testing.T) {
	for name, tt := range map[string]struct {
		scope     core.Scope
		repo, org string
		code      core.Code
		message   string
	}{
		"unknown repository":              {core.ScopeRepository, "x", "", core.CodeNotFound, "not configured"},
		"no organization":                 {core.ScopeOrganization, "song.ca", "", core.CodeInvalid, "organization is empty"},
		"repository with an organization": {core.ScopeRepository, "song.ca", "S", core.CodeInvalid, "must not name an organization"},
		"record scope":                    {core.ScopeRecord, "song.ca", "S", core.CodeInvalid, "is not a run"},
		"page scope":                      {core.ScopePage, "song.ca", "S", core.CodeInvalid, "is not a run"},
		"unknown scope":                   {"galaxy", "song.ca", "S", core.CodeInvalid, "unknown scope"},
		"organization is a relative path": {core.ScopeOrganization, "song.ca", "..", core.CodeInvalid, "relative path"},
	} {
		t.Run(name, func(t *testing.T) {
			q := &queueFake{}
			_, err := newService(t, q, ingest.Config{}).Run(t.Context(), tt.scope, tt.repo, tt.org, core.RunFlags{}, core.CauseREST, "r")
			wantError(t, err, tt.code, tt.message)
			if len(q.requests()) != 0 || len(q.Values) != 0 {
				t.Error("something was stored")
			}
		})
	}
}

func TestRunReturnsAQueuedJobOfTheSameScopeAndFlags(t *testing.T) {
	q := &queueFake{}
	s := newService(t, q, ingest.Config{})
	run := func(scope core.Scope, repo, org string, force bool) string {
		t.Helper()
		job, err := s.Run(t.Context(), scope, repo, org, core.RunFlags{Force: force}, core.CauseREST, "r")
		if err != nil {
			t.Fatal(err)
		}
		return job.ID
	}
	first := run(core.ScopeOrganization, "song.ca", "S", false)
	if again := run(core.ScopeOrganization, "song.ca", "S", false); again != first {
		t.Error("a second job was queued")
	}
	if got := q.All[first].Returned; got != 1 {
		t.Errorf("returned is %d", got)
	}
	others := map[string]bool{
		first: true,
		run(core.ScopeOrganization, "song.ca", "S", true):   true,
		run(core.ScopeOrganization, "song.jp", "S", false):  true,
		run(core.ScopeOrganization, "song.ca", "S2", false): true,
		run(core.ScopeRepository, "song.ca", "", false):     true,
	}
	if len(others) != 5 {
		t.Errorf("%d different jobs, want 5", len(others))
	}
	for _, state := range []core.JobState{core.JobRunning, core.JobSucceeded, core.JobCancelled} {
		q.setState(first, state)
		next := run(core.ScopeOrganization, "song.ca", "S", false)
		if next == first {
			t.Errorf("a %s job was returned", state)
		}
		first = next
	}
}

func TestConcurrentTriggersGetOneJob(t *testing.T) {
	q := &queueFake{}
	// Two services stand for two processes: they share no lock.
	services := []*ingest.Service{
		newService(t, q, ingest.Config{Now: time.Now, JoinPoll: time.Millisecond}),
		newService(t, q, ingest.Config{Now: time.Now, JoinPoll: time.Millisecond}),
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]int{}
	for i := range 50 {
		wg.Go(func() {
			job, err := services[i%2].Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[job.ID]++
		})
	}
	wg.Wait()
	if len(ids) != 1 || len(q.requests()) != 1 {
		t.Fatalf("%d job ids, %d requests, want one each", len(ids), len(q.requests()))
	}
	for id := range ids {
		if got := q.All[id].Returned; got != 49 {
			t.Errorf("returned is %d, want 49", got)
		}
	}
}

// reserve leaves the cell of song.ca's runs as a trigger does that ended after it reserved it: it names a job that is not stored.
func reserve(t *testing.T, q *queueFake, jobID string) {
	t.Helper()
	job, err := newService(t, q, ingest.Config{}).Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
	if err != nil {
		t.Fatal(err)
	}
	delete(q.All, job.ID)
	q.published = nil
	for name := range q.Values {
		q.Values[name] = jobID
	}
}

// idMadeAt returns a UUID of version 7 with the timestamp at (RFC 9562, 5.7).
func idMadeAt(at time.Time) string {
	ms := at.UnixMilli()
	return fmt.Sprintf("%08x-%04x-7abc-8def-0123456789ab", ms>>16, ms&0xffff)
}

func TestRunTakesOverAtOnceOnlyFromAnOldReservation(t *testing.T) {
	for name, tt := range map[string]struct {
		id    string
		waits bool
	}{
		"pruned long ago":        {idMadeAt(noon.Add(-30 * 24 * time.Hour)), false},
		"just too old":           {idMadeAt(noon.Add(-2*time.Second - time.Millisecond)), false},
		"just young enough":      {idMadeAt(noon.Add(-2 * time.Second)), true},
		"made by a faster clock": {idMadeAt(noon.Add(time.Hour)), true},
		"another version":        {"6ba7b810-9dad-11d1-80b4-00c04fd430c8", true},
		"no UUID":                {"dead", true},
	} {
		t.Run(name, func(t *testing.T) {
			q := &queueFake{}
			reserve(t, q, tt.id)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			looks := 0
			q.afterCell = func(string, string) {
				if looks++; looks == 3 {
					cancel()
				}
			}
			s := newService(t, q, ingest.Config{JoinPoll: time.Nanosecond})
			job, err := s.Run(ctx, core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
			if tt.waits {
				wantError(t, err, core.CodeUnavailable, "was cancelled")
				return
			}
			if err != nil || looks != 1 || job.ID == tt.id || len(q.requests()) != 1 {
				t.Errorf("%d looks, job %q, %d requests, %v", looks, job.ID, len(q.requests()), err)
			}
		})
	}
}

func TestRunTakesOverFromATriggerThatDied(t *testing.T) {
	q := &queueFake{}
	reserve(t, q, "dead")
	clock := noon
	looks := 0
	q.afterCell = func(string, string) { looks++; clock = clock.Add(time.Second) }
	s := newService(t, q, ingest.Config{Now: func() time.Time { return clock }, JoinPoll: time.Nanosecond})
	job, err := s.Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
	if err != nil || job.ID == "dead" {
		t.Fatalf("got %q, %v", job.ID, err)
	}
	if looks != 3 {
		t.Errorf("looked %d times, want 3 within two seconds", looks)
	}
}

func TestRunJoinsAJobThatAppearsWhileItWaits(t *testing.T) {
	q := &queueFake{}
	reserve(t, q, "late")
	looks := 0
	q.afterCell = func(string, string) {
		if looks++; looks == 3 {
			if err := q.Create(context.Background(), core.Job{ID: "late", State: core.JobQueued}); err != nil {
				t.Error(err)
			}
		}
	}
	s := newService(t, q, ingest.Config{JoinPoll: time.Nanosecond})
	job, err := s.Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
	if err != nil || job.ID != "late" {
		t.Fatalf("got %q, %v", job.ID, err)
	}
	if len(q.requests()) != 0 {
		t.Error("a second job was published")
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	q := &queueFake{}
	reserve(t, q, "dead")
	ctx, cancel := context.WithCancel(t.Context())
	q.afterCell = func(string, string) { cancel() }
	_, err := newService(t, q, ingest.Config{}).Run(ctx, core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
	wantError(t, err, core.CodeUnavailable, "was cancelled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRunThatIsNotPublishedLeavesNothing(t *testing.T) {
	q := &queueFake{}
	q.publish = func(core.Request) error { return core.NewError(core.CodeUnavailable, "the queue does not answer") }
	s := newService(t, q, ingest.Config{})
	_, err := s.Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
	wantError(t, err, core.CodeUnavailable, "publishing a repository request: the queue does not answer")
	if len(q.All) != 0 {
		t.Error("a job was created")
	}
	for name, jobID := range q.Values {
		if jobID != "" {
			t.Errorf("cell %s still names %s", name, jobID)
		}
	}
	q.publish = nil
	if _, err := s.Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r"); err != nil {
		t.Errorf("the next trigger: %v", err)
	}
}

func TestRunIsAcceptedOnceItsRequestIsStored(t *testing.T) {
	for name, fault := range map[string]error{
		"created by the consumer":  core.NewError(core.CodeConflict, "the job exists"),
		"store gone after publish": core.NewError(core.CodeUnavailable, "gone"),
	} {
		t.Run(name, func(t *testing.T) {
			q := &queueFake{}
			q.create = func(core.Job) error { return fault }
			job, err := newService(t, q, ingest.Config{}).
				Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
			if err != nil || job.ID != q.requests()[0].JobID {
				t.Errorf("got %q, %v", job.ID, err)
			}
		})
	}
}

func TestRunReportsCellErrors(t *testing.T) {
	down := core.NewError(core.CodeUnavailable, "gone")
	q := &queueFake{}
	q.cell = func(string) error { return down }
	_, err := newService(t, q, ingest.Config{}).Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
	wantError(t, err, core.CodeUnavailable, "reading the cell")
	q = &queueFake{}
	q.setCell = func(string, string) error { return down }
	_, err = newService(t, q, ingest.Config{}).Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
	wantError(t, err, core.CodeUnavailable, "reserving the cell")
	q = &queueFake{}
	var tries atomic.Int32
	q.setCell = func(string, string) error { tries.Add(1); return core.NewError(core.CodeConflict, "moved") }
	_, err = newService(t, q, ingest.Config{}).Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
	wantError(t, err, core.CodeOverloaded, "too many concurrent triggers")
	if tries.Load() != 100 {
		t.Errorf("%d tries", tries.Load())
	}
}

func TestCellNamesAreSafeKeys(t *testing.T) {
	q := &queueFake{}
	s := newService(t, q, ingest.Config{})
	for _, org := range []string{"S.1", "S", "a/b *>", "日本", strings.Repeat("x", 512)} {
		if _, err := s.Run(t.Context(), core.ScopeOrganization, "song.ca", org, core.RunFlags{}, core.CauseREST, "r"); err != nil {
			t.Fatal(err)
		}
	}
	if len(q.Values) != 5 {
		t.Errorf("%d cells, want 5", len(q.Values))
	}
	for name := range q.Values {
		if i := strings.IndexFunc(name, func(r rune) bool {
			return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=", r)
		}); i >= 0 {
			t.Errorf("cell name %q holds %q", name, name[i])
		}
		if strings.Count(name, ".") != 4 {
			t.Errorf("cell name %q has not five parts", name)
		}
	}
}
