package run

import (
	"context"
	"errors"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// beginRebuild creates the index that a job fills, if it is a rebuild. It returns false when the job has failed or ended instead.
func (w *runs) beginRebuild(ctx context.Context, job core.Job) (begun bool, err error) {
	if !job.Rebuild {
		return true, nil
	}
	if job.State == core.JobQueued { // a trigger that comes later has a rebuild of its own: this one reads the mapping file now
		job, err = w.jobs.Update(ctx, job.ID, func(j *core.Job) error {
			j.Begun = true
			return nil
		})
		if err != nil || job.State.Final() {
			return false, err
		}
	}
	err = w.Rebuild.Begin(ctx, job.ID, func(ctx context.Context, uncertain Uncertain) (core.Kinds, error) {
		return w.rebuildKinds(ctx, job, uncertain)
	})
	if failed, is := errors.AsType[*countError](err); is {
		if w.loop.Stopping(ctx) || errors.Is(err, loop.ErrJobEnded) {
			return false, failed.error
		}
		w.log.WarnContext(ctx, "reading the records before a rebuild", "job_id", job.ID, "err", failed.error)
		return false, w.jobs.Fail(ctx, job.ID, failed.error)
	}
	err = w.Outcomes.PauseOnError(err)
	if code := core.CodeOf(err); code == core.CodeConflict || code == core.CodeInvalid {
		w.log.Warn("the rebuild could not begin", "job_id", job.ID, "err", err)
		return false, w.jobs.Fail(ctx, job.ID, err)
	}
	return err == nil, err
}

// checkRebuild returns a *pageError when the run's job cannot go on with the index that it fills.
func (w *organizationRun) checkRebuild(ctx context.Context) error {
	if !w.job.Rebuild {
		return nil
	}
	err := w.Rebuild.Check(ctx, w.job.ID)
	if core.CodeOf(err) == core.CodeConflict {
		return &pageError{cause: err}
	}
	return w.Outcomes.PauseOnError(err)
}

// endRebuild makes the filled index the repository's and ends the job, or deletes it when it is not whole: then the index before stays,
// unless another consumer has found the filled one whole.
func (e *jobEnd) endRebuild(ctx context.Context, job core.Job, runs []core.OrganizationRun) error {
	final, fault := state.Outcome(runs)
	totals := state.Sum(runs)
	lacking := fault
	checkErr := e.Rebuild.Check(ctx, job.ID)
	switch {
	case core.CodeOf(checkErr) == core.CodeConflict: // which the pages have failed for, too
		lacking = conflictError(checkErr)
	case checkErr != nil:
		return e.Outcomes.PauseOnError(checkErr)
	case !state.AllRead(runs):
		if lacking == nil {
			lacking = &core.JobError{Code: core.JobErrorInterrupted, Message: "not all organizations were read"}
		}
	default:
		swept, err := e.sweeper.Rebuild(ctx, job, runs)
		if err != nil {
			return e.Outcomes.PauseOnError(err)
		}
		lacking = swept.Guard
		totals.Removed += swept.Removed
		totals.Rejected += swept.Rejected
	}
	if lacking == nil {
		switch err := e.Rebuild.Finish(ctx, job.ID); {
		case core.CodeOf(err) == core.CodeConflict:
			lacking = conflictError(err)
		case err != nil:
			return e.Outcomes.PauseOnError(err)
		}
	}
	if lacking != nil {
		moved, err := e.Rebuild.Discard(ctx, job.ID)
		kept := ""
		if core.CodeOf(err) == core.CodeConflict { // others read the filled index
			kept = " (" + core.DisplayOf(err) + ")"
		} else if err != nil {
			return e.Outcomes.PauseOnError(err)
		}
		if !moved {
			unchanged := &core.JobError{Code: lacking.Code, Message: "the index was not replaced: " + lacking.Message + kept}
			return e.conclude(ctx, job, core.JobFailed, unchanged, totals)
		}
	}
	if fault == nil && totals.Rejected > 0 {
		final, fault = core.JobPartial, state.RejectedError(e.Repository.Code, totals.Rejected)
	}
	if lacking == nil {
		e.noteEnded(ctx, job)
	}
	return e.conclude(ctx, job, final, fault, totals)
}

func conflictError(err error) *core.JobError {
	return &core.JobError{Code: string(core.CodeConflict), Message: core.DisplayOf(err)}
}
