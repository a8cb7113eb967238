package consumers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tutti/internal/core"
)

// cancelTimeout bounds cancelling a job.
const cancelTimeout = 10 * time.Second

// Cancel ends a job that is not final: its work in flight completes, no more of it is started, and the Requests of its sweep
// are dropped. It returns CodeConflict for a final job.
func (c *Consumers) Cancel(ctx context.Context, id string) (core.Job, error) {
	// A client that disconnects must not leave the job half cancelled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	job, err := c.deps.Jobs.Update(ctx, id, func(j *core.Job) error {
		if j.State.Final() {
			return core.NewError(core.CodeConflict, fmt.Sprintf("the job has already ended: it is %s", j.State))
		}
		now := time.Now().UTC()
		j.State, j.EndedAt = core.JobCancelled, &now
		j.Error = &core.JobError{Code: core.JobErrorCancelled, Message: "cancelled on request"}
		return nil
	})
	if err != nil {
		return job, err
	}
	runs, err := c.deps.Organizations.Organizations(ctx, id)
	if err != nil {
		return job, err
	}
	for _, run := range runs {
		if _, err := c.deps.Organizations.UpdateOrganization(ctx, id, run.Organization, cancelRun); err != nil {
			return job, err
		}
	}
	c.forgetPages(ctx, job.Repository, id, "")
	return c.storeTotals(ctx, id)
}

func cancelRun(run *core.OrganizationRun) error {
	if !run.State.Final() {
		run.State = core.JobCancelled
	}
	return nil
}

// storeTotals stores the sum of a job's organizations in the job.
func (c *Consumers) storeTotals(ctx context.Context, id string) (core.Job, error) {
	runs, err := c.deps.Organizations.Organizations(ctx, id)
	if err != nil {
		return core.Job{}, err
	}
	return c.deps.Jobs.Update(ctx, id, func(j *core.Job) error {
		j.Totals = sum(runs)
		return nil
	})
}

func sum(runs []core.OrganizationRun) core.Totals {
	var t core.Totals
	for _, run := range runs {
		t.Add(run.FinalTotals())
	}
	return t
}

// EndOrphan ends a job that has no Request left in the queue, because one of them became a dead letter: its unfinished
// organizations have failed. It does nothing to a job that has ended.
func (c *Consumers) EndOrphan(ctx context.Context, id string) error {
	job, err := c.deps.Jobs.Get(ctx, id)
	if err != nil {
		return err
	}
	runs, err := c.deps.Organizations.Organizations(ctx, id)
	if err != nil {
		return err
	}
	lost := &core.JobError{
		Code: core.JobErrorInterrupted, Message: "a request of the run became a dead letter; see the dead letters and run it again",
	}
	if _, known := c.repos[job.Repository]; !known {
		lost = &core.JobError{Code: core.JobErrorUnknownRepository, Message: "the repository is no longer configured"}
	}
	for i, run := range runs {
		if runs[i], err = c.deps.Organizations.UpdateOrganization(ctx, id, run.Organization, func(run *core.OrganizationRun) error {
			if !run.State.Final() {
				run.State, run.Error = core.JobFailed, lost
			}
			return nil
		}); err != nil {
			return err
		}
	}
	state, fault := jobOutcome(runs)
	job, err = c.deps.Jobs.Update(ctx, id, func(j *core.Job) error {
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
		now := time.Now().UTC()
		j.State, j.EndedAt, j.Error, j.Totals = state, &now, fault, sum(runs)
		return nil
	})
	if err == nil {
		c.forgetPages(ctx, job.Repository, id, "")
	}
	return err
}

// failJob fails a job whose organizations could not be listed.
func (r *repository) failJob(ctx context.Context, id string, cause error) error {
	_, err := r.c.deps.Jobs.Update(ctx, id, func(j *core.Job) error {
		if j.State.Final() {
			return nil
		}
		now := time.Now().UTC()
		j.State, j.EndedAt = core.JobFailed, &now
		j.Error = &core.JobError{Code: string(core.CodeOf(cause)), Message: core.MessageOf(cause)}
		return nil
	})
	return err
}

// endJobIfComplete ends a job once all its organizations have ended.
func (r *repository) endJobIfComplete(ctx context.Context, id string) error {
	job, err := r.c.deps.Jobs.Get(ctx, id)
	if err != nil || job.State.Final() || job.ExpectedOrganizations == nil {
		return err
	}
	runs, err := r.c.deps.Organizations.Organizations(ctx, id)
	if err != nil || len(runs) < *job.ExpectedOrganizations {
		return err
	}
	for _, run := range runs {
		if !run.State.Final() {
			return nil
		}
	}
	unlock, err := r.lockJobEnd(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	if job, err = r.c.deps.Jobs.Get(ctx, id); err != nil || job.State.Final() {
		return err
	}
	return r.endJob(ctx, job, runs)
}

// lockJobEnd serializes the organizations that end their job at the same time. None may leave it to another one: that one
// may fail after its message was redelivered to another consumer.
func (r *repository) lockJobEnd(ctx context.Context, id string) (unlock func(), err error) {
	for {
		r.mu.Lock()
		busy := r.endingJobs[id]
		if busy == nil {
			mine := make(chan struct{})
			r.endingJobs[id] = mine
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(r.endingJobs, id)
				close(mine)
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-busy:
		case <-r.c.draining.Done():
			return nil, r.c.draining.Err()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// endJob sweeps a job whose organizations have ended, and ends it once searches find the documents it has written.
func (r *repository) endJob(ctx context.Context, job core.Job, runs []core.OrganizationRun) error {
	id := job.ID
	var err error
	var vanished sweepResult
	if job.Scope == core.ScopeRepository {
		if vanished, runs, err = r.sweepJob(ctx, job, runs); err != nil {
			return err
		}
	}
	state, fault := jobOutcome(runs)
	totals := sum(runs)
	totals.Removed += vanished.removed
	totals.Rejected += vanished.rejected
	if vanished.rejected > 0 && state == core.JobSucceeded {
		state = core.JobPartial
	}
	if fault == nil && totals.Rejected > 0 {
		fault = r.rejectedError(totals.Rejected)
	}
	if vanished.guard != nil {
		state, fault = core.JobPartial, vanished.guard
	}
	hidden, err := r.refresh(ctx, job)
	if err != nil {
		return err
	}
	if hidden != nil && state == core.JobSucceeded {
		state, fault = core.JobPartial, hidden
	}
	mine := false
	ended, err := r.c.deps.Jobs.Update(ctx, id, func(j *core.Job) error {
		if mine = !j.State.Final(); !mine {
			return nil
		}
		now := time.Now().UTC()
		j.State, j.EndedAt, j.Error, j.Totals = state, &now, fault, totals
		return nil
	})
	if err == nil && mine {
		r.log.Info("job ended", "job_id", id, "state", string(ended.State), "indexed", ended.Totals.Indexed,
			"removed", ended.Totals.Removed, "rejected", ended.Totals.Rejected)
	}
	return err
}

// sweepJob sweeps a repository's job at its end: in one scan when all its organizations were read completely, otherwise each
// complete one separately. It returns the runs as they are afterwards.
func (r *repository) sweepJob(ctx context.Context, job core.Job, runs []core.OrganizationRun) (sweepResult, []core.OrganizationRun, error) {
	var vanished sweepResult
	var err error
	if allReadWhole(runs) {
		vanished, err = r.sweepRepository(ctx, job, runs)
	} else {
		err = r.sweepCompleteOrganizations(ctx, job, runs)
	}
	if err != nil {
		return vanished, runs, err
	}
	runs, err = r.c.deps.Organizations.Organizations(ctx, job.ID)
	return vanished, runs, err
}

// allReadWhole reports whether all organizations were read completely.
func allReadWhole(runs []core.OrganizationRun) bool {
	return !slices.ContainsFunc(runs, func(run core.OrganizationRun) bool { return !run.ReadWhole() })
}

// noteRejected makes an organization partial that was read completely when some of its records were rejected.
func (r *repository) noteRejected(run *core.OrganizationRun) {
	if run.ReadWhole() && run.Totals.Rejected > 0 {
		run.State, run.Error = core.JobPartial, r.rejectedError(run.Totals.Rejected)
	}
}

// rejectedError returns the error of a complete run n records of which became dead letters.
func (r *repository) rejectedError(n int64) *core.JobError {
	records := "records were"
	if n == 1 {
		records = "record was"
	}
	return &core.JobError{Code: core.JobErrorRecordsRejected, Message: fmt.Sprintf(
		"%d %s rejected; the repository's dead letters say why (tutti dead-letters list --repository %s)", n, records, r.Code)}
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
