package consumers

import (
	"context"

	"tutti/internal/core"
)

// refreshAttempts is how often a refresh of an index that takes writes is tried for a job, over about 20 seconds.
const refreshAttempts = 8

// refresh makes earlier writes visible to scans and searches, as soon as the index takes writes. It returns why that failed,
// and an error only when the process is stopping or, errSweepEnded, the job has ended.
func (r *repository) refresh(ctx context.Context, job core.Job) (*core.JobError, error) {
	for try := 1; ; try++ {
		if err := r.pause.wait(r.c.draining); err != nil {
			return nil, err
		}
		if try > 1 && r.jobEnded(ctx, job.ID) {
			return nil, errSweepEnded
		}
		err := r.pauseOnError(r.c.deps.Index.Refresh(ctx, r.IndexName))
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
		r.log.Info("retrying to refresh the index", "job_id", job.ID, "attempts", try, "err", err)
		if err := sleep(r.c.draining, backoff(try, r.c.cfg.RetryBase, r.c.cfg.RetryMax)); err != nil {
			return nil, err
		}
	}
}
