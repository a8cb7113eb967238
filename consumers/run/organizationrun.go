package run

import (
	"context"
	"time"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// organizationRun is the run of one organization as one of its pages sees it: it runs, waits for the index, or is paused while the
// repository does not answer.
type organizationRun struct {
	*repository
	req core.Request
	job core.Job
	// organizationQueued is true until the organization is stored as running.
	organizationQueued bool
	// member is the organization's place in its group, nil unless the organization is stored there.
	member *member
	// failures counts the consecutive failures to read the page, and failingSince is when they began, in any process.
	failures     int
	failingSince time.Time
	// paused is true while the job or the organization may be stored as paused; answers is then the number of answered calls
	// of all runs at the latest failure.
	paused  bool
	answers int
}

// markRunning sets a queued organization to running when its first page is read. If that fails, the report of the page does
// it.
func (w *organizationRun) markRunning(ctx context.Context) {
	if !w.organizationQueued {
		return
	}
	w.organizationQueued = false
	if _, err := w.update(ctx, func(run *core.OrganizationRun) error {
		if run.State == core.JobQueued {
			run.State = core.JobRunning
		}
		return nil
	}); err != nil {
		w.log.Info("setting an organization to running; the report of the page retries", "job_id", w.job.ID, "organization", w.req.Organization, "err", err)
	}
}

// awaitIndex blocks until the index takes writes. It returns loop.ErrJobEnded when the job has ended by then.
func (w *organizationRun) awaitIndex(ctx context.Context) error {
	if err := w.loop.AwaitIndex(); err != nil {
		return err
	}
	ended := false
	if w.member != nil {
		ended = w.member.group.jobEnded(ctx)
	} else {
		ended = w.jobs.Ended(ctx, w.job.ID)
	}
	if ended {
		return loop.ErrJobEnded
	}
	return nil
}

// update changes the stored organization.
func (w *organizationRun) update(ctx context.Context, change func(*core.OrganizationRun) error) (core.OrganizationRun, error) {
	if w.member != nil {
		return w.member.update(change)
	}
	return w.Organizations.UpdateOrganization(ctx, w.job.ID, w.req.Organization, change)
}

// recordRequest returns the Request for one record of the page.
func (w *organizationRun) recordRequest(id string) core.Request {
	req := state.Child(w.job, core.ScopeRecord, w.req.Organization)
	req.RecordID, req.Force = id, false
	return req
}

// pause pauses the run because the repository did not answer the page after several attempts. It returns a *pageError when
// that has lasted for too long.
func (w *organizationRun) pause(ctx context.Context, cause error) error {
	if w.outage.GaveUp(w.job, w.failingSince) {
		return &pageError{cause: w.calls.GaveUpError(cause)}
	}
	err := w.loop.RetryUntilStopped(ctx, "pausing an organization", func() error {
		_, err := w.update(ctx, func(run *core.OrganizationRun) error {
			if run.State.Final() {
				return loop.ErrJobEnded
			}
			since := w.failingSince.UTC()
			run.State, run.PausedSince = core.JobPaused, &since
			run.Error = &core.JobError{Code: string(core.CodeOf(cause)), Message: core.MessageOf(cause)}
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	if err := w.jobs.Pause(ctx, w.job.ID, w.failingSince, cause); err != nil {
		return err
	}
	first := !w.paused
	w.paused = true
	ended, _, answers := w.outage.Current()
	others := answers != w.answers
	w.answers = answers
	if ended != nil || first || !others {
		w.outage.Start(cause, w.failures, w.failingSince)
		return nil
	}
	// The repository answers other calls: only this page waits.
	jobEnded, err := w.jobs.Sleep(ctx, w.job.ID, w.loop.Delay(w.failures, cause))
	if jobEnded {
		err = loop.ErrJobEnded
	}
	return err
}

// resume sets a paused organization, and its job, to running once the repository has answered.
func (w *organizationRun) resume(ctx context.Context) error {
	err := w.loop.RetryUntilStopped(ctx, "resuming an organization", func() error {
		_, err := w.update(ctx, func(run *core.OrganizationRun) error {
			if run.State == core.JobPaused {
				run.State = core.JobRunning
				run.EndPause()
			}
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	if w.member != nil {
		if err := w.member.group.store(ctx); err != nil {
			return err
		}
	}
	w.paused, w.failures, w.failingSince = false, 0, time.Time{}
	return w.jobs.Resume(ctx, w.job.ID)
}
