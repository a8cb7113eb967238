package why

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/report/recordtrace"
)

// jobs finds the newest runs over the organization, and the newest jobs over lists of ids that name the record.
func (c *collection) jobs(ctx context.Context) error {
	j := &c.trace.Jobs
	j.InProgress = []recordtrace.Job{}
	newest, err := c.newestJobs.get(ctx, c.cfg.Jobs, c.repository.Code)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(newest, maxCalls) {
		found := make([]*recordtrace.Job, len(chunk))
		var calls errgroup.Group
		for i, job := range chunk {
			if job.State.Final() && j.LastEnded != nil {
				continue
			}
			calls.Go(func() (err error) {
				found[i], err = c.job(ctx, job)
				return err
			})
		}
		if err := calls.Wait(); err != nil {
			return err
		}
		for _, job := range found {
			switch {
			case job == nil:
			case !job.State.Final():
				j.InProgress = append(j.InProgress, *job)
			case j.LastEnded == nil:
				j.LastEnded = job
			}
		}
	}
	j.Status = recordtrace.StatusNone
	if j.LastEnded != nil || len(j.InProgress) > 0 {
		j.Status = recordtrace.StatusPresent
	}
	return nil
}

// organizationWait bounds the reading of an organization's state in a job that is in progress: it is written often, which reads wait for.
const organizationWait = 50 * time.Millisecond

// settledAfter is how long after the end of a job what it did is not remembered: a page in flight may still end.
const settledAfter = time.Minute

// endedKey is the key of a job that has ended, as one record has it; id is empty unless the job is over a list of ids.
type endedKey struct{ job, organization, id string }

// job describes a job, nil if it does not concern the record, or has ended without reading it. What a job did that has ended a while ago is read once.
func (c *collection) job(ctx context.Context, job core.Job) (*recordtrace.Job, error) {
	if job.Scope == core.ScopeRetry || job.Organization != "" && job.Organization != c.trace.Organization {
		return nil, nil //nolint:nilnil // as the comment says
	}
	key := endedKey{job: job.ID, organization: c.trace.Organization}
	if job.Scope == core.ScopeIDs {
		key.id = c.trace.ID
	}
	found, known := (*recordtrace.Job)(nil), false
	if job.State.Final() {
		found, known = c.endedJobs.Get(key)
	}
	if !known {
		var err error
		if found, err = c.readJob(ctx, job); err != nil {
			return nil, err
		}
		if job.State.Final() && job.EndedAt != nil && time.Since(*job.EndedAt) > settledAfter {
			c.endedJobs.Put(key, found, 1)
		}
	}
	if found == nil {
		return nil, nil //nolint:nilnil // as the comment says
	}
	own := *found
	if c.restricted && job.Organization == "" {
		own.ID = ""
	}
	if c.restricted && own.Outcome == idlist.Mismatch {
		own.Outcome = idlist.Removed
	}
	return &own, nil
}

func (c *collection) readJob(ctx context.Context, job core.Job) (*recordtrace.Job, error) {
	found := &recordtrace.Job{ID: job.ID, Scope: job.Scope, State: job.State, QueuedAt: job.QueuedAt, EndedAt: job.EndedAt}
	if job.Scope == core.ScopeIDs {
		listed, err := c.cfg.Lists.Find(ctx, job.ID, c.trace.Organization, c.trace.ID)
		found.Outcome = listed.Outcome
		switch {
		case core.CodeOf(err) == core.CodeNotFound, err == nil && listed.Outcome == "" && job.State.Final():
			return nil, nil //nolint:nilnil // it does not concern the record
		case listed.Outcome == "":
			found.Outcome = idlist.Queued
		}
		return found, err
	}
	wait := ctx
	if !job.State.Final() {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, organizationWait)
		defer cancel()
	}
	run, err := c.cfg.Jobs.Organization(wait, job.ID, c.trace.Organization)
	switch {
	case core.CodeOf(err) == core.CodeNotFound && job.State.Final():
		return nil, nil //nolint:nilnil // it never read the organization
	case core.CodeOf(err) == core.CodeNotFound, err != nil && wait.Err() != nil && ctx.Err() == nil:
		return found, nil
	default:
		found.OrganizationState = run.State
		if run.Error != nil {
			found.ErrorCode = run.Error.Code
		} else if job.Error.Guard() && !run.Swept { // that of another organization has swept this one
			found.ErrorCode = job.Error.Code
		}
		return found, err
	}
}
