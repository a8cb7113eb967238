package run

import (
	"context"
	"fmt"
	"maps"

	"tutti/consumers/loop"
	"tutti/consumers/page"
	"tutti/consumers/state"
	"tutti/consumers/sweep"
	"tutti/internal/core"
)

// maxRereads is how often a list is reread that repeats rows, or that moved while its pages could not overlap (DESIGN,
// Runs).
const maxRereads = 1

// organizationEnd ends the runs of organizations whose pages have all ended.
type organizationEnd struct {
	cfg     *Config
	pages   *page.Worker
	sweeper *sweep.Sweeper
	ender   *jobEnd
}

// finish ends an organization whose pages have all ended, and then the job if it was the last one. The run of an
// organization's own job is swept before; a repository's job sweeps all organizations together at its end.
func (o *organizationEnd) finish(ctx context.Context, job core.Job, run core.OrganizationRun) error {
	run, again, err := o.rereadIfShifted(ctx, job, run)
	if err != nil || again {
		return err
	}
	if len(run.Late) > 0 {
		if run, err = o.settleLate(ctx, job, run); err != nil {
			return err
		}
	}
	swept := sweep.Result{Guard: run.Unswept}
	sweeps := job.Scope == core.ScopeOrganization && run.Unswept == nil
	if sweeps {
		if swept, err = o.sweeper.Organization(ctx, job, run); err != nil {
			return err
		}
	}
	_, err = o.cfg.Organizations.UpdateOrganization(ctx, job.ID, run.Organization, func(run *core.OrganizationRun) error {
		if run.State.Final() {
			return nil
		}
		run.State = core.JobSucceeded
		if sweeps || swept.Guard != nil {
			swept.Note(run)
		}
		state.NoteRejected(o.cfg.Repository.Code, run)
		return nil
	})
	if err != nil {
		return err
	}
	o.pages.Forget(ctx, job, run)
	return o.ender.endIfComplete(ctx, job.ID)
}

// rereadIfShifted restarts the list and returns true if it has to be reread: a page repeated rows, or the list has pages
// that cannot overlap and it changed: a page did not match the one before or returned another total, or the number of
// distinct ids differs from the total. If the list was already reread, the run ends partial instead.
func (o *organizationEnd) rereadIfShifted(ctx context.Context, job core.Job, run core.OrganizationRun) (core.OrganizationRun, bool, error) {
	if run.State.Final() || run.Unswept != nil || run.LastPage == nil {
		return run, false, nil
	}
	if run.Shifted {
		return o.rereadList(ctx, job, run)
	}
	if !o.cfg.NonOverlapping || run.ListTotal == nil {
		return run, false, nil
	}
	ids, err := o.cfg.Pages.NotedIDs(ctx, job.ID, run.Organization, run.Rereads, *run.LastPage)
	if err != nil || len(ids) == *run.ListTotal {
		return run, false, err
	}
	o.cfg.Logger.Info("the number of distinct ids differs from the list's total", "job_id", job.ID, "organization", run.Organization,
		"total", *run.ListTotal, "distinct", len(ids))
	return o.rereadList(ctx, job, run)
}

func (o *organizationEnd) rereadList(ctx context.Context, job core.Job, run core.OrganizationRun) (core.OrganizationRun, bool, error) {
	o.cfg.Logger.Info("the list moved or repeated rows while it was read", "job_id", job.ID, "organization", run.Organization,
		"rereads", run.Rereads)
	readings := run.Rereads
	now, err := o.cfg.Organizations.UpdateOrganization(ctx, job.ID, run.Organization, func(run *core.OrganizationRun) error {
		switch {
		case run.State.Final() || run.Rereads != readings || !run.AllPagesDone():
			return loop.ErrBusy
		case run.Rereads < maxRereads:
			run.Reread()
		case run.Unswept == nil:
			run.Unswept = &core.JobError{
				Code:    core.JobErrorListShifted,
				Message: "the list moved or repeated rows while it was read, and again when it was reread",
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return run, false, err
	case now.Rereads > readings:
		return now, true, o.pages.PublishFirst(ctx, job, run.Organization, now.Epoch)
	}
	return now, false, nil
}

// settleLate waits for the records that the pages of an organization requested one by one, and adds their outcomes to its
// totals, once. If some are still pending when the wait times out, the organization is not swept and ends partial.
func (o *organizationEnd) settleLate(ctx context.Context, job core.Job, run core.OrganizationRun) (core.OrganizationRun, error) {
	late := run.Late
	ids, err := o.cfg.Pages.RequestedIDs(ctx, job.ID, run.Organization, late)
	if err != nil {
		return run, err
	}
	settled, open, err := o.sweeper.Late(ctx, job, run.Organization, ids)
	if err != nil {
		return run, err
	}
	return o.cfg.Organizations.UpdateOrganization(ctx, job.ID, run.Organization, func(run *core.OrganizationRun) error {
		if run.State.Final() || !maps.Equal(run.Late, late) {
			return nil
		}
		run.Late = nil
		run.Count(settled)
		if open > 0 && run.Unswept == nil {
			run.Unswept = &core.JobError{Code: core.JobErrorSweepIncomplete, Message: fmt.Sprintf(
				"%d records that could not be written with their pages are still being retried; nothing was removed", open)}
		}
		return nil
	})
}
