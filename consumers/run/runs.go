package run

import (
	"context"
	"errors"
	"time"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// runsInFlight bounds the runs of a repository that are started concurrently.
const runsInFlight = 8

// runs starts runs.
type runs struct {
	*repository
	ender *jobEnd
}

// handle starts a run: it expands a repository into organizations, or an organization into its first page.
func (w *runs) handle(ctx context.Context, m core.Message, _ func()) {
	w.loop.Do(ctx, m, func(ctx context.Context) error { return w.start(ctx, m) })
}

// start starts the run of m's Request. It returns loop.ErrBusy when another job of the same scope is still running.
func (w *runs) start(ctx context.Context, m core.Message) error {
	req := m.Request()
	job, err := w.jobs.Of(ctx, m)
	if err != nil || job.State.Final() {
		return err
	}
	if req.Scope == job.Scope && req.Scope != core.ScopeIDs { // otherwise an organization of a repository's job, which holds the scope already
		free, err := w.jobs.AcquireScope(ctx, job)
		if err != nil {
			return err
		}
		if !free {
			return loop.ErrBusy
		}
	}
	if req.Scope == core.ScopeRepository {
		// Before the job starts: a removal that is requested from then on must find the index that is filled.
		if begun, err := w.beginRebuild(ctx, job); !begun {
			return err
		}
	}
	job, err = w.startJob(ctx, job, m.Version())
	if err != nil || job.State.Final() {
		return err
	}
	switch req.Scope {
	case core.ScopeIDs:
		return w.expandIDs(ctx, job)
	case core.ScopeRepository:
		return w.expandRepository(ctx, job)
	case core.ScopeOrganization, core.ScopePage, core.ScopeRecord, core.ScopeRecords, core.ScopeRetry:
	}
	return w.startOrganization(ctx, job, req)
}

// startJob sets a queued job to running. first is the version of its first Request, which may have waited for another job: the run
// begins after the newest Request that is stored now, and writes no document with a lower version than that one's.
func (w *runs) startJob(ctx context.Context, job core.Job, first core.Version) (core.Job, error) {
	if job.State != core.JobQueued {
		return job, nil
	}
	if job.Difference && !w.compares(job) {
		w.log.Info("documents of files are not compared: the run writes all", "job_id", job.ID)
	}
	newest, err := w.Requests.Newest(ctx)
	if err != nil {
		return job, err
	}
	first = max(first, newest)
	mark := w.startCheckpoint(ctx)
	return w.jobs.Update(ctx, job.ID, func(j *core.Job) error {
		if j.State != core.JobQueued {
			return nil
		}
		now := time.Now().UTC()
		j.State, j.StartedAt, j.StartVersion, j.StartCheckpoint = core.JobRunning, &now, first, mark
		j.Kinds = j.Scope == core.ScopeRepository && w.NewKindCounter != nil
		return nil
	})
}

// startCheckpoint returns the index's checkpoint for a run that starts now, or "" while an older Request is pending or in
// flight: its document may still be written, after the checkpoint and yet with an older version than the run's. The sweep of
// a run without a checkpoint reads every version.
func (w *runs) startCheckpoint(ctx context.Context) string {
	idle, err := w.Requests.Idle(ctx, w.Repository.Code)
	if err != nil || !idle {
		return ""
	}
	mark, err := w.Index.Checkpoint(ctx, w.Repository.IndexName)
	if err != nil {
		w.log.InfoContext(ctx, "the index returned no checkpoint; the sweep will read every version", "err", err)
		return ""
	}
	return mark
}

// expandRepository publishes a run for each organization of the repository.
func (w *runs) expandRepository(ctx context.Context, job core.Job) error {
	organizations, _, err := w.calls.Organizations(ctx, job)
	if err != nil && (w.loop.Stopping(ctx) || errors.Is(err, loop.ErrJobEnded)) {
		return err
	}
	if err != nil {
		w.log.WarnContext(ctx, "listing organizations", "job_id", job.ID, "err", err)
		return w.jobs.Fail(ctx, job.ID, err)
	}
	// A process that crashed may have started organizations that are no longer listed: they end like the others.
	begun, err := w.Organizations.Organizations(ctx, job.ID)
	if err != nil {
		return err
	}
	for _, run := range begun {
		organizations = append(organizations, run.Organization)
	}
	organizations = w.Fetcher.ValidOrganizations(organizations)
	if err := w.jobs.Expect(ctx, job.ID, len(organizations)); err != nil {
		return err
	}
	if err := w.publishOrganizations(ctx, job, begun, organizations); err != nil {
		return err
	}
	return w.ender.endIfComplete(ctx, job.ID)
}

func (w *runs) publishOrganization(ctx context.Context, job core.Job, organization string) error {
	run := core.OrganizationRun{Organization: organization, State: core.JobQueued, DoneThrough: -1}
	if _, err := w.Organizations.CreateOrganization(ctx, job.ID, run); err != nil {
		return err
	}
	return w.loop.RetryUntilStopped(ctx, "publishing an organization", func() error {
		return w.Requests.Publish(ctx, state.Child(job, core.ScopeOrganization, organization))
	})
}

// startOrganization publishes the first page of an organization, unless its chain of pages was started already.
func (w *runs) startOrganization(ctx context.Context, job core.Job, req core.Request) error {
	if job.Scope == core.ScopeOrganization && job.ExpectedOrganizations == nil {
		if err := w.jobs.Expect(ctx, job.ID, 1); err != nil {
			return err
		}
	}
	run := core.OrganizationRun{Organization: req.Organization, State: core.JobQueued, DoneThrough: -1}
	if _, err := w.Organizations.CreateOrganization(ctx, job.ID, run); err != nil {
		return err
	}
	run, err := w.Organizations.Organization(ctx, job.ID, req.Organization)
	if err != nil || run.Begun() {
		return err
	}
	return w.publishFirst(ctx, job, req.Organization)
}

// publishFirst publishes the first page of an organization. Doing so twice has no effect.
func (r *repository) publishFirst(ctx context.Context, job core.Job, organization string) error {
	first := state.Child(job, core.ScopePage, organization)
	first.Page = &core.Page{Limit: r.PageSize}
	return r.loop.RetryUntilStopped(ctx, "publishing the first page", func() error { return r.Requests.Publish(ctx, first) })
}
