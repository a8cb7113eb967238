package sweep

import (
	"context"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// Repository sweeps a repository's job at its end: in one scan when all its organizations were read completely, otherwise each
// complete one separately. Before that, it sweeps the excluded organizations and the parts of records. It returns the runs as they are afterwards.
func (s *Sweeper) Repository(ctx context.Context, job core.Job, runs []core.OrganizationRun) (Result, []core.OrganizationRun, error) {
	vanished, err := s.sweepExcluded(ctx, job)
	if err == nil {
		var parts Result
		parts, err = s.sweepParts(ctx, job)
		vanished.add(parts)
	}
	if err != nil {
		return vanished, runs, err
	}
	if state.AllReadWhole(runs) {
		var swept Result
		swept, err = s.sweepRepository(ctx, job, runs)
		vanished.add(swept)
	} else {
		err = s.sweepCompleteOrganizations(ctx, job, runs)
	}
	if err != nil {
		return vanished, runs, err
	}
	runs, err = s.cfg.Organizations.Organizations(ctx, job.ID)
	return vanished, runs, err
}

// refreshAttempts is how often a refresh of an index that takes writes is tried for a job, over about 20 seconds.
const refreshAttempts = 8

// refresh makes earlier writes visible to scans and searches, as soon as the index takes writes. It returns why that failed,
// and an error only when the process is stopping or, loop.ErrJobEnded, the job has ended.
func (q *requests) refresh(ctx context.Context, job core.Job) (*core.JobError, error) {
	for try := 1; ; try++ {
		if err := q.cfg.Loop.AwaitIndex(); err != nil {
			return nil, err
		}
		if try > 1 && q.cfg.Jobs.Ended(ctx, job.ID) {
			return nil, loop.ErrJobEnded
		}
		err := q.cfg.Outcomes.PauseOnError(q.cfg.Index.Refresh(ctx, q.cfg.Repository.IndexName))
		if err == nil {
			return nil, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if try == refreshAttempts {
			return &core.JobError{
				Code: core.JobErrorNotRefreshed, Message: "searches may not find the written documents yet: " + core.DisplayOf(err),
			}, nil
		}
		q.cfg.Logger.Info("retrying to refresh the index", "job_id", job.ID, "attempts", try, "err", err)
		if err := q.cfg.Loop.Sleep(q.cfg.Loop.Delay(try, nil)); err != nil {
			return nil, err
		}
	}
}
