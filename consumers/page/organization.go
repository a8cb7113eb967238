package page

import (
	"context"
	"errors"
	"time"

	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// organization is the run of one organization as one of its pages sees it: it runs, waits for the index, or is paused while the
// repository does not answer.
type organization struct {
	cfg  *Config
	job  core.Job
	name string
	// queued is true until the organization is stored as running.
	queued bool
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

// answered is called with the error of a call for the page. It resumes a paused organization when the repository has answered. It returns an
// error when the page must not go on.
type answered func(ctx context.Context, readErr error) error

// begin blocks until the page may be read: the index takes writes, and the repository answers or may be probed. The caller must call
// answered after its call. It returns loop.ErrJobEnded when the job has ended by then, and a *pageError when the job cannot go on with the
// index that it fills. A group checks that index once, so that its pages only do when they are reread.
func (o *organization) begin(ctx context.Context, reread bool) (answered, error) {
	if err := o.cfg.Loop.AwaitIndex(); err != nil {
		return nil, err
	}
	if o.jobEnded(ctx) {
		return nil, loop.ErrJobEnded
	}
	if o.job.Rebuild && (o.member == nil || reread) {
		if err := o.cfg.checkRebuild(ctx, o.job); err != nil {
			return nil, err
		}
	}
	done, err := o.cfg.Outage.Await(ctx, o.job)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, readErr error) error {
		switch {
		case errors.Is(readErr, loop.ErrJobEnded):
			done(readErr)
			return readErr
		case fetch.Unanswered(readErr) || readErr != nil && o.cfg.Loop.Stopping(ctx):
			done(readErr)
			return nil
		}
		done(nil)
		o.failingSince = time.Time{}
		if o.paused { // a page of another organization of a paused job resumes the job if no organization is paused any more
			return o.resume(ctx)
		}
		return nil
	}, nil
}

// jobEnded reports whether the job is known to be final.
func (o *organization) jobEnded(ctx context.Context) bool {
	if o.member != nil {
		return o.member.group.jobEnded(ctx)
	}
	return o.cfg.Jobs.Ended(ctx, o.job.ID)
}

// checkRebuild returns a *pageError when a job cannot go on with the index that it fills.
func (c *Config) checkRebuild(ctx context.Context, job core.Job) error {
	err := c.Rebuild.Check(ctx, job.ID)
	if core.CodeOf(err) == core.CodeConflict {
		return &pageError{cause: err}
	}
	return c.Outcomes.PauseOnError(err)
}

// markRunning sets a queued organization to running when its first page is read.
func (o *organization) markRunning(ctx context.Context) {
	o.queued = false
	state.MarkRunning(ctx, o.cfg.Logger, o.job.ID, o.name, o.update)
}

// update changes the stored organization.
func (o *organization) update(ctx context.Context, change func(*core.OrganizationRun) error) (core.OrganizationRun, error) {
	if o.member != nil {
		return o.member.group.update(o.name, change)
	}
	return o.cfg.Organizations.UpdateOrganization(ctx, o.job.ID, o.name, change)
}

// failed counts a failure to read the page, and returns how many there were since the last answer.
func (o *organization) failed() int {
	o.failures++
	if o.failingSince.IsZero() {
		o.failingSince = time.Now()
	}
	return o.failures
}

// pause pauses the run because the repository did not answer the page after several attempts. It returns a *pageError when
// that has lasted for too long.
func (o *organization) pause(ctx context.Context, cause error) error {
	if o.cfg.Outage.GaveUp(o.job, o.failingSince) {
		return &pageError{cause: o.cfg.Calls.GaveUpError(cause)}
	}
	err := o.cfg.Loop.RetryUntilStopped(ctx, "pausing an organization", func() error {
		_, err := o.update(ctx, func(run *core.OrganizationRun) error {
			if run.State.Final() {
				return loop.ErrJobEnded
			}
			since := o.failingSince.UTC()
			run.State, run.PausedSince = core.JobPaused, &since
			run.Error = &core.JobError{Code: string(core.CodeOf(cause)), Message: core.MessageOf(cause)}
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	if err := o.cfg.Jobs.Pause(ctx, o.job.ID, o.failingSince, cause); err != nil {
		return err
	}
	first := !o.paused
	o.paused = true
	ended, _, answers := o.cfg.Outage.Current()
	others := answers != o.answers
	o.answers = answers
	if ended != nil || first || !others {
		o.cfg.Outage.Start(cause, o.failures, o.failingSince)
		return nil
	}
	// The repository answers other calls: only this page waits.
	jobEnded, err := o.cfg.Jobs.Sleep(ctx, o.job.ID, o.cfg.Loop.Delay(o.failures, cause))
	if jobEnded {
		err = loop.ErrJobEnded
	}
	return err
}

// resume sets a paused organization, and its job, to running once the repository has answered.
func (o *organization) resume(ctx context.Context) error {
	err := o.cfg.Loop.RetryUntilStopped(ctx, "resuming an organization", func() error {
		_, err := o.update(ctx, func(run *core.OrganizationRun) error {
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
	if o.member != nil {
		if err := o.member.group.store(ctx); err != nil {
			return err
		}
	}
	o.paused, o.failures, o.failingSince = false, 0, time.Time{}
	return o.cfg.Jobs.Resume(ctx, o.job.ID)
}
