package run

import (
	"context"
	"errors"
	"time"

	"tutti/consumers/counts"
	"tutti/consumers/ids"
	"tutti/consumers/loop"
	"tutti/consumers/outage"
	"tutti/consumers/page"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// runsInFlight bounds the runs of a repository that are started concurrently.
const runsInFlight = 8

// starter starts runs.
type starter struct {
	cfg   *Config
	loop  *loop.Loop
	jobs  *state.Jobs
	calls *outage.Calls
	kinds *counts.Kinds
	pages *page.Worker
	ids   *ids.Worker
	ender *jobEnd
}

// handle starts a run: it expands a repository into organizations, or an organization into its first page.
func (s *starter) handle(ctx context.Context, m core.Message, _ func()) {
	s.loop.Do(ctx, m, func(ctx context.Context) error { return s.start(ctx, m) })
}

// start starts the run of m's Request. It returns loop.ErrBusy when another job of the same scope is still running.
func (s *starter) start(ctx context.Context, m core.Message) error {
	req := m.Request()
	job, err := s.jobs.Of(ctx, m)
	if err != nil || job.State.Final() {
		return err
	}
	if req.Scope == job.Scope && req.Scope != core.ScopeIDs { // otherwise an organization of a repository's job, which holds the scope already
		free, err := s.jobs.AcquireScope(ctx, job)
		if err != nil {
			return err
		}
		if !free {
			return loop.ErrBusy
		}
	}
	if req.Scope == core.ScopeRepository {
		// Before the job starts: a removal that is requested from then on must find the index that is filled.
		if begun, err := s.beginRebuild(ctx, job); !begun {
			return err
		}
	}
	job, err = s.startJob(ctx, job, m.Version())
	if err != nil || job.State.Final() {
		return err
	}
	switch req.Scope {
	case core.ScopeIDs:
		return s.ids.Start(ctx, job)
	case core.ScopeRepository:
		return s.expandRepository(ctx, job)
	case core.ScopeOrganization, core.ScopePage, core.ScopeRecord, core.ScopeRecords, core.ScopeRetry:
	}
	return s.startOrganization(ctx, job, req)
}

// startJob sets a queued job to running. first is the version of its first Request, which may have waited for another job: the run
// begins after the newest Request that is stored now, and writes its documents with a version that no other Request has.
func (s *starter) startJob(ctx context.Context, job core.Job, first core.Version) (core.Job, error) {
	if job.State != core.JobQueued {
		return job, nil
	}
	if job.Difference && !state.Compares(job, s.cfg.Split != nil) {
		s.cfg.Logger.Info("documents of files are not compared: the run writes all", "job_id", job.ID)
	}
	newest, err := s.cfg.Requests.Newest(ctx)
	if err != nil {
		return job, err
	}
	if newest > first {
		first = newest + 1 // the next one is stored more than a nanosecond later
	}
	mark := s.startCheckpoint(ctx)
	return s.jobs.Update(ctx, job.ID, func(j *core.Job) error {
		if j.State != core.JobQueued {
			return nil
		}
		now := time.Now().UTC()
		j.State, j.StartedAt, j.StartVersion, j.StartCheckpoint = core.JobRunning, &now, first, mark
		j.Kinds = j.Scope == core.ScopeRepository && s.kinds.Counted()
		return nil
	})
}

// startCheckpoint returns the index's checkpoint for a run that starts now, or "" while an older Request is pending or in
// flight: its document may still be written, after the checkpoint and yet with an older version than the run's. The sweep of
// a run without a checkpoint reads every version.
func (s *starter) startCheckpoint(ctx context.Context) string {
	idle, err := s.cfg.Requests.Idle(ctx, s.cfg.Repository.Code)
	if err != nil || !idle {
		return ""
	}
	mark, err := s.cfg.Index.Checkpoint(ctx, s.cfg.Repository.IndexName)
	if err != nil {
		s.cfg.Logger.InfoContext(ctx, "the index returned no checkpoint; the sweep will read every version", "err", err)
		return ""
	}
	return mark
}

// expandRepository publishes a run for each organization of the repository.
func (s *starter) expandRepository(ctx context.Context, job core.Job) error {
	organizations, _, err := s.calls.Organizations(ctx, job)
	if err != nil && (s.loop.Stopping(ctx) || errors.Is(err, loop.ErrJobEnded)) {
		return err
	}
	if err != nil {
		s.cfg.Logger.WarnContext(ctx, "listing organizations", "job_id", job.ID, "err", err)
		return s.jobs.Fail(ctx, job.ID, err)
	}
	// A process that crashed may have started organizations that are no longer listed: they end like the others.
	begun, err := s.cfg.Organizations.Organizations(ctx, job.ID)
	if err != nil {
		return err
	}
	for _, run := range begun {
		organizations = append(organizations, run.Organization)
	}
	organizations = s.cfg.Fetcher.ValidOrganizations(organizations)
	if err := s.jobs.Expect(ctx, job.ID, len(organizations)); err != nil {
		return err
	}
	if err := s.publishOrganizations(ctx, job, begun, organizations); err != nil {
		return err
	}
	return s.ender.endIfComplete(ctx, job.ID)
}

func (s *starter) publishOrganization(ctx context.Context, job core.Job, organization string) error {
	run := core.OrganizationRun{Organization: organization, State: core.JobQueued, DoneThrough: -1}
	if _, err := s.cfg.Organizations.CreateOrganization(ctx, job.ID, run); err != nil {
		return err
	}
	return s.loop.RetryUntilStopped(ctx, "publishing an organization", func() error {
		return s.cfg.Requests.Publish(ctx, state.Child(job, core.ScopeOrganization, organization))
	})
}

// startOrganization publishes the first page of an organization, unless its chain of pages was started already.
func (s *starter) startOrganization(ctx context.Context, job core.Job, req core.Request) error {
	if job.Scope == core.ScopeOrganization && job.ExpectedOrganizations == nil {
		if err := s.jobs.Expect(ctx, job.ID, 1); err != nil {
			return err
		}
	}
	run := core.OrganizationRun{Organization: req.Organization, State: core.JobQueued, DoneThrough: -1}
	if _, err := s.cfg.Organizations.CreateOrganization(ctx, job.ID, run); err != nil {
		return err
	}
	run, err := s.cfg.Organizations.Organization(ctx, job.ID, req.Organization)
	if err != nil || run.Begun() {
		return err
	}
	return s.pages.PublishFirst(ctx, job, req.Organization, 0)
}
