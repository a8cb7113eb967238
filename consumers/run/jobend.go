package run

import (
	"context"
	"slices"

	"tutti/consumers/counts"
	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/consumers/sweep"
	"tutti/internal/base/keylock"
	"tutti/internal/core"
)

// jobEnd ends jobs.
type jobEnd struct {
	cfg     *Config
	loop    *loop.Loop
	jobs    *state.Jobs
	kinds   *counts.Kinds
	drift   state.DriftNotes
	sweeper *sweep.Sweeper
	// ending serializes the organizations that end their job at the same time. None may leave it to another one: that one may
	// fail after its message was redelivered to another consumer.
	ending keylock.Locks
}

// endIfComplete ends a job once all its organizations have ended.
func (e *jobEnd) endIfComplete(ctx context.Context, id string) error {
	job, err := e.jobs.Get(ctx, id)
	if err == nil && job.State.Final() {
		state.ForgetPages(ctx, e.cfg.Pages, e.cfg.Logger, id, "")
	}
	if err != nil || job.State.Final() {
		return err
	}
	if complete, err := e.jobs.Complete(ctx, job); err != nil || !complete {
		return err
	}
	unlock, err := e.ending.Lock(e.loop.Draining(), id)
	if err != nil {
		return err
	}
	defer unlock()
	if job, err = e.jobs.Get(ctx, id); err != nil || job.State.Final() {
		return err
	}
	runs, err := e.cfg.Organizations.Organizations(ctx, id)
	if err != nil || slices.ContainsFunc(runs, func(run core.OrganizationRun) bool { return !run.State.Final() }) {
		return err
	}
	return e.end(ctx, job, runs)
}

// end sweeps a job whose organizations have ended, and ends it once searches find the documents it has written.
func (e *jobEnd) end(ctx context.Context, job core.Job, runs []core.OrganizationRun) error {
	e.kinds.Keep(ctx, job, runs)
	if job.Rebuild {
		return e.endRebuild(ctx, job, runs)
	}
	var err error
	var vanished sweep.Result
	if job.Scope == core.ScopeRepository {
		if vanished, runs, err = e.sweeper.Repository(ctx, job, runs); err != nil {
			return err
		}
	}
	if vanished.Guard == nil && state.AllReadWhole(runs) {
		e.kinds.NoteEnded(ctx, job)
	}
	final, fault := state.Outcome(runs)
	totals := state.Sum(runs)
	totals.Removed += vanished.Removed
	totals.Rejected += vanished.Rejected
	totals.Drift.Surplus += vanished.Surplus
	if vanished.Rejected > 0 && final == core.JobSucceeded {
		final = core.JobPartial
	}
	if fault == nil && totals.Rejected > 0 {
		fault = state.RejectedError(e.cfg.Repository.Code, totals.Rejected)
	}
	if vanished.Guard != nil {
		final, fault = core.JobPartial, vanished.Guard
	}
	hidden, err := e.sweeper.Refresh(ctx, job)
	if err != nil {
		return err
	}
	if hidden != nil && final == core.JobSucceeded {
		final, fault = core.JobPartial, hidden
	}
	return e.conclude(ctx, job, final, fault, totals)
}

// conclude ends a job.
func (e *jobEnd) conclude(ctx context.Context, job core.Job, final core.JobState, fault *core.JobError, totals core.Totals) error {
	outcome := core.Job{State: final, Totals: totals}
	if job.Scope == core.ScopeRepository && job.IndexName == e.cfg.Repository.IndexName && outcome.HasWritten() {
		e.noteFilled(ctx, job)
	}
	mine := false
	ended, err := e.jobs.Update(ctx, job.ID, func(j *core.Job) error {
		if mine = !j.State.Final(); !mine {
			return nil
		}
		j.End(final, fault)
		j.Totals = totals
		return nil
	})
	if err == nil { // the notes of the sweep, of organizations that are not listed too
		state.ForgetPages(ctx, e.cfg.Pages, e.cfg.Logger, job.ID, "")
	}
	switch {
	case err != nil || !mine:
	case state.Compares(job, e.cfg.Split != nil):
		e.cfg.Outcomes.AddDrift(ended.Totals.Drift)
		if job.Scope == core.ScopeRepository {
			e.drift.NoteDifference(ctx, ended)
		}
	case job.Scope == core.ScopeRepository:
		e.drift.NoteRun(ctx, ended)
	}
	if err == nil && mine {
		code := ""
		if ended.Error != nil {
			code = ended.Error.Code
		}
		e.cfg.Logger.InfoContext(ctx, "job ended", "job_id", job.ID, "state", string(ended.State), "error_code", code, "indexed", ended.Totals.Indexed,
			"removed", ended.Totals.Removed, "rejected", ended.Totals.Rejected, "drift", ended.Totals.Drift.Found())
	}
	return err
}

// noteFilled stores that a job has filled the index, before the job ends, so that no process says otherwise afterwards. If that
// fails, the process that observes the end of the job does it.
func (e *jobEnd) noteFilled(ctx context.Context, job core.Job) {
	value, revision, err := e.cfg.Cells.Cell(ctx, e.cfg.FillCell)
	if err == nil && value != FillDone {
		err = e.cfg.Cells.SetCell(ctx, e.cfg.FillCell, FillDone, revision)
	}
	if err != nil && core.CodeOf(err) != core.CodeConflict { // another process has set it
		e.cfg.Logger.WarnContext(ctx, "storing that the index was filled", "job_id", job.ID, "err", err)
	}
}
