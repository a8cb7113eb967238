package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// pagesPerCall is how many pages are in flight for each call to the upstream that may be: those that are not being read wait
// for the outcomes of their documents.
const pagesPerCall = 4

// pages reads pages.
type pages struct {
	*repository
	end   *organizationEnd
	ender *jobEnd

	inFlight sync.Map // the keys of the pages in flight
}

// handle reads one page, publishes the next, writes the documents and ends m after their outcomes. free frees the slot
// for another page while this one only waits for its report to be stored.
func (p *pages) handle(ctx context.Context, m core.Message, free func()) {
	req := m.Request()
	key := req.JobID + "/" + req.Organization + "/" + strconv.Itoa(req.Page.Number)
	if req.Page.Group {
		key += "/group"
	}
	if _, busy := p.inFlight.LoadOrStore(key, nil); busy {
		p.loop.Do(ctx, m, func(context.Context) error { return loop.ErrBusy })
		return
	}
	defer p.inFlight.Delete(key)
	p.loop.Do(ctx, m, func(ctx context.Context) error { return p.settle(ctx, m, free) })
}

// settle completes m's page. m may end when it returns nil.
func (p *pages) settle(ctx context.Context, m core.Message, free func()) error {
	req := m.Request()
	job, err := p.jobs.Of(ctx, m)
	if err != nil {
		return err
	}
	if req.Page.Group {
		return p.settleGroup(ctx, m, job, free)
	}
	run, err := p.Organizations.Organization(ctx, job.ID, req.Organization)
	if core.CodeOf(err) == core.CodeNotFound {
		run = core.OrganizationRun{Organization: req.Organization, State: core.JobRunning, DoneThrough: req.Page.Number - 1}
		_, err = p.Organizations.CreateOrganization(ctx, job.ID, run)
	}
	if err != nil {
		return err
	}
	if job.State.Final() && !run.State.Final() { // cancelled or failed before the organization was
		_, err := p.Organizations.UpdateOrganization(ctx, job.ID, req.Organization, state.Cancel)
		return err
	}
	if run.State.Final() {
		free()
		return p.ender.endIfComplete(ctx, job.ID)
	}
	if req.Page.IDs {
		return p.settleIDs(ctx, m, job, run, free)
	}
	page, run, todo, err := p.admit(ctx, m, run)
	if err != nil {
		return err
	}
	switch {
	case todo:
		return p.process(ctx, newPageWork(p.repository, m, job, page, run), free)
	case run.AllPagesDone():
		free()
		return p.end.finish(ctx, job, run)
	case run.ListEpoch > page.Epoch && run.DoneThrough < 0:
		return p.end.restartList(ctx, job, run) // the process that restarted the list may have crashed before it published the first page
	default: // the page has ended, or the chain was restarted before it
		return nil
	}
}

// admit reports whether m's page has to be read, and returns the run after a change. When a page was in flight when a
// process crashed, its chain is reread from this page on: rows may have moved between it and its successor since. The epoch
// voids the pages of the old chain; the page from which the chain restarts carries the older epoch itself.
func (p *pages) admit(ctx context.Context, m core.Message, run core.OrganizationRun) (core.Page, core.OrganizationRun, bool, error) {
	page := *m.Request().Page
	isDue := func(run *core.OrganizationRun) bool {
		return !run.IsVoid(page.Number, page.Epoch) && !run.PageDone(page.Number)
	}
	if !isDue(&run) {
		return page, run, false, nil
	}
	if page.Epoch == run.Epoch && loop.Attempts(m) == 0 {
		return page, run, true, nil
	}
	todo := false
	run, err := p.Organizations.UpdateOrganization(ctx, m.Request().JobID, m.Request().Organization,
		func(run *core.OrganizationRun) error {
			if todo = isDue(run); todo {
				run.RestartFrom(page.Number)
			}
			return nil
		})
	page.Epoch = run.Epoch
	return page, run, todo, err
}

// process reads and writes the page, and concludes it.
func (p *pages) process(ctx context.Context, w *pageWork, free func()) error {
	err := w.run(ctx)
	var failure *pageError
	if err != nil && !errors.As(err, &failure) {
		return err
	}
	free()
	return p.conclude(ctx, w, failure)
}

// conclude reports a page that was processed, and ends the organization with its last page.
func (p *pages) conclude(ctx context.Context, w *pageWork, failure *pageError) error {
	job := w.job
	if len(w.late) > 0 {
		err := p.loop.RetryUntilStopped(ctx, "storing the late records of a page", func() error {
			return p.Pages.NoteRequestedIDs(ctx, job.ID, w.req.Organization, w.page.Number, w.page.Epoch, w.late)
		})
		if err != nil {
			return err
		}
	}
	counted, complete := false, false
	run, err := p.progress.Write(ctx, job.ID, w.req.Organization, failure != nil || w.last, func(run *core.OrganizationRun) {
		counted = p.report(w, run, failure)
		complete = counted && failure == nil && run.AllPagesDone()
	})
	if err != nil {
		return err
	}
	if !counted && run.State.Final() { // cancelled since, or ended by another consumer of the page
		p.forgetPages(ctx, job, run)
		return p.ender.endIfComplete(ctx, job.ID)
	}
	if !counted {
		return loop.ErrBusy // another consumer has reported it; should that fail, only this message continues the list
	}
	p.Outcomes.Ended(core.ScopePage, w.msg.Version(), failure == nil && (w.totals.Rejected == 0 || w.totals.Written()))
	if failure != nil {
		p.log.WarnContext(ctx, "organization could not be read", "job_id", job.ID, "organization", w.req.Organization,
			"page", w.page.Number, "err", failure.cause)
		p.forgetPages(ctx, job, run)
		if w.paused {
			if err := p.jobs.Resume(ctx, job.ID); err != nil {
				return err
			}
		}
		return p.ender.endIfComplete(ctx, job.ID)
	}
	if complete {
		return p.end.finish(ctx, job, run)
	}
	return nil
}

// report adds the page to its organization's run. It returns false when it must not: the organization has ended, or another
// consumer, to which the page was redelivered, has reported it.
func (p *pages) report(w *pageWork, run *core.OrganizationRun, failure *pageError) bool {
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
	if w.counted && w.NonOverlapping {
		run.NoteTotal(w.total)
	}
	if failure != nil {
		run.Count(w.totals)
		run.State = core.JobFailed
		run.EndPause()
		run.Error = &core.JobError{Code: string(core.CodeOf(failure.cause)), Message: fmt.Sprintf(
			"page %d (rows from %d) could not be read: %s", w.page.Number, w.page.Offset, core.MessageOf(failure.cause))}
		return true
	}
	if w.repeats || w.shifted && w.NonOverlapping {
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
	w.reportInvalid(run)
	run.EndPage(w.page.Number, w.totals, w.kinds)
	return true
}
