package consumers

import (
	"context"

	"github.com/cespare/xxhash/v2"

	"tutti/internal/core"
)

// maxRereads is how often a list whose pages cannot overlap is read again because it moved (DESIGN, Runs).
const maxRereads = 1

// notePage keeps the ids of a page whose list can only be judged as a whole.
func (w *pageWork) notePage(ctx context.Context, pass *reading) error {
	if !w.r.Disjoint || len(pass.hashes) == 0 {
		return nil
	}
	return w.r.insist(ctx, "noting the ids of a page", func() error {
		return w.r.c.deps.Pages.NotePage(ctx, w.job.ID, w.req.Organization, w.reading, w.page.Number, pass.hashes)
	})
}

// checkJoint reads the row before the page by itself: it is the last one of the page before, unless rows moved in between.
func (w *pageWork) checkJoint(ctx context.Context, pass *reading) error {
	if len(w.page.Before) == 0 {
		return nil
	}
	_, err := w.r.Upstream.Page(ctx, w.req.Organization, w.page.Offset-1, 1, func(rec core.Record) error {
		pass.joined = w.before(xxhash.Sum64String(rec.ID))
		return nil
	})
	return err
}

// checkList tells whether a list whose pages cannot overlap stood still while it was read: each page was joined to the one
// before and said the same total, and that many different ids came. If it did not, the list is begun anew, which is true, or the run says so.
func (r *repository) checkList(ctx context.Context, job core.Job, run core.OrganizationRun) (core.OrganizationRun, bool, error) {
	if !r.Disjoint || run.State.Final() || run.Unswept != nil || run.LastPage == nil || run.ListTotal == nil {
		return run, false, nil
	}
	ids, err := r.c.deps.Pages.NotedIDs(ctx, job.ID, run.Organization, run.Rereads, *run.LastPage)
	if err != nil {
		return run, false, err
	}
	if run.Shifted || ids != *run.ListTotal {
		return r.listShifted(ctx, job, run, ids)
	}
	return run, false, nil
}

func (r *repository) listShifted(
	ctx context.Context, job core.Job, run core.OrganizationRun, ids int,
) (core.OrganizationRun, bool, error) {
	r.log.Info("the list moved while it was read", "job_id", job.ID, "organization", run.Organization,
		"total", *run.ListTotal, "distinct", ids, "rereads", run.Rereads)
	readings := run.Rereads
	now, err := r.c.deps.Organizations.UpdateOrganization(ctx, job.ID, run.Organization, func(run *core.OrganizationRun) error {
		switch {
		case run.State.Final() || run.Rereads != readings || !run.AllPagesDone():
			return errSuperseded
		case run.Rereads < maxRereads:
			run.Reread()
		case run.Unswept == nil:
			run.Unswept = &core.JobError{
				Code: core.JobErrorListShifted, Message: "the list moved while it was read, and again when it was read once more",
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return run, false, err
	case now.Rereads > readings:
		return now, true, r.beginAgain(ctx, job, now)
	}
	return now, false, nil
}

// beginAgain publishes the first page of a list that is read once more. Doing so twice does no harm.
func (r *repository) beginAgain(ctx context.Context, job core.Job, run core.OrganizationRun) error {
	first := r.childRequest(job, core.ScopePage, run.Organization)
	first.Page = &core.Page{Epoch: run.Epoch, Limit: r.PageSize}
	return r.insist(ctx, "publishing the first page again", func() error { return r.c.deps.Requests.Publish(ctx, first) })
}

// forgetPages removes what is noted of a list's pages, or of all lists of the job when organization is empty, once it has
// ended; what is left behind goes with the job.
func (c *Consumers) forgetPages(ctx context.Context, repository, jobID, organization string) {
	r := c.repos[repository]
	if r == nil || !r.Disjoint {
		return
	}
	if err := c.deps.Pages.ForgetPages(ctx, jobID, organization); err != nil {
		r.log.Debug("forgetting the pages of a list", "job_id", jobID, "organization", organization, "err", err)
	}
}
