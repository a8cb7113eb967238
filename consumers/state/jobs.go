// Package state is what is stored of jobs and of their organizations: who runs over a scope, who waits, what the pages report, and how
// jobs end. Only its types and the end of a run change it.
//
// It imports internal/core, internal/base/keylock and consumers/loop, and knows no page, no record and no index.
package state

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/google/uuid"

	"tutti/consumers/loop"
	"tutti/internal/core"
)

// Config holds the dependencies of Jobs; all are required.
type Config struct {
	// IndexName is the name of the repository's index.
	IndexName string
	Loop      *loop.Loop
	Store     core.Jobs
	Groups    OrganizationGroups
	Cells     core.Cells
}

// Jobs are the jobs of one repository.
type Jobs struct {
	cfg  Config
	sums *sums
}

// New returns the jobs of a repository.
func New(cfg Config) *Jobs { return &Jobs{cfg: cfg, sums: newSums(cfg.Groups)} }

// Get returns a job; CodeNotFound when there is none.
func (s *Jobs) Get(ctx context.Context, id string) (core.Job, error) { return s.cfg.Store.Get(ctx, id) }

// Update changes a job by a compare-and-set that is retried on a conflict.
func (s *Jobs) Update(ctx context.Context, id string, change func(*core.Job) error) (core.Job, error) {
	return s.cfg.Store.Update(ctx, id, change)
}

// Expect stores how many organizations a job has.
func (s *Jobs) Expect(ctx context.Context, id string, organizations int) error {
	_, err := s.cfg.Store.Update(ctx, id, func(j *core.Job) error {
		j.ExpectedOrganizations = &organizations
		return nil
	})
	return err
}

// Complete reports whether all organizations of a job exist and have ended.
func (s *Jobs) Complete(ctx context.Context, job core.Job) (bool, error) {
	if job.ExpectedOrganizations == nil {
		return false, nil
	}
	of, err := s.sums.of(ctx, job.ID)
	return err == nil && of.open == 0 && of.known >= *job.ExpectedOrganizations, err
}

// Of returns the job of m's Request, and creates it when a crash prevented that.
func (s *Jobs) Of(ctx context.Context, m core.Message) (core.Job, error) {
	req := m.Request()
	job, err := s.cfg.Store.Get(ctx, req.JobID)
	if core.CodeOf(err) != core.CodeNotFound {
		return job, err
	}
	job = core.NewJob(req, s.cfg.IndexName)
	if err := s.cfg.Store.Create(ctx, job); err != nil && core.CodeOf(err) != core.CodeConflict {
		return job, err
	}
	return s.cfg.Store.Get(ctx, req.JobID)
}

// Ended reports whether a job is known to be final.
func (s *Jobs) Ended(ctx context.Context, id string) bool {
	job, err := s.cfg.Store.Get(ctx, id)
	return err == nil && job.State.Final()
}

// Sleep waits for d while the process is not stopping. It returns true as soon as the job has ended.
func (s *Jobs) Sleep(ctx context.Context, jobID string, d time.Duration) (ended bool, err error) {
	const interval = 2 * time.Second
	for d > 0 {
		if err := s.cfg.Loop.Sleep(min(d, interval)); err != nil {
			return false, err
		}
		if d -= interval; d > 0 && s.Ended(ctx, jobID) {
			return true, nil
		}
	}
	return false, nil
}

// scopeCell names the compare-and-swap cell that holds the id of the job that runs over a scope.
func scopeCell(j core.Job) string {
	enc := base64.RawURLEncoding
	return "running." + enc.EncodeToString([]byte(j.Repository)) + "." + string(j.Scope) + "." +
		enc.EncodeToString([]byte(j.Organization)) + "_"
}

// AcquireScope makes job the running job of its scope. It returns false when another job is.
func (s *Jobs) AcquireScope(ctx context.Context, job core.Job) (bool, error) {
	name := scopeCell(job)
	for {
		current, revision, err := s.cfg.Cells.Cell(ctx, name)
		if err != nil || current == job.ID {
			return err == nil, err
		}
		if current != "" {
			other, err := s.cfg.Store.Get(ctx, current)
			if err != nil && core.CodeOf(err) != core.CodeNotFound {
				return false, err
			}
			if err == nil && !other.State.Final() {
				return false, nil
			}
		}
		err = s.cfg.Cells.SetCell(ctx, name, job.ID, revision)
		if core.CodeOf(err) == core.CodeConflict {
			continue
		}
		return err == nil, err
	}
}

// Pause sets a job to paused, because calls have failed with cause since then. It returns loop.ErrJobEnded when the job
// has ended.
func (s *Jobs) Pause(ctx context.Context, id string, since time.Time, cause error) error {
	return s.cfg.Loop.RetryUntilStopped(ctx, "pausing a job", func() error {
		_, err := s.cfg.Store.Update(ctx, id, func(j *core.Job) error {
			if j.State.Final() {
				return loop.ErrJobEnded
			}
			if j.Pause != nil {
				since = j.Pause.Since
			}
			j.State, j.Pause = core.JobPaused, &core.JobPause{Reason: PauseReason(cause), Since: since.UTC()}
			return nil
		})
		return err
	})
}

// Resume sets a paused job to running unless one of its organizations is paused.
func (s *Jobs) Resume(ctx context.Context, id string) error {
	return s.cfg.Loop.RetryUntilStopped(ctx, "resuming a job", func() error {
		of, err := s.sums.of(ctx, id)
		if err != nil || of.paused > 0 {
			return err
		}
		_, err = s.cfg.Store.Update(ctx, id, func(j *core.Job) error {
			if j.State == core.JobPaused {
				j.State, j.Pause = core.JobRunning, nil
			}
			return nil
		})
		return err
	})
}

// Fail fails a job whose organizations could not be listed.
func (s *Jobs) Fail(ctx context.Context, id string, cause error) error {
	_, err := s.cfg.Store.Update(ctx, id, func(j *core.Job) error {
		if j.State.Final() {
			return nil
		}
		j.End(core.JobFailed, &core.JobError{Code: string(core.CodeOf(cause)), Message: core.DisplayOf(cause)})
		return nil
	})
	return err
}

// PauseReason returns why a run waits, safe to display.
func PauseReason(cause error) string { return "waiting for the repository: " + core.DisplayOf(cause) }

// Child returns a Request that belongs to a job, for one of its organizations or records.
func Child(job core.Job, scope core.Scope, organization string) core.Request {
	return core.Request{
		ID: uuid.Must(uuid.NewV7()).String(), Kind: core.KindIndex, Scope: scope, Repository: job.Repository, Organization: organization,
		JobID: job.ID, Cause: job.Cause, Force: job.Force, Rebuild: job.Rebuild, Difference: job.Difference, ReceivedAt: time.Now().UTC(),
	}
}
