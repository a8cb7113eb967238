package outage

import (
	"context"
	"fmt"
	"time"

	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// Config holds the settings and dependencies of Calls; all are required.
type Config struct {
	Loop    *loop.Loop
	Jobs    *state.Jobs
	Fetcher *fetch.Fetcher
	// Attempts is how often a call is made before its job is paused.
	Attempts int
	// GiveUpAfter is how long a run waits for a repository that does not answer before it fails.
	GiveUpAfter time.Duration
}

// Calls makes calls to a repository until it answers them.
type Calls struct {
	cfg    Config
	outage *Outage
}

// NewCalls returns the calls to a repository with an Outage.
func NewCalls(o *Outage, cfg Config) *Calls { return &Calls{cfg: cfg, outage: o} }

// GaveUpError returns the error of a call that is not retried any more because the repository has not answered for too long.
func (c *Calls) GaveUpError(cause error) error {
	return core.WrapError(core.CodeOf(cause), fmt.Sprintf(
		"%s; the repository did not answer for %s (upstream.giveUpAfter); start the run again once it does",
		core.MessageOf(cause), c.cfg.GiveUpAfter), cause)
}

// Organizations returns the upstream's organizations. A list that is not answered Config.Attempts times pauses the job until
// the repository answers. waited reports whether that happened.
func (c *Calls) Organizations(ctx context.Context, job core.Job) (listed []string, waited bool, err error) {
	waited, err = c.Answered(ctx, job, func() (err error) {
		if err = c.cfg.Fetcher.ReadTypes(ctx, job); err == nil {
			listed, err = c.cfg.Fetcher.Organizations(ctx)
		}
		return err
	})
	return listed, waited, err
}

// Answered makes a call to the upstream until it answers. A call that is not answered Config.Attempts times pauses the job until the repository
// answers. waited reports whether that happened.
func (c *Calls) Answered(ctx context.Context, job core.Job, call func() error) (waited bool, err error) {
	paused := job.State == core.JobPaused
	var since time.Time
	if job.Pause != nil {
		since = job.Pause.Since
	}
	for try := 1; ; try++ {
		answered, err := c.callOnce(ctx, job, call)
		if since.IsZero() {
			since = time.Now()
		}
		if paused && answered {
			if err := c.cfg.Jobs.Resume(ctx, job.ID); err != nil {
				return waited, err
			}
			paused, since, try = false, time.Time{}, 1
		}
		switch {
		case err == nil:
			return waited, nil
		case c.cfg.Loop.Stopping(ctx), !fetch.Retryable(err), answered && try >= c.cfg.Attempts:
			return waited, err
		case c.cfg.Jobs.Ended(ctx, job.ID):
			return waited, loop.ErrJobEnded
		case !paused && try < c.cfg.Attempts:
			if stop := c.cfg.Loop.Sleep(c.cfg.Loop.Delay(try, err)); stop != nil {
				return waited, stop
			}
		case c.outage.GaveUp(job, since):
			return waited, c.GaveUpError(err)
		default:
			paused, waited = true, true
			if err := c.cfg.Jobs.Pause(ctx, job.ID, since, err); err != nil {
				return waited, err
			}
			c.outage.Start(err, try, since)
		}
	}
}

// callOnce makes a call once, and reports whether the repository answered.
func (c *Calls) callOnce(ctx context.Context, job core.Job, call func() error) (answered bool, err error) {
	done, err := c.outage.Await(ctx, job)
	if err != nil {
		return false, err
	}
	err = call()
	if fetch.Unanswered(err) || err != nil && c.cfg.Loop.Stopping(ctx) {
		done(err)
		return false, err
	}
	done(nil)
	return true, err
}
