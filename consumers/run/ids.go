package run

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// idsInFlight is how many ids of one page are processed concurrently.
const idsInFlight = 32

// Records processes single records.
type Records interface {
	// Settle fetches req's record and writes or removes its document with the given version. After an error the record has no final
	// outcome.
	Settle(ctx context.Context, req core.Request, version core.Version) (organization string, o core.Outcome, err error)
}

// IDPages stores the pages of ids of jobs.
type IDPages interface {
	IDPage(ctx context.Context, jobID, organization string, page int) ([]core.ListedID, error)
	// UpdateIDPage is a compare-and-set that is retried on a conflict.
	UpdateIDPage(ctx context.Context, jobID, organization string, page int, change func([]core.ListedID) error) ([]core.ListedID, error)
}

// expandIDs publishes the first page of each organization of a job's list, unless its chain of pages was started already.
func (w *runs) expandIDs(ctx context.Context, job core.Job) error {
	lists, err := w.Organizations.Organizations(ctx, job.ID)
	if err != nil {
		return err
	}
	if len(lists) == 0 {
		return w.jobs.Fail(ctx, job.ID, core.NewError(core.CodeNotFound, "the ids of the job are no longer stored"))
	}
	if err := w.jobs.Expect(ctx, job.ID, len(lists)); err != nil {
		return err
	}
	for _, list := range lists {
		if begun := list.State.Final() || list.DoneThrough >= 0 || len(list.Ahead) > 0; begun {
			continue
		}
		if err := w.publishIDs(ctx, job, list.Organization, 0); err != nil {
			return err
		}
	}
	return nil
}

// publishIDs publishes a page of ids. Doing so twice has no effect.
func (r *repository) publishIDs(ctx context.Context, job core.Job, organization string, page int) error {
	req := state.Child(job, core.ScopePage, organization)
	req.Page = &core.Page{IDs: true, Number: page, Offset: page * core.IDsPerPage, Limit: core.IDsPerPage}
	return r.loop.RetryUntilStopped(ctx, "publishing a page of ids", func() error { return r.Requests.Publish(ctx, req) })
}

// settleIDs completes m's page of ids. The list does not change, so that a page needs no epoch: a page that is redelivered is
// processed again, except for the ids whose outcomes are stored.
func (p *pages) settleIDs(ctx context.Context, m core.Message, job core.Job, run core.OrganizationRun, free func()) error {
	number := m.Request().Page.Number
	if run.PageDone(number) {
		if !run.AllPagesDone() {
			return nil
		}
		free()
		return p.endIDs(ctx, job, run)
	}
	w := &idWork{
		organizationRun: organizationRun{
			repository: p.repository, req: m.Request(), job: job, organizationQueued: run.State == core.JobQueued,
		},
		version: versionOf(job, m), number: number, last: run.LastPage != nil && number >= *run.LastPage,
	}
	err := w.run(ctx)
	var failure *pageError
	if err != nil && !errors.As(err, &failure) {
		return err
	}
	free()
	counted := false
	run, err = p.progress.Write(ctx, job.ID, run.Organization, failure != nil || w.last, func(run *core.OrganizationRun) {
		if counted = !run.State.Final() && !run.PageDone(number); counted {
			w.report(run, failure)
		}
	})
	switch {
	case err != nil:
		return err
	case !counted && run.State.Final():
		return p.ender.endIfComplete(ctx, job.ID)
	case !counted:
		return loop.ErrBusy // another consumer has reported it; should that fail, only this message continues the list
	}
	p.Outcomes.Ended(core.ScopePage, m.Version(), failure == nil && w.totals.Written())
	if failure != nil {
		p.log.WarnContext(ctx, "ids could not be indexed", "job_id", job.ID, "organization", run.Organization, "page", number, "err", failure.cause)
		return p.ender.endIfComplete(ctx, job.ID)
	}
	if run.AllPagesDone() {
		return p.endIDs(ctx, job, run)
	}
	return nil
}

// endIDs ends an organization of a list whose pages have all ended, and then the job if it was the last one.
func (p *pages) endIDs(ctx context.Context, job core.Job, run core.OrganizationRun) error {
	_, err := p.Organizations.UpdateOrganization(ctx, job.ID, run.Organization, func(run *core.OrganizationRun) error {
		if run.State.Final() {
			return nil
		}
		run.State = core.JobSucceeded
		t := run.Totals
		if left := t.Expected - t.Indexed - t.Stale - t.Removed - t.Excluded; left > t.Rejected {
			run.State, run.Error = core.JobPartial, &core.JobError{Code: core.JobErrorIDsNotIndexed, Message: fmt.Sprintf(
				"%d of %d not indexed; the ids of the job say why (tutti jobs ids %s)", left, t.Expected, job.ID)}
		}
		state.NoteRejected(p.Repository.Code, run)
		return nil
	})
	if err != nil {
		return err
	}
	return p.ender.endIfComplete(ctx, job.ID)
}

// idWork processes one page of ids, until each has an outcome.
type idWork struct {
	organizationRun
	version core.Version
	number  int
	last    bool
	totals  core.Totals

	mu      sync.Mutex
	open    map[string]error // the ids without an outcome, and why
	settled map[string]core.ListedID
	wentOn  bool // see goOn
}

// run processes the ids of the page and stores their outcomes. It returns a *pageError when the repository did not answer for too
// long, and loop.ErrJobEnded when the job ended before all ids had an outcome.
func (w *idWork) run(ctx context.Context) error {
	ids, err := w.IDs.IDPage(ctx, w.job.ID, w.req.Organization, w.number)
	if err != nil {
		return err
	}
	w.open, w.settled = make(map[string]error, len(ids)), make(map[string]core.ListedID, len(ids))
	for _, id := range ids {
		if id.Outcome == "" {
			w.open[id.ID] = nil
		}
	}
	w.markRunning(ctx)
	err = w.settleAll(ctx)
	var failure *pageError
	if err == nil || errors.Is(err, loop.ErrJobEnded) || errors.As(err, &failure) {
		if stored := w.store(ctx); stored != nil {
			return stored
		}
	}
	if err == nil {
		err = w.goOn(ctx)
	}
	return err
}

// settleAll processes the open ids until each has an outcome. Ids that fail again and again while the repository answers get
// Requests of their own, so that no page waits for a single record.
func (w *idWork) settleAll(ctx context.Context) error {
	for try := 1; len(w.open) > 0; try++ {
		if err := w.awaitIndex(ctx); err != nil {
			return err
		}
		cause, err := w.settleOnce(ctx)
		switch {
		case err != nil || cause == nil:
			return err
		case w.Outcomes.PausedByRejections():
			try = 0
			continue
		case try < w.PageAttempts:
			ended, err := w.jobs.Sleep(ctx, w.job.ID, w.loop.Delay(try, cause))
			if ended {
				err = loop.ErrJobEnded
			}
			if err != nil {
				return err
			}
			continue
		}
		_, waited, err := w.calls.Organizations(ctx, w.job)
		switch {
		case err != nil && (w.loop.Stopping(ctx) || errors.Is(err, loop.ErrJobEnded)):
			return err
		case err != nil:
			return &pageError{cause: err}
		case waited: // the repository answers again
			try = 0
		default:
			return w.requestOpen(ctx)
		}
	}
	return nil
}

// settleOnce processes each open id once. cause is the error of one that is still open, nil if none is.
func (w *idWork) settleOnce(ctx context.Context) (cause, err error) {
	ids := make([]string, 0, len(w.open))
	for id := range w.open {
		ids = append(ids, id)
	}
	calls, callCtx := errgroup.WithContext(ctx)
	calls.SetLimit(idsInFlight)
	ended := false
	for i, id := range ids {
		if ended = i > 0 && i%idsInFlight == 0 && w.jobs.Ended(ctx, w.job.ID); ended || callCtx.Err() != nil {
			break
		}
		calls.Go(func() error { return w.settleID(callCtx, id) })
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	if ended {
		return nil, loop.ErrJobEnded
	}
	for _, cause = range w.open {
		break
	}
	return cause, nil
}

// settleID processes one id. It returns an error only when the page must end.
func (w *idWork) settleID(ctx context.Context, id string) error {
	settled := core.ListedID{ID: id}
	organization, result, err := w.Records.Settle(ctx, w.recordRequest(id), w.version)
	switch {
	case err != nil && w.loop.Stopping(ctx):
		return err
	case err != nil && !fetch.Retryable(err):
		return err
	case err != nil:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open[id] = err
		w.totals.Retried++
		return nil
	}
	if w.job.Organization != "" && (result == core.OutcomeMismatch || organization != w.job.Organization) {
		result = core.OutcomeRemoved // the caller of the job may not know which ids other organizations have
	}
	switch result {
	case core.OutcomeIndexed:
		settled.Outcome = core.IDIndexed
	case core.OutcomeRemoved:
		settled.Outcome = core.IDRemoved
	case core.OutcomeExcluded:
		settled.Outcome = core.IDExcluded
	case core.OutcomeStale:
		settled.Outcome = core.IDStale
	case core.OutcomeMismatch:
		settled.Outcome, settled.Hint = core.IDMismatch, "the record belongs to another organization of the repository; use that one"
	case core.OutcomeRejected:
		if settled, err = w.deadLettered(ctx, id); err != nil {
			return err
		}
	case core.OutcomeRetry:
		return core.NewError(core.CodeInternal, "a record was settled without an outcome")
	}
	w.mu.Lock()
	w.settled[id] = settled
	delete(w.open, id)
	w.mu.Unlock()
	return w.goOn(ctx)
}

// deadLettered returns the outcome of an id with a dead letter.
func (w *idWork) deadLettered(ctx context.Context, id string) (core.ListedID, error) {
	settled := core.ListedID{ID: id, Outcome: core.IDDeadLettered, Reason: core.ReasonRejected}
	letter, err := w.Outcomes.FindDeadLetter(ctx, w.req.Organization, id)
	if core.CodeOf(err) == core.CodeNotFound { // of one of several documents, or removed since
		return settled, nil
	}
	settled.Reason, settled.Hint = letter.Reason, letter.Hint
	if letter.EngineReason != "" {
		settled.Reason += ": " + letter.EngineReason
	}
	return settled, err
}

// goOn publishes the next page, and resumes the job if another process had paused it. It is called once an id of the page has an
// outcome: while the repository does not answer, the list does not go on.
func (w *idWork) goOn(ctx context.Context) error {
	w.mu.Lock()
	first := !w.wentOn
	w.wentOn = true
	w.mu.Unlock()
	if first && w.job.State == core.JobPaused {
		if err := w.jobs.Resume(ctx, w.job.ID); err != nil {
			return err
		}
	}
	if !first || w.last {
		return nil
	}
	return w.publishIDs(ctx, w.job, w.req.Organization, w.number+1)
}

// requestOpen publishes a record Request, with the run's version, for each open id.
func (w *idWork) requestOpen(ctx context.Context) error {
	for id, cause := range w.open {
		req := w.recordRequest(id)
		req.AsOf = w.version
		if err := w.loop.RetryUntilStopped(ctx, "publishing a record", func() error { return w.Requests.PublishUnlessRemovalPending(ctx, req) }); err != nil {
			return err
		}
		w.settled[id] = core.ListedID{
			ID: id, Outcome: core.IDRetrying, Reason: core.MessageOf(cause),
			Hint: "it is retried until the record is indexed, removed or a dead letter",
		}
	}
	clear(w.open)
	return nil
}

// store stores the outcomes of the page, each once, and counts all of them.
func (w *idWork) store(ctx context.Context) error {
	var stored []core.ListedID
	err := w.loop.RetryUntilStopped(ctx, "storing the outcomes of ids", func() (err error) {
		stored, err = w.IDs.UpdateIDPage(ctx, w.job.ID, w.req.Organization, w.number, func(ids []core.ListedID) error {
			for i := range ids {
				if settled, is := w.settled[ids[i].ID]; is && ids[i].Outcome == "" {
					settled.Reason = outcome.Truncate(settled.Reason, core.MaxOutcomeText)
					settled.Hint = outcome.Truncate(settled.Hint, core.MaxOutcomeText)
					ids[i] = settled
				}
			}
			return nil
		})
		return err
	})
	for _, id := range stored {
		w.count(id.Outcome)
	}
	return err
}

func (w *idWork) count(o core.IDOutcome) {
	if o.Settled() {
		w.totals.Fetched++
	}
	switch o {
	case core.IDIndexed:
		w.totals.Indexed++
	case core.IDStale:
		w.totals.Stale++
	case core.IDRemoved:
		w.totals.Removed++
	case core.IDExcluded:
		w.totals.Excluded++
	case core.IDDeadLettered:
		w.totals.Rejected++
	case core.IDMismatch, core.IDRetrying, core.IDQueued, core.IDSkipped:
	}
}

// report adds the page to its organization's run.
func (w *idWork) report(run *core.OrganizationRun, failure *pageError) {
	if run.State == core.JobQueued {
		run.State = core.JobRunning
	}
	if failure == nil {
		run.EndPage(w.number, w.totals, nil)
		return
	}
	run.Count(w.totals)
	run.State = core.JobFailed
	run.EndPause()
	run.Error = &core.JobError{Code: string(core.CodeOf(failure.cause)), Message: core.MessageOf(failure.cause)}
}
