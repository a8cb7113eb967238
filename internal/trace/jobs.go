package trace

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
)

// jobs finds the newest runs over the organization, and the newest jobs over lists of ids that name the record.
func (c *collection) jobs(ctx context.Context) error {
	j := &c.trace.Jobs
	j.InProgress = []core.TraceJob{}
	newest, err := c.newestJobs.get(ctx, c.cfg.Jobs, c.repository.Code)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(newest, maxCalls) {
		found := make([]*core.TraceJob, len(chunk))
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
	j.Status = core.TraceNone
	if j.LastEnded != nil || len(j.InProgress) > 0 {
		j.Status = core.TracePresent
	}
	return nil
}

// job describes a job, nil if it does not concern the record, or has ended without reading it.
func (c *collection) job(ctx context.Context, job core.Job) (*core.TraceJob, error) {
	if job.Organization != "" && job.Organization != c.trace.Organization {
		return nil, nil //nolint:nilnil // as the comment says
	}
	found := &core.TraceJob{ID: job.ID, Scope: job.Scope, State: job.State, QueuedAt: job.QueuedAt, EndedAt: job.EndedAt}
	if c.restricted && job.Organization == "" {
		found.ID = ""
	}
	if job.Scope == core.ScopeIDs {
		listed, err := c.cfg.Lists.Find(ctx, job.ID, c.trace.Organization, c.trace.ID)
		found.Outcome = listed.Outcome
		switch {
		case core.CodeOf(err) == core.CodeNotFound, err == nil && listed.Outcome == "" && job.State.Final():
			return nil, nil //nolint:nilnil // as the comment says
		case listed.Outcome == "":
			found.Outcome = core.IDQueued
		}
		return found, err
	}
	run, err := c.cfg.Jobs.Organization(ctx, job.ID, c.trace.Organization)
	switch {
	case core.CodeOf(err) != core.CodeNotFound:
		found.OrganizationState = run.State
		return found, err
	case job.State.Final():
		return nil, nil //nolint:nilnil // it never read the organization
	default:
		return found, nil
	}
}
