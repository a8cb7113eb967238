package state

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"tutti/internal/core"
)

// AllReadWhole reports whether all organizations were read completely.
func AllReadWhole(runs []core.OrganizationRun) bool {
	return !slices.ContainsFunc(runs, func(run core.OrganizationRun) bool { return !run.ReadWhole() })
}

// NoteRejected makes an organization partial that was read completely when some of its records were rejected.
func NoteRejected(repository string, run *core.OrganizationRun) {
	if run.ReadWhole() && run.Totals.Rejected > 0 {
		run.State, run.Error = core.JobPartial, RejectedError(repository, run.Totals.Rejected)
	}
}

// RejectedError returns the error of a complete run n records of which became dead letters.
func RejectedError(repository string, n int64) *core.JobError {
	records := "records were"
	if n == 1 {
		records = "record was"
	}
	return &core.JobError{Code: core.JobErrorRecordsRejected, Message: fmt.Sprintf(
		"%d %s rejected; the repository's dead letters say why (tutti dead-letters list --repository %s)", n, records, repository)}
}

// Outcome returns a job's state, which is the common state of its organizations or partial, and the error of the first
// organization that was not read completely, nil when there is none.
func Outcome(runs []core.OrganizationRun) (core.JobState, *core.JobError) {
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

// Sum returns the totals of organizations together.
func Sum(runs []core.OrganizationRun) core.Totals {
	var t core.Totals
	for _, run := range runs {
		t.Add(run.FinalTotals())
	}
	return t
}

// AllRead reports whether the lists of all organizations were read to their ends. What a list that moved did not show is in the index
// before, or was written to both indices since.
func AllRead(runs []core.OrganizationRun) bool {
	return !slices.ContainsFunc(runs, func(run core.OrganizationRun) bool {
		return run.State != core.JobSucceeded && run.State != core.JobPartial
	})
}

// Cancel makes an organization cancelled that has not ended.
func Cancel(run *core.OrganizationRun) error {
	if !run.State.Final() {
		run.State = core.JobCancelled
		run.EndPause()
	}
	return nil
}

// ForgetPages removes the stored ids of a list's pages, or of all lists of the job when organization is empty. What cannot be removed now is
// removed with the job.
func ForgetPages(ctx context.Context, pages Pages, log *slog.Logger, jobID, organization string) {
	if err := pages.ForgetPages(ctx, jobID, organization); err != nil {
		log.DebugContext(ctx, "removing the stored ids of a list", "job_id", jobID, "organization", organization, "err", err)
	}
}

// MarkRunning sets a queued organization to running by update, which changes what is stored of it. If that fails, the report of the page that is
// read retries it.
func MarkRunning(ctx context.Context, log *slog.Logger, jobID, organization string,
	update func(ctx context.Context, change func(*core.OrganizationRun) error) (core.OrganizationRun, error),
) {
	if _, err := update(ctx, func(run *core.OrganizationRun) error {
		if run.State == core.JobQueued {
			run.State = core.JobRunning
		}
		return nil
	}); err != nil {
		log.Info("setting an organization to running; the report of the page retries", "job_id", jobID, "organization", organization, "err", err)
	}
}

// Compares reports whether the pages of job write only what differs from the index. Documents into which records are split have no list that
// they can be compared with.
func Compares(job core.Job, splits bool) bool { return job.Difference && !splits }
