// Package overview reports the state of each repository and its index.
package overview

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// maxJobs is how many of the newest jobs are searched for the runs of the repositories.
const maxJobs = 1000

// Jobs reads jobs.
type Jobs interface {
	// Sum sums the organizations of a job.
	Sum(ctx context.Context, id string) (jobsum.Sum, error)
	List(ctx context.Context, f core.JobFilter) ([]core.Job, string, error)
}

// Backlog is the number of Requests of one repository that wait, and of those in flight.
type Backlog struct {
	Pending  uint64
	InFlight int
}

// Config holds the dependencies of an Overview; all but Now are required.
type Config struct {
	Jobs Jobs
	// Paused lists the paused repositories.
	Paused func() []core.Pause
	// LastSuccess returns when a document of a repository was last written by this process, the zero time if it is unknown.
	LastSuccess func(repository string) time.Time
	// Backlog returns the backlog of the repositories by code.
	Backlog func(ctx context.Context) (map[string]Backlog, error)
	// DeadLetters returns the numbers of dead letters by the codes of repositories.
	DeadLetters func() map[string]int
	// LastNotification returns when something was last requested of a repository from outside, the zero time for never.
	LastNotification func(ctx context.Context, repository string) (time.Time, error)
	// Drift returns the last comparison of a repository as JSON, empty for none.
	Drift func(ctx context.Context, repository string) (string, error)
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Overview collects the states of the repositories. It is safe for concurrent use.
type Overview struct {
	repositories []core.Repository
	cfg          Config
}

// New returns an Overview of repositories.
func New(repositories []core.Repository, cfg Config) *Overview {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Overview{repositories: repositories, cfg: cfg}
}

// Repositories returns the state of every repository, in the order of the configuration.
func (o *Overview) Repositories(ctx context.Context) ([]core.RepositoryStatus, error) {
	backlog, err := o.cfg.Backlog(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the backlog: %w", err)
	}
	jobs, _, err := o.cfg.Jobs.List(ctx, core.JobFilter{Limit: maxJobs})
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", err)
	}
	paused := map[string]string{}
	for _, p := range o.cfg.Paused() {
		paused[p.Repository] = p.Reason
	}
	letters := o.cfg.DeadLetters()
	all := make([]core.RepositoryStatus, len(o.repositories))
	for i, r := range o.repositories {
		s := core.RepositoryStatus{
			Code: r.Code, Type: r.Type, IndexName: r.IndexName, Name: r.Name, Organization: r.Organization, Country: r.Country,
			Paused: paused[r.Code],
			RepositoryFigures: &core.RepositoryFigures{
				Pending: backlog[r.Code].Pending, InFlight: backlog[r.Code].InFlight, DeadLetters: letters[r.Code],
			},
		}
		if s.Drift, err = o.drift(ctx, r.Code); err != nil {
			return nil, fmt.Errorf("reading the drift of a repository: %w", err)
		}
		if s.LastNotification, err = o.lastNotification(ctx, r.Code); err != nil {
			return nil, fmt.Errorf("reading the last notification of a repository: %w", err)
		}
		if s.RatePerSecond, err = o.rate(ctx, r.Code, jobs); err != nil {
			return nil, fmt.Errorf("reading the rate of a job: %w", err)
		}
		o.noteRuns(&s, jobs)
		s.State = stateOf(&s)
		all[i] = s
	}
	return all, nil
}

// lastNotification returns when a repository was last notified, nil for never.
func (o *Overview) lastNotification(ctx context.Context, code string) (*time.Time, error) {
	at, err := o.cfg.LastNotification(ctx, code)
	if err != nil || at.IsZero() {
		return nil, err
	}
	at = at.UTC()
	return &at, nil
}

// rate returns the sum of the rates of the running jobs of a repository, in records per second.
func (o *Overview) rate(ctx context.Context, code string, jobs []core.Job) (float64, error) {
	sum := 0.0
	for i := range jobs {
		if jobs[i].Repository != code || jobs[i].State != core.JobRunning {
			continue
		}
		of, err := o.cfg.Jobs.Sum(ctx, jobs[i].ID)
		if err != nil {
			return 0, err
		}
		totals, _ := of.TotalsOf(&jobs[i])
		sum += jobs[i].Rate(totals.Fetched, o.cfg.Now())
	}
	return sum, nil
}

func (o *Overview) drift(ctx context.Context, code string) (*core.RepositoryDrift, error) {
	value, err := o.cfg.Drift(ctx, code)
	if err != nil || value == "" {
		return nil, err
	}
	var stored struct {
		JobID   string     `json:"jobId"`
		EndedAt time.Time  `json:"endedAt"`
		Drift   core.Drift `json:"drift"`
	}
	if json.Unmarshal([]byte(value), &stored) != nil || stored.JobID == "" {
		return nil, nil //nolint:nilnil // an unreadable comparison counts as none, as in Health; the cell may hold what other runs found
	}
	return &core.RepositoryDrift{JobID: stored.JobID, EndedAt: stored.EndedAt.UTC(), Drift: stored.Drift}, nil
}

// noteRuns sets the runs of a repository and its last success. jobs are the newest first.
func (o *Overview) noteRuns(s *core.RepositoryStatus, jobs []core.Job) {
	last := o.cfg.LastSuccess(s.Code)
	for _, j := range jobs {
		if j.Repository != s.Code || j.IndexName != s.IndexName {
			continue
		}
		if j.EndedAt != nil && j.EndedAt.After(last) && j.HasWritten() {
			last = *j.EndedAt
		}
		if j.Scope != core.ScopeRepository {
			continue
		}
		switch run := runOf(j); {
		case !j.State.Final() && s.CurrentRun == nil:
			s.CurrentRun = run
		case j.State.Final() && j.State != core.JobCancelled && s.LastRun == nil:
			s.LastRun = run
		}
	}
	if last.IsZero() {
		return
	}
	last = last.UTC()
	age := max(0, int64(o.cfg.Now().Sub(last).Seconds()))
	s.LastSuccess, s.FreshnessSeconds = &last, &age
}

func runOf(j core.Job) *core.RepositoryRun {
	run := &core.RepositoryRun{JobID: j.ID, State: j.State, QueuedAt: j.QueuedAt.UTC(), Error: j.Error}
	if j.EndedAt != nil {
		ended := j.EndedAt.UTC()
		run.EndedAt = &ended
	}
	return run
}

// stateOf returns the worst of the states that a repository is in.
func stateOf(s *core.RepositoryStatus) core.RepositoryState {
	switch {
	case s.Paused != "" || s.CurrentRun != nil && s.CurrentRun.State == core.JobPaused:
		return core.RepositoryPaused
	case s.LastRun != nil && s.LastRun.State == core.JobFailed:
		return core.RepositoryFailing
	case s.LastSuccess == nil:
		return core.RepositoryNeverIndexed
	case s.DeadLetters > 0, s.Drift != nil && s.Drift.Found() > 0, s.LastRun != nil && s.LastRun.State == core.JobPartial:
		return core.RepositoryAttention
	default:
		return core.RepositoryOK
	}
}
