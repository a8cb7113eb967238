package run

import (
	"context"
	"fmt"
	"slices"

	"tutti/internal/base/keylock"
	"tutti/internal/core"
)

// jobEnd ends jobs.
type jobEnd struct {
	*repository
	sweeper *sweeper
	// ending serializes the organizations that end their job at the same time. None may leave it to another one: that one may
	// fail after its message was redelivered to another consumer.
	ending keylock.Locks
}

// fail fails a job whose organizations could not be listed.
func (e *jobEnd) fail(ctx context.Context, id string, cause error) error {
	_, err := e.Jobs.Update(ctx, id, func(j *core.Job) error {
		if j.State.Final() {
			return nil
		}
		j.End(core.JobFailed, &core.JobError{Code: string(core.CodeOf(cause)), Message: core.DisplayOf(cause)})
		return nil
	})
	return err
}

// endIfComplete ends a job once all its organizations have ended.
func (e *jobEnd) endIfComplete(ctx context.Context, id string) error {
	job, err := e.Jobs.Get(ctx, id)
	if err == nil && job.State.Final() {
		e.forgetCompared(ctx, job)
	}
	if err != nil || job.State.Final() || job.ExpectedOrganizations == nil {
		return err
	}
	of, err := e.sums.of(ctx, id)
	if err != nil || of.open > 0 || of.known < *job.ExpectedOrganizations {
		return err
	}
	unlock, err := e.ending.Lock(e.loop.Draining(), id)
	if err != nil {
		return err
	}
	defer unlock()
	if job, err = e.Jobs.Get(ctx, id); err != nil || job.State.Final() {
		return err
	}
	runs, err := e.Organizations.Organizations(ctx, id)
	if err != nil || slices.ContainsFunc(runs, func(run core.OrganizationRun) bool { return !run.State.Final() }) {
		return err
	}
	if err = e.end(ctx, job, runs); err == nil && job.Scope == core.ScopeRepository &&
		slices.ContainsFunc(runs, func(run core.OrganizationRun) bool { return run.Invalid }) {
		forgetPages(ctx, e.Pages, e.log, job.ID, "")
	}
	return err
}

// end sweeps a job whose organizations have ended, and ends it once searches find the documents it has written.
func (e *jobEnd) end(ctx context.Context, job core.Job, runs []core.OrganizationRun) error {
	e.keepKinds(ctx, job, runs)
	if job.Rebuild {
		return e.endRebuild(ctx, job, runs)
	}
	var err error
	var vanished sweepResult
	if job.Scope == core.ScopeRepository {
		if vanished, runs, err = e.sweep(ctx, job, runs); err != nil {
			return err
		}
	}
	if vanished.guard == nil && allReadWhole(runs) {
		e.noteEnded(ctx, job)
	}
	state, fault := jobOutcome(runs)
	totals := sum(runs)
	totals.Removed += vanished.removed
	totals.Rejected += vanished.rejected
	totals.Drift.Surplus += vanished.surplus
	if vanished.rejected > 0 && state == core.JobSucceeded {
		state = core.JobPartial
	}
	if fault == nil && totals.Rejected > 0 {
		fault = rejectedError(e.Repository.Code, totals.Rejected)
	}
	if vanished.guard != nil {
		state, fault = core.JobPartial, vanished.guard
	}
	hidden, err := e.refresh(ctx, job)
	if err != nil {
		return err
	}
	if hidden != nil && state == core.JobSucceeded {
		state, fault = core.JobPartial, hidden
	}
	return e.conclude(ctx, job, state, fault, totals)
}

// conclude ends a job.
func (e *jobEnd) conclude(ctx context.Context, job core.Job, state core.JobState, fault *core.JobError, totals core.Totals) error {
	outcome := core.Job{State: state, Totals: totals}
	if job.Scope == core.ScopeRepository && job.IndexName == e.Repository.IndexName && outcome.HasWritten() {
		e.noteFilled(ctx, job)
	}
	mine := false
	ended, err := e.Jobs.Update(ctx, job.ID, func(j *core.Job) error {
		if mine = !j.State.Final(); !mine {
			return nil
		}
		j.End(state, fault)
		j.Totals = totals
		return nil
	})
	if err == nil {
		e.forgetCompared(ctx, job)
	}
	switch {
	case err != nil || !mine:
	case e.compares(job):
		e.noteDrift(ctx, ended)
	case job.Scope == core.ScopeRepository:
		e.noteRun(ctx, ended)
	}
	if err == nil && mine {
		code := ""
		if ended.Error != nil {
			code = ended.Error.Code
		}
		e.log.InfoContext(ctx, "job ended", "job_id", job.ID, "state", string(ended.State), "error_code", code, "indexed", ended.Totals.Indexed,
			"removed", ended.Totals.Removed, "rejected", ended.Totals.Rejected, "drift", ended.Totals.Drift.Found())
	}
	return err
}

// noteFilled stores that a job has filled the index, before the job ends, so that no process says otherwise afterwards. If that
// fails, the process that observes the end of the job does it.
func (e *jobEnd) noteFilled(ctx context.Context, job core.Job) {
	value, revision, err := e.Cells.Cell(ctx, e.FillCell)
	if err == nil && value != FillDone {
		err = e.Cells.SetCell(ctx, e.FillCell, FillDone, revision)
	}
	if err != nil && core.CodeOf(err) != core.CodeConflict { // another process has set it
		e.log.WarnContext(ctx, "storing that the index was filled", "job_id", job.ID, "err", err)
	}
}

// forgetCompared removes the stored ids of all lists of a repository's job that compares, once it has ended.
func (e *jobEnd) forgetCompared(ctx context.Context, job core.Job) {
	if e.compares(job) && job.Scope == core.ScopeRepository {
		forgetPages(ctx, e.Pages, e.log, job.ID, "")
	}
}

// sweep sweeps a repository's job at its end: in one scan when all its organizations were read completely, otherwise each
// complete one separately. Before that, it sweeps the excluded organizations and the parts of records. It returns the runs as they are afterwards.
func (e *jobEnd) sweep(ctx context.Context, job core.Job, runs []core.OrganizationRun) (sweepResult, []core.OrganizationRun, error) {
	vanished, err := e.sweeper.sweepExcluded(ctx, job)
	if err == nil {
		var parts sweepResult
		parts, err = e.sweeper.sweepParts(ctx, job)
		vanished.add(parts)
	}
	if err != nil {
		return vanished, runs, err
	}
	if allReadWhole(runs) {
		var swept sweepResult
		swept, err = e.sweeper.sweepRepository(ctx, job, runs)
		vanished.add(swept)
	} else {
		err = e.sweeper.sweepCompleteOrganizations(ctx, job, runs)
	}
	if err != nil {
		return vanished, runs, err
	}
	runs, err = e.Organizations.Organizations(ctx, job.ID)
	return vanished, runs, err
}

// allReadWhole reports whether all organizations were read completely.
func allReadWhole(runs []core.OrganizationRun) bool {
	return !slices.ContainsFunc(runs, func(run core.OrganizationRun) bool { return !run.ReadWhole() })
}

// noteRejected makes an organization partial that was read completely when some of its records were rejected.
func noteRejected(repository string, run *core.OrganizationRun) {
	if run.ReadWhole() && run.Totals.Rejected > 0 {
		run.State, run.Error = core.JobPartial, rejectedError(repository, run.Totals.Rejected)
	}
}

// rejectedError returns the error of a complete run n records of which became dead letters.
func rejectedError(repository string, n int64) *core.JobError {
	records := "records were"
	if n == 1 {
		records = "record was"
	}
	return &core.JobError{Code: core.JobErrorRecordsRejected, Message: fmt.Sprintf(
		"%d %s rejected; the repository's dead letters say why (tutti dead-letters list --repository %s)", n, records, repository)}
}

// jobOutcome returns a job's state, which is the common state of its organizations or partial, and the error of the first
// organization that was not read completely, nil when there is none.
func jobOutcome(runs []core.OrganizationRun) (core.JobState, *core.JobError) {
	if len(runs) == 0 {
		return core.JobSucceeded, nil
	}
	state := runs[0].State
	var fault *core.JobError
	bad := 0
	for _, run := range runs {
		if run.State != state {
			state = core.JobPartial
		}
		if run.ReadWhole() {
			continue
		}
		bad++
		if fault == nil && run.Error != nil {
			fault = &core.JobError{Code: run.Error.Code, Message: run.Organization + ": " + run.Error.Message}
		}
	}
	if fault != nil && bad > 1 {
		fault.Message = fmt.Sprintf("%s (and %d more organizations)", fault.Message, bad-1)
	}
	return state, fault
}

func sum(runs []core.OrganizationRun) core.Totals {
	var t core.Totals
	for _, run := range runs {
		t.Add(run.FinalTotals())
	}
	return t
}
