package overview_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/core/jobsum"
	"tutti/internal/report/overview"
)

type jobList struct {
	jobs []core.Job
	err  error
}

func (l jobList) List(context.Context, core.JobFilter) ([]core.Job, string, error) {
	return l.jobs, "", l.err
}

func (l jobList) Sum(_ context.Context, id string) (jobsum.Sum, error) {
	if id == "broken" {
		return jobsum.Sum{}, core.NewError(core.CodeUnavailable, "the queue does not answer")
	}
	return jobsum.Sum{Totals: core.Totals{Fetched: 1200}, Known: 2}, nil
}

func neverNotified(context.Context, string) (time.Time, error) { return time.Time{}, nil }

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func ended(state core.JobState, scope core.Scope, ago time.Duration) core.Job {
	at := noon.Add(-ago)
	return core.Job{ID: string(state), Scope: scope, Repository: "a", IndexName: "analyses", State: state, QueuedAt: at, EndedAt: &at}
}

// TestRepositoriesState: the state of a repository is the worst that holds, and its last success the newest known.
func TestRepositoriesState(t *testing.T) {
	success := ended(core.JobSucceeded, core.ScopeRepository, time.Hour)
	partial := ended(core.JobPartial, core.ScopeRepository, 2*time.Hour)
	partial.Totals.Indexed = 1
	foreign := success
	foreign.IndexName = "before"
	waiting := core.Job{ID: "w", Scope: core.ScopeRepository, Repository: "a", IndexName: "analyses", State: core.JobPaused, QueuedAt: noon}
	tests := map[string]struct {
		jobs    []core.Job
		paused  []core.Pause
		letters int
		drift   string
		last    time.Time
		state   core.RepositoryState
		age     int64
	}{
		"never":               {state: core.RepositoryNeverIndexed, age: -1},
		"another index":       {jobs: []core.Job{foreign}, state: core.RepositoryNeverIndexed, age: -1},
		"success":             {jobs: []core.Job{success}, state: core.RepositoryOK, age: 3600},
		"newer record":        {jobs: []core.Job{success}, last: noon.Add(-time.Minute), state: core.RepositoryOK, age: 60},
		"partial":             {jobs: []core.Job{partial}, state: core.RepositoryAttention, age: 7200},
		"failed after":        {jobs: []core.Job{ended(core.JobFailed, core.ScopeRepository, 0), success}, state: core.RepositoryFailing, age: 3600},
		"cancelled after":     {jobs: []core.Job{ended(core.JobCancelled, core.ScopeRepository, 0), success}, state: core.RepositoryOK, age: 3600},
		"organization failed": {jobs: []core.Job{ended(core.JobFailed, core.ScopeOrganization, 0), success}, state: core.RepositoryOK, age: 3600},
		"dead letters":        {jobs: []core.Job{success}, letters: 1, state: core.RepositoryAttention, age: 3600},
		"drift":               {jobs: []core.Job{success}, drift: `{"jobId":"d","drift":{"missing":1}}`, state: core.RepositoryAttention, age: 3600},
		"no drift":            {jobs: []core.Job{success}, drift: `{"jobId":"d","drift":{"unchanged":1}}`, state: core.RepositoryOK, age: 3600},
		"kept documents":      {jobs: []core.Job{success}, drift: `{"guardedBy":"j"}`, state: core.RepositoryOK, age: 3600},
		"paused":              {jobs: []core.Job{success}, paused: []core.Pause{{Repository: "a", Reason: "down"}}, letters: 1, state: core.RepositoryPaused, age: 3600},
		"another paused":      {jobs: []core.Job{success}, paused: []core.Pause{{Repository: "b", Reason: "down"}}, state: core.RepositoryOK, age: 3600},
		"paused run":          {jobs: []core.Job{waiting, success}, state: core.RepositoryPaused, age: 3600},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := overview.New([]core.Repository{{Code: "a", Type: core.TypeSong, IndexName: "analyses"}}, overview.Config{
				Jobs: jobList{jobs: tt.jobs}, Paused: func() []core.Pause { return tt.paused },
				LastSuccess: func(string) time.Time { return tt.last },
				Backlog: func(context.Context) (map[string]overview.Backlog, error) {
					return map[string]overview.Backlog{"a": {Pending: 3, InFlight: 2}}, nil
				},
				DeadLetters:      func() map[string]int { return map[string]int{"a": tt.letters} },
				LastNotification: neverNotified,
				Drift:            func(context.Context, string) (string, error) { return tt.drift, nil },
				Now:              func() time.Time { return noon },
			})
			all, err := o.Repositories(t.Context())
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			got := all[0]
			if got.State != tt.state || got.Pending != 3 || got.InFlight != 2 || got.DeadLetters != tt.letters {
				t.Errorf("state %s with %+v, want %s", got.State, got.RepositoryFigures, tt.state)
			}
			if compared := strings.Contains(tt.drift, "jobId"); (got.Drift != nil) != compared {
				t.Errorf("the drift is %+v", got.Drift)
			}
			if age := got.FreshnessSeconds; (age == nil) != (tt.age < 0) || age != nil && *age != tt.age {
				t.Errorf("last success %v, want one of %d s ago", got.LastSuccess, tt.age)
			}
		})
	}
}

// TestRepositoriesErrors: what cannot be read is an error, not a repository in a good state.
func TestRepositoriesErrors(t *testing.T) {
	down := core.NewError(core.CodeUnavailable, "the queue does not answer")
	for name, broken := range map[string]func(*overview.Config){
		"jobs": func(c *overview.Config) { c.Jobs = jobList{err: down} },
		"backlog": func(c *overview.Config) {
			c.Backlog = func(context.Context) (map[string]overview.Backlog, error) { return nil, down }
		},
		"rate": func(c *overview.Config) {
			c.Jobs = jobList{jobs: []core.Job{{ID: "broken", Repository: "a", State: core.JobRunning}}}
		},
		"notification": func(c *overview.Config) {
			c.LastNotification = func(context.Context, string) (time.Time, error) { return time.Time{}, down }
		},
		"drift": func(c *overview.Config) { c.Drift = func(context.Context, string) (string, error) { return "", down } },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := overview.Config{
				Jobs: jobList{}, Paused: func() []core.Pause { return nil }, LastSuccess: func(string) time.Time { return time.Time{} },
				Backlog:          func(context.Context) (map[string]overview.Backlog, error) { return nil, nil },
				DeadLetters:      func() map[string]int { return nil },
				LastNotification: neverNotified,
				Drift:            func(context.Context, string) (string, error) { return "", nil },
			}
			broken(&cfg)
			if _, err := overview.New([]core.Repository{{Code: "a"}}, cfg).Repositories(t.Context()); core.CodeOf(err) != core.CodeUnavailable {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestRepositoriesLive: the rate is that of the running jobs of the repository, and the last notification is passed on.
func TestRepositoriesLive(t *testing.T) {
	began := noon.Add(-time.Minute)
	job := func(id, repository string, state core.JobState) core.Job {
		return core.Job{ID: id, Repository: repository, State: state, StartedAt: &began}
	}
	o := overview.New([]core.Repository{{Code: "a"}, {Code: "b"}}, overview.Config{
		Jobs: jobList{jobs: []core.Job{
			job("1", "a", core.JobRunning), job("2", "a", core.JobRunning), job("3", "a", core.JobPaused), job("4", "b", core.JobQueued),
		}},
		Paused: func() []core.Pause { return nil }, LastSuccess: func(string) time.Time { return time.Time{} },
		Backlog:     func(context.Context) (map[string]overview.Backlog, error) { return nil, nil },
		DeadLetters: func() map[string]int { return nil },
		LastNotification: func(_ context.Context, code string) (time.Time, error) {
			return map[string]time.Time{"b": began}[code], nil
		},
		Drift: func(context.Context, string) (string, error) { return "", nil },
		Now:   func() time.Time { return noon },
	})
	all, err := o.Repositories(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := all[0], all[1]; a.RatePerSecond != 40 || a.LastNotification != nil || b.RatePerSecond != 0 || b.LastNotification == nil || !b.LastNotification.Equal(began) {
		t.Errorf("%+v and %+v", all[0].RepositoryFigures, all[1].RepositoryFigures)
	}
}
