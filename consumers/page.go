package consumers

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"tutti/internal/core"
)

func (r *repository) pullPages() {
	// Pages beyond those that are read wait for the outcomes of their documents.
	r.pull(core.ClassPages, r.Pages, 4*r.Concurrency, r.handlePage)
}

// handlePage reads one page, publishes the next, writes the documents and ends m after their outcomes.
func (r *repository) handlePage(ctx context.Context, m core.Message) {
	defer r.c.keeper.release(m)
	req := m.Request()
	key := req.JobID + "/" + req.Organization + "/" + strconv.Itoa(req.Page.Number)
	r.mu.Lock()
	_, busy := r.pagesInHand[key]
	r.pagesInHand[key] = struct{}{}
	r.mu.Unlock()
	if busy {
		r.giveBack(ctx, m, runningAgainAfter)
		return
	}
	defer func() {
		r.mu.Lock()
		delete(r.pagesInHand, key)
		r.mu.Unlock()
	}()
	err := r.settlePage(ctx, m)
	switch {
	case err == nil:
		r.ack(ctx, m)
	case ctx.Err() != nil || r.c.draining.Err() != nil:
		r.giveBack(context.WithoutCancel(ctx), m, 0)
	default:
		r.log.Warn("page will be tried again", "job_id", req.JobID, "organization", req.Organization,
			"page", req.Page.Number, "err", err)
		r.giveBack(ctx, m, r.retryDelay(m, err))
	}
}

// settlePage does what is left to do of m's page. nil means that m may end.
func (r *repository) settlePage(ctx context.Context, m core.Message) error {
	req := m.Request()
	job, err := r.jobOf(ctx, m)
	if err != nil {
		return err
	}
	run, err := r.c.deps.Organizations.Organization(ctx, job.ID, req.Organization)
	if core.CodeOf(err) == core.CodeNotFound {
		run = core.OrganizationRun{Organization: req.Organization, State: core.JobRunning, DoneThrough: req.Page.Number - 1}
		_, err = r.c.deps.Organizations.CreateOrganization(ctx, job.ID, run)
	}
	if err != nil {
		return err
	}
	if job.State.Final() || run.State.Final() {
		return r.finishJob(ctx, job.ID)
	}
	page, todo, err := r.admit(ctx, m, run)
	if err != nil {
		return err
	}
	switch {
	case todo:
		return r.workOnPage(ctx, m, job, page)
	case run.AllPagesDone():
		return r.finishOrganization(ctx, job, run)
	case run.PageDone(page.Number):
		return nil
	default:
		return r.outlived(ctx, m, job, run)
	}
}

// admit tells whether m's page has to be read. A page that was in hand when a process died is the place from which
// its chain is read again: rows may have moved between it and its successor meanwhile. The epoch voids the pages
// that the old chain left behind; a page from a later epoch than the run's orders a restart.
func (r *repository) admit(ctx context.Context, m core.Message, run core.OrganizationRun) (core.Page, bool, error) {
	page := *m.Request().Page
	isDue := func(run *core.OrganizationRun) bool {
		void := page.Epoch < run.Epoch && page.Number > run.Restart
		return page.Epoch > run.Epoch || !void && !run.PageDone(page.Number)
	}
	if !isDue(&run) {
		return page, false, nil
	}
	if page.Epoch == run.Epoch && attempts(m) == 0 {
		return page, true, nil
	}
	todo := false
	run, err := r.c.deps.Organizations.UpdateOrganization(ctx, m.Request().JobID, m.Request().Organization,
		func(run *core.OrganizationRun) error {
			if todo = isDue(run); todo {
				run.RestartFrom(page.Number)
			}
			return nil
		})
	page.Epoch = run.Epoch
	return page, todo, err
}

// outlivedAttempts is how often a page of an outlived chain is looked at before its list is read again.
const outlivedAttempts = 8

// outlived ends a page whose chain was restarted before it. A process that was cut off from the queue may have
// published it late, in the place of the new chain's page of the same number, which would end there: so it waits
// until that page is done or replaces it, and in the end has the list read from its start.
func (r *repository) outlived(ctx context.Context, m core.Message, job core.Job, run core.OrganizationRun) error {
	n := m.Request().Page.Number
	if run.LastPage != nil && n > *run.LastPage {
		return nil
	}
	if !run.PageDone(n-1) || attempts(m) < outlivedAttempts {
		return &core.Error{
			Code: core.CodeUnavailable, Message: "the page waits for its chain, which was begun again", RetryAfter: runningAgainAfter,
		}
	}
	r.log.Warn("reading a list again whose chain of pages broke", "job_id", job.ID, "organization", run.Organization, "page", n)
	first := r.childRequest(job, core.ScopePage, run.Organization)
	first.Page = &core.Page{Limit: m.Request().Page.Limit, Epoch: run.Epoch + 1}
	return r.insist(ctx, "publishing the first page", func() error { return r.c.deps.Requests.Publish(ctx, first) })
}

// workOnPage reads and writes the page, reports it, and ends the organization with its last page.
func (r *repository) workOnPage(ctx context.Context, m core.Message, job core.Job, page core.Page) error {
	w := newPageWork(r, m, job, page)
	err := w.do(ctx)
	var failure *pageError
	if err != nil && !errors.As(err, &failure) {
		return err
	}
	complete := false
	run, err := r.progress.write(ctx, job.ID, w.req.Organization, failure != nil || w.last, func(run *core.OrganizationRun) {
		complete = w.report(run, failure)
	})
	if err != nil {
		return err
	}
	r.c.cfg.Metrics.setProgress(r.Code, run.Totals)
	r.c.cfg.Metrics.observeToIndex(r.Code, core.ScopePage, m.Version())
	if failure != nil {
		r.log.Warn("organization could not be read", "job_id", job.ID, "organization", w.req.Organization,
			"page", page.Number, "err", failure.cause)
		return r.finishJob(ctx, job.ID)
	}
	if complete {
		return r.finishOrganization(ctx, job, run)
	}
	return nil
}

// report adds the page to its organization's run and tells whether that completes the chain.
func (w *pageWork) report(run *core.OrganizationRun, failure *pageError) bool {
	if run.State.Final() || run.PageDone(w.page.Number) ||
		(w.page.Epoch < run.Epoch && w.page.Number >= run.Restart) {
		return false
	}
	expected := run.Totals.Expected
	run.Totals.Add(w.totals)
	run.Totals.Expected = expected
	if w.total > 0 || w.last {
		run.Totals.Expected = int64(w.total)
	}
	if failure != nil {
		run.State = core.JobFailed
		run.Error = &core.JobError{Code: string(core.CodeOf(failure.cause)), Message: fmt.Sprintf(
			"page %d (rows from %d) could not be read: %s", w.page.Number, w.page.Offset, core.MessageOf(failure.cause))}
		return false
	}
	if w.shifted && run.Unswept == nil {
		run.Unswept = &core.JobError{Code: core.JobErrorListShifted, Message: "the list kept shifting while it was read"}
	}
	if w.last {
		number := w.page.Number
		run.LastPage = &number
	}
	run.EndPage(w.page.Number)
	return run.AllPagesDone()
}

// finishOrganization sweeps an organization whose pages have all ended, and then the job if it was the last one.
func (r *repository) finishOrganization(ctx context.Context, job core.Job, run core.OrganizationRun) error {
	var removed int64
	fault := run.Unswept
	if fault == nil {
		var err error
		removed, fault, err = r.sweepOrganization(ctx, job, run.Organization)
		if err != nil {
			return err
		}
	}
	_, err := r.c.deps.Organizations.UpdateOrganization(ctx, job.ID, run.Organization, func(run *core.OrganizationRun) error {
		if run.State.Final() {
			return nil
		}
		run.State, run.Error = core.JobSucceeded, fault
		if fault != nil {
			run.State = core.JobPartial
		}
		run.Totals.Removed += removed
		return nil
	})
	if err != nil {
		return err
	}
	return r.finishJob(ctx, job.ID)
}
