package consumers

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"tutti/internal/core"
)

// pagesPerCall is how many pages are in flight for each call to the upstream that may be: those that are not being read wait
// for the outcomes of their documents.
const pagesPerCall = 4

// errSuperseded ends the processing of a page that was redelivered to another consumer. Its message must not be
// acknowledged: only it continues the list should the other consumer fail.
var errSuperseded = errors.New("another consumer processes the page")

func (r *repository) pullPages() {
	r.pull(core.ClassPages, r.Pages, pagesPerCall*r.Concurrency, r.newQuarantine(core.ClassPages, 2*suspectDelay).quarantineSuspects(r.handlePage))
}

// handlePage reads one page, publishes the next, writes the documents and ends m after their outcomes. free frees the slot
// for another page while this one only waits for its report to be stored.
func (r *repository) handlePage(ctx context.Context, m core.Message, free func()) {
	defer r.c.heartbeat.release(m)
	req := m.Request()
	key := req.JobID + "/" + req.Organization + "/" + strconv.Itoa(req.Page.Number)
	r.mu.Lock()
	_, busy := r.pagesInFlight[key]
	r.pagesInFlight[key] = struct{}{}
	r.mu.Unlock()
	if busy {
		r.requeue(ctx, m, busyDelay)
		return
	}
	defer func() {
		r.mu.Lock()
		delete(r.pagesInFlight, key)
		r.mu.Unlock()
	}()
	err := r.settlePage(ctx, m, free)
	switch {
	case err == nil:
		r.ack(ctx, m)
	case ctx.Err() != nil || r.c.draining.Err() != nil:
		r.requeue(context.WithoutCancel(ctx), m, 0)
	case errors.Is(err, errSuperseded):
		r.requeue(ctx, m, busyDelay)
	case errors.Is(err, errSweepEnded): // the next delivery ends what a cancel has left open
		r.requeue(ctx, m, 0)
	default:
		r.log.Warn("page will be retried", "job_id", req.JobID, "organization", req.Organization,
			"page", req.Page.Number, "err", err)
		r.requeue(ctx, m, r.retryDelay(m, err))
	}
}

// settlePage completes m's page. m may end when it returns nil.
func (r *repository) settlePage(ctx context.Context, m core.Message, free func()) error {
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
	if job.State.Final() && !run.State.Final() { // cancelled or failed before the organization was
		_, err := r.c.deps.Organizations.UpdateOrganization(ctx, job.ID, req.Organization, cancelRun)
		return err
	}
	if run.State.Final() {
		free()
		return r.endJobIfComplete(ctx, job.ID)
	}
	page, run, todo, err := r.admit(ctx, m, run)
	if err != nil {
		return err
	}
	switch {
	case todo:
		w := newPageWork(r, m, job, page, run.Rereads)
		w.organizationQueued = run.State == core.JobQueued
		return r.processPage(ctx, w, free)
	case run.AllPagesDone():
		free()
		return r.finishOrganization(ctx, job, run)
	case run.ListEpoch > page.Epoch && run.DoneThrough < 0:
		return r.restartList(ctx, job, run) // the process that restarted the list may have crashed before it published the first page
	default: // the page has ended, or the chain was restarted before it
		return nil
	}
}

// admit reports whether m's page has to be read, and returns the run after a change. When a page was in flight when a
// process crashed, its chain is reread from this page on: rows may have moved between it and its successor since. The epoch
// voids the pages of the old chain; the page from which the chain restarts carries the older epoch itself.
func (r *repository) admit(ctx context.Context, m core.Message, run core.OrganizationRun) (core.Page, core.OrganizationRun, bool, error) {
	page := *m.Request().Page
	isDue := func(run *core.OrganizationRun) bool {
		return !run.IsVoid(page.Number, page.Epoch) && !run.PageDone(page.Number)
	}
	if !isDue(&run) {
		return page, run, false, nil
	}
	if page.Epoch == run.Epoch && attempts(m) == 0 {
		return page, run, true, nil
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
	return page, run, todo, err
}

// processPage reads and writes the page, reports it, and ends the organization with its last page.
func (r *repository) processPage(ctx context.Context, w *pageWork, free func()) error {
	job := w.job
	err := w.run(ctx)
	var failure *pageError
	if err != nil && !errors.As(err, &failure) {
		return err
	}
	free()
	if len(w.late) > 0 {
		if err := w.noteLate(ctx); err != nil {
			return err
		}
	}
	counted, complete := false, false
	run, err := r.progress.write(ctx, job.ID, w.req.Organization, failure != nil || w.last, func(run *core.OrganizationRun) {
		counted = w.report(run, failure)
		complete = counted && failure == nil && run.AllPagesDone()
	})
	if err != nil {
		return err
	}
	if !counted && run.State.Final() { // cancelled since, or ended by another consumer of the page
		r.c.forgetPages(ctx, r.Code, job.ID, w.req.Organization)
		return r.endJobIfComplete(ctx, job.ID)
	}
	if !counted {
		return errSuperseded
	}
	r.c.cfg.Metrics.observeToIndex(r.Code, core.ScopePage, w.msg.Version())
	if failure == nil && (w.totals.Rejected == 0 || w.totals.Written()) {
		r.c.cfg.Metrics.succeeded(r.Code)
	}
	if failure != nil {
		r.log.Warn("organization could not be read", "job_id", job.ID, "organization", w.req.Organization,
			"page", w.page.Number, "err", failure.cause)
		r.c.forgetPages(ctx, r.Code, job.ID, w.req.Organization)
		return r.endJobIfComplete(ctx, job.ID)
	}
	if complete {
		return r.finishOrganization(ctx, job, run)
	}
	return nil
}

// report adds the page to its organization's run. It returns false when it must not: the organization has ended, or another
// consumer, to which the page was redelivered, has reported it.
func (w *pageWork) report(run *core.OrganizationRun, failure *pageError) bool {
	if run.State.Final() || run.PageDone(w.page.Number) || w.page.Epoch < run.ListEpoch ||
		(w.page.Epoch < run.Epoch && w.page.Number >= run.Restart) {
		return false
	}
	if run.State == core.JobQueued {
		run.State = core.JobRunning
	}
	if w.counted && (w.total > 0 || w.last) {
		run.Expect(int64(w.total))
	}
	if w.counted && w.r.NonOverlapping {
		run.NoteTotal(w.total)
	}
	if failure != nil {
		run.Count(w.totals)
		run.State = core.JobFailed
		run.Error = &core.JobError{Code: string(core.CodeOf(failure.cause)), Message: fmt.Sprintf(
			"page %d (rows from %d) could not be read: %s", w.page.Number, w.page.Offset, core.MessageOf(failure.cause))}
		return true
	}
	if w.repeats || w.shifted && w.r.NonOverlapping {
		run.Shifted = true
	} else if w.shifted && run.Unswept == nil {
		run.Unswept = &core.JobError{Code: core.JobErrorListShifted, Message: "the list kept shifting while it was read"}
	}
	if w.last {
		number := w.page.Number
		run.LastPage = &number
	}
	if len(w.late) > 0 {
		run.NoteLate(w.page.Number, w.page.Epoch)
	}
	run.EndPage(w.page.Number, w.totals)
	return true
}

// finishOrganization ends an organization whose pages have all ended, and then the job if it was the last one. The run of an
// organization's own job is swept before; a repository's job sweeps all organizations together at its end.
func (r *repository) finishOrganization(ctx context.Context, job core.Job, run core.OrganizationRun) error {
	run, again, err := r.rereadIfShifted(ctx, job, run)
	if err != nil || again {
		return err
	}
	if len(run.Late) > 0 {
		if run, err = r.settleLate(ctx, job, run); err != nil {
			return err
		}
	}
	swept := sweepResult{guard: run.Unswept}
	sweep := job.Scope == core.ScopeOrganization && run.Unswept == nil
	if sweep {
		if swept, err = r.sweepOrganization(ctx, job, run.Organization); err != nil {
			return err
		}
	}
	_, err = r.c.deps.Organizations.UpdateOrganization(ctx, job.ID, run.Organization, func(run *core.OrganizationRun) error {
		if run.State.Final() {
			return nil
		}
		run.State = core.JobSucceeded
		if sweep || swept.guard != nil {
			swept.note(run)
		}
		r.noteRejected(run)
		return nil
	})
	if err != nil {
		return err
	}
	r.c.forgetPages(ctx, r.Code, job.ID, run.Organization)
	return r.endJobIfComplete(ctx, job.ID)
}
