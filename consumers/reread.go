package consumers

import (
	"context"

	"tutti/internal/core"
)

// maxRereads is how often a list is reread that repeats rows, or that moved while its pages could not overlap (DESIGN,
// Runs).
const maxRereads = 1

// notePage stores the ids of a page, for the following pages and for rereadIfShifted.
func (w *pageWork) notePage(ctx context.Context, pass *pagePass) error {
	if len(pass.hashes) == 0 {
		return nil
	}
	return w.r.retryUntilStopped(ctx, "storing the ids of a page", func() error {
		return w.r.c.deps.Pages.NotePage(ctx, w.job.ID, w.req.Organization, w.reread, w.page.Number, pass.hashes)
	})
}

// checkJoined reads the row before the page by itself: it is the last one of the page before, unless rows moved in between.
func (w *pageWork) checkJoined(ctx context.Context, pass *pagePass) error {
	if len(w.page.Before) == 0 {
		return nil
	}
	_, err := w.r.Upstream.Page(ctx, w.req.Organization, w.page.Offset-1, 1, func(rec core.Record) error {
		pass.joined = w.page.Before[len(w.page.Before)-1] == hashOf(rec)
		return nil
	})
	return err
}

// rereadIfShifted restarts the list and returns true if it has to be reread: a page repeated rows, or the list has pages
// that cannot overlap and it changed: a page did not match the one before or returned another total, or the number of
// distinct ids differs from the total. If the list was already reread, the run ends partial instead.
func (r *repository) rereadIfShifted(ctx context.Context, job core.Job, run core.OrganizationRun) (core.OrganizationRun, bool, error) {
	if run.State.Final() || run.Unswept != nil || run.LastPage == nil {
		return run, false, nil
	}
	if run.Shifted {
		return r.rereadList(ctx, job, run)
	}
	if !r.NonOverlapping || run.ListTotal == nil {
		return run, false, nil
	}
	ids, err := r.c.deps.Pages.NotedIDs(ctx, job.ID, run.Organization, run.Rereads, *run.LastPage)
	if err != nil || ids == *run.ListTotal {
		return run, false, err
	}
	r.log.Info("the number of distinct ids differs from the list's total", "job_id", job.ID, "organization", run.Organization,
		"total", *run.ListTotal, "distinct", ids)
	return r.rereadList(ctx, job, run)
}

func (r *repository) rereadList(ctx context.Context, job core.Job, run core.OrganizationRun) (core.OrganizationRun, bool, error) {
	r.log.Info("the list moved or repeated rows while it was read", "job_id", job.ID, "organization", run.Organization,
		"rereads", run.Rereads)
	readings := run.Rereads
	now, err := r.c.deps.Organizations.UpdateOrganization(ctx, job.ID, run.Organization, func(run *core.OrganizationRun) error {
		switch {
		case run.State.Final() || run.Rereads != readings || !run.AllPagesDone():
			return errSuperseded
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
		return now, true, r.restartList(ctx, job, now)
	}
	return now, false, nil
}

// restartList publishes the first page of a list that is reread. Doing so twice has no effect.
func (r *repository) restartList(ctx context.Context, job core.Job, run core.OrganizationRun) error {
	first := r.childRequest(job, core.ScopePage, run.Organization)
	first.Page = &core.Page{Epoch: run.Epoch, Limit: r.PageSize}
	return r.retryUntilStopped(ctx, "publishing the first page again", func() error { return r.c.deps.Requests.Publish(ctx, first) })
}

// forgetPages removes the stored ids of a list's pages, or of all lists of the job when organization is empty, once it has
// ended. What cannot be removed now is removed with the job.
func (c *Consumers) forgetPages(ctx context.Context, repository, jobID, organization string) {
	r := c.repos[repository]
	if r == nil {
		return
	}
	if err := c.deps.Pages.ForgetPages(ctx, jobID, organization); err != nil {
		r.log.Debug("removing the stored ids of a list", "job_id", jobID, "organization", organization, "err", err)
	}
}
