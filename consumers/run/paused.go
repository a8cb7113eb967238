package run

import (
	"context"
	"fmt"
	"time"

	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/internal/core"
)

// gaveUpError returns the error of a call that is not retried any more because the repository has not answered for too long.
func (r *repository) gaveUpError(cause error) error {
	return core.WrapError(core.CodeOf(cause), fmt.Sprintf(
		"%s; the repository did not answer for %s (upstream.giveUpAfter); start the run again once it does",
		core.MessageOf(cause), r.GiveUpAfter), cause)
}

// listOrganizations returns the upstream's organizations. A list that is not answered PageAttempts times pauses the job until
// the repository answers. waited reports whether that happened.
func (r *repository) listOrganizations(ctx context.Context, job core.Job) (listed []string, waited bool, err error) {
	waited, err = r.answered(ctx, job, func() (err error) {
		if err = r.Fetcher.ReadTypes(ctx, job); err == nil {
			listed, err = r.Fetcher.Organizations(ctx)
		}
		return err
	})
	return listed, waited, err
}

// answered makes a call to the upstream until it answers. A call that is not answered PageAttempts times pauses the job until the repository
// answers. waited reports whether that happened.
func (r *repository) answered(ctx context.Context, job core.Job, call func() error) (waited bool, err error) {
	jobEnded := func() bool { return r.jobs.Ended(ctx, job.ID) }
	paused := job.State == core.JobPaused
	var since time.Time
	if job.Pause != nil {
		since = job.Pause.Since
	}
	for try := 1; ; try++ {
		answered, err := r.callOnce(ctx, job, jobEnded, call)
		if since.IsZero() {
			since = time.Now()
		}
		if paused && answered {
			if err := r.jobs.Resume(ctx, job.ID); err != nil {
				return waited, err
			}
			paused, since, try = false, time.Time{}, 1
		}
		switch {
		case err == nil:
			return waited, nil
		case r.loop.Stopping(ctx), !fetch.Retryable(err), answered && try >= r.PageAttempts:
			return waited, err
		case jobEnded():
			return waited, loop.ErrJobEnded
		case !paused && try < r.PageAttempts:
			if stop := r.loop.Sleep(r.loop.Delay(try, err)); stop != nil {
				return waited, stop
			}
		case r.outage.gaveUp(job, since):
			return waited, r.gaveUpError(err)
		default:
			paused, waited = true, true
			if err := r.jobs.Pause(ctx, job.ID, since, err); err != nil {
				return waited, err
			}
			r.outage.start(err, try, since)
		}
	}
}

// callOnce makes a call once, and reports whether the repository answered.
func (r *repository) callOnce(ctx context.Context, job core.Job, jobEnded func() bool, call func() error) (answered bool, err error) {
	done, err := r.outage.await(job, jobEnded)
	if err != nil {
		return false, err
	}
	err = call()
	if fetch.Unanswered(err) || err != nil && r.loop.Stopping(ctx) {
		done(err)
		return false, err
	}
	done(nil)
	return true, err
}
