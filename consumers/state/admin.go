package state

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"tutti/internal/core"
)

// cancelTimeout bounds cancelling a job.
const cancelTimeout = 10 * time.Second

// Admin changes jobs from outside of their runs.
type Admin struct {
	Jobs   core.Jobs
	Groups OrganizationGroups
	Pages  Pages
	// Loggers holds the logger of each configured repository.
	Loggers map[string]*slog.Logger
}

// Cancel ends a job that is not final: its work in flight completes, no more of it is started, and the Requests of its sweep
// are dropped. It returns CodeConflict for a final job.
func (a *Admin) Cancel(ctx context.Context, id string) (core.Job, error) {
	// A client that disconnects must not leave the job half cancelled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	job, err := a.Jobs.Update(ctx, id, func(j *core.Job) error {
		if j.State.Final() {
			return core.NewError(core.CodeConflict, fmt.Sprintf("the job has already ended: it is %s", j.State))
		}
		j.End(core.JobCancelled, &core.JobError{Code: core.JobErrorCancelled, Message: "cancelled on request"})
		return nil
	})
	if err != nil {
		return job, err
	}
	runs, err := a.Groups.UpdateOrganizations(ctx, id, Cancel)
	if err != nil {
		return job, err
	}
	a.forgetPages(ctx, job)
	return a.Jobs.Update(ctx, id, func(j *core.Job) error {
		if j.Scope != core.ScopeRetry { // a retry of dead letters has no organizations: its totals stay
			j.Totals = Sum(runs)
		}
		return nil
	})
}

// EndOrphan ends a job that has no Request left in the queue, because one of them became a dead letter: its unfinished
// organizations have failed. It does nothing to a job that has ended.
func (a *Admin) EndOrphan(ctx context.Context, id string) error {
	job, err := a.Jobs.Get(ctx, id)
	if err != nil {
		return err
	}
	lost := &core.JobError{
		Code: core.JobErrorInterrupted, Message: "a request of the run became a dead letter; see the dead letters and run it again",
	}
	if _, known := a.Loggers[job.Repository]; !known && job.Scope != core.ScopeRetry {
		lost = &core.JobError{Code: core.JobErrorUnknownRepository, Message: "the repository is no longer configured"}
	}
	runs, err := a.Groups.UpdateOrganizations(ctx, id, func(run *core.OrganizationRun) error {
		if !run.State.Final() {
			run.EndPause()
			run.State, run.Error = core.JobFailed, lost
		}
		return nil
	})
	if err != nil {
		return err
	}
	state, fault := Outcome(runs)
	job, err = a.Jobs.Update(ctx, id, func(j *core.Job) error {
		if j.State.Final() {
			return nil
		}
		if fault == nil || j.ExpectedOrganizations == nil || len(runs) < *j.ExpectedOrganizations {
			fault = lost
			if state == core.JobSucceeded && len(runs) > 0 {
				state = core.JobPartial
			} else if len(runs) == 0 {
				state = core.JobFailed
			}
		}
		j.End(state, fault)
		if j.Scope != core.ScopeRetry {
			j.Totals = Sum(runs)
		}
		return nil
	})
	if err == nil {
		a.forgetPages(ctx, job)
	}
	return err
}

// forgetPages removes the stored ids of all lists of a job of a configured repository.
func (a *Admin) forgetPages(ctx context.Context, job core.Job) {
	if log := a.Loggers[job.Repository]; log != nil {
		ForgetPages(ctx, a.Pages, log, job.ID, "")
	}
}
