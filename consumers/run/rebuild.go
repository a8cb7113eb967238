package run

import (
	"context"
	"errors"

	"tutti/consumers/counts"
	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// beginRebuild creates the index that a job fills, if it is a rebuild. It returns false when the job has failed or ended instead.
func (s *starter) beginRebuild(ctx context.Context, job core.Job) (begun bool, err error) {
	if !job.Rebuild {
		return true, nil
	}
	if job.State == core.JobQueued { // a trigger that comes later has a rebuild of its own: this one reads the mapping file now
		job, err = s.jobs.Update(ctx, job.ID, func(j *core.Job) error {
			j.Begun = true
			return nil
		})
		if err != nil || job.State.Final() {
			return false, err
		}
	}
	err = s.cfg.Rebuild.Begin(ctx, job.ID, func(ctx context.Context, uncertain counts.Uncertain) (core.Kinds, error) {
		return s.kinds.OfRebuild(ctx, job, uncertain)
	})
	if failed, is := errors.AsType[counts.ReadError](err); is {
		if s.loop.Stopping(ctx) || errors.Is(err, loop.ErrJobEnded) {
			return false, failed.Cause
		}
		s.cfg.Logger.WarnContext(ctx, "reading the records before a rebuild", "job_id", job.ID, "err", failed.Cause)
		return false, s.jobs.Fail(ctx, job.ID, failed.Cause)
	}
	err = s.cfg.Outcomes.PauseOnError(err)
	if code := core.CodeOf(err); code == core.CodeConflict || code == core.CodeInvalid {
		s.cfg.Logger.Warn("the rebuild could not begin", "job_id", job.ID, "err", err)
		return false, s.jobs.Fail(ctx, job.ID, err)
	}
	return err == nil, err
}

// endRebuild makes the filled index the repository's and ends the job, or deletes it when it is not whole: then the index before stays,
// unless another consumer has found the filled one whole.
func (e *jobEnd) endRebuild(ctx context.Context, job core.Job, runs []core.OrganizationRun) error {
	final, fault := state.Outcome(runs)
	totals := state.Sum(runs)
	lacking := fault
	checkErr := e.cfg.Rebuild.Check(ctx, job.ID)
	switch {
	case core.CodeOf(checkErr) == core.CodeConflict: // which the pages have failed for, too
		lacking = conflictError(checkErr)
	case checkErr != nil:
		return e.cfg.Outcomes.PauseOnError(checkErr)
	case !state.AllRead(runs):
		if lacking == nil {
			lacking = &core.JobError{Code: core.JobErrorInterrupted, Message: "not all organizations were read"}
		}
	default:
		swept, err := e.sweeper.Rebuild(ctx, job, runs)
		if err != nil {
			return e.cfg.Outcomes.PauseOnError(err)
		}
		lacking = swept.Guard
		totals.Removed += swept.Removed
		totals.Rejected += swept.Rejected
	}
	if lacking == nil {
		switch err := e.cfg.Rebuild.Finish(ctx, job.ID); {
		case core.CodeOf(err) == core.CodeConflict:
			lacking = conflictError(err)
		case err != nil:
			return e.cfg.Outcomes.PauseOnError(err)
		}
	}
	if lacking != nil {
		moved, err := e.cfg.Rebuild.Discard(ctx, job.ID)
		kept := ""
		if core.CodeOf(err) == core.CodeConflict { // others read the filled index
			kept = " (" + core.DisplayOf(err) + ")"
		} else if err != nil {
			return e.cfg.Outcomes.PauseOnError(err)
		}
		if !moved {
			unchanged := &core.JobError{Code: lacking.Code, Message: "the index was not replaced: " + lacking.Message + kept}
			return e.conclude(ctx, job, core.JobFailed, unchanged, totals)
		}
	}
	if fault == nil && totals.Rejected > 0 {
		final, fault = core.JobPartial, state.RejectedError(e.cfg.Repository.Code, totals.Rejected)
	}
	if lacking == nil {
		e.kinds.NoteEnded(ctx, job)
	}
	return e.conclude(ctx, job, final, fault, totals)
}

func conflictError(err error) *core.JobError {
	return &core.JobError{Code: string(core.CodeConflict), Message: core.DisplayOf(err)}
}
