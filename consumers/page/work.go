package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/internal/core"
)

// work is the work on one page, which may be read several times, until each of its documents has a final outcome.
type work struct {
	cfg     *Config
	log     *slog.Logger // with the page
	job     core.Job
	message core.Message
	page    core.Page
	// index is the alias that the page writes to, and version that of its documents.
	index   string
	version core.Version

	organization *organization
	ledger       ledger
	listing      listing
	buffer       []byte // for the document of one row
}

// newWork returns the work on a page of an organization's run; member is nil unless the organization is one of a group.
func newWork(cfg *Config, m core.Message, job core.Job, page core.Page, run core.OrganizationRun, member *member) *work {
	w := &work{
		cfg: cfg, job: job, message: m, page: page, index: cfg.Repository.IndexName, version: job.PageVersion(m.Version()),
		log:     cfg.Logger.With("job_id", job.ID, "organization", run.Organization, "page", page.Number),
		listing: listing{reading: run.Rereads}, ledger: ledger{rows: page.Limit},
	}
	w.organization = &organization{
		cfg: cfg, job: job, name: run.Organization, queued: run.State == core.JobQueued, member: member,
		paused: job.State == core.JobPaused || run.PausedSince != nil,
	}
	if run.PausedSince != nil { // the page was redelivered, and continues its pause
		w.organization.failingSince = *run.PausedSince
	}
	if job.Rebuild {
		w.index = core.NextAlias(w.index)
	}
	return w
}

// process reads and writes a page, reports it, and ends the organization with its last page.
func (p *Worker) process(ctx context.Context, m core.Message, job core.Job, page core.Page, run core.OrganizationRun, free func()) error {
	w := newWork(&p.cfg, m, job, page, run, nil)
	err := w.run(ctx)
	var failure *pageError
	if err != nil && !errors.As(err, &failure) {
		return err
	}
	free()
	return p.conclude(ctx, w, failure)
}

// pageError is an upstream's final failure to return a page, which ends the organization's run.
type pageError struct{ cause error }

func (f *pageError) Error() string { return "reading a page: " + f.cause.Error() }
func (f *pageError) Unwrap() error { return f.cause }

// run reads the page until all its documents have a final outcome. It returns a *pageError when the upstream does not return
// the page, and loop.ErrJobEnded when the job ended before the page could be read or reread.
func (w *work) run(ctx context.Context) error {
	for rereads := 0; ; {
		answered, err := w.organization.begin(ctx, rereads > 0)
		if err != nil {
			return err
		}
		readErr, err := w.readAndWrite(ctx, answered)
		switch {
		case err != nil:
			return err
		case readErr == nil && len(w.ledger.unsettled) == 0:
			return nil
		case readErr == nil && w.cfg.Outcomes.PausedByRejections():
			continue
		case readErr == nil: // the index did not respond, or bodies grew too old
			if rereads++; rereads >= w.cfg.Attempts { // a page does not wait for a single document
				return w.requestUnsettled(ctx, nil)
			}
			if err := w.cfg.Loop.Sleep(w.cfg.Loop.Delay(rereads, nil)); err != nil {
				return err
			}
			continue
		case w.cfg.Loop.Stopping(ctx):
			return readErr
		}
		if ended, err := w.handleFailure(ctx, readErr); ended || err != nil {
			return err
		}
	}
}

// readAndWrite makes one pass over the page, and settles the documents that were written. It calls answered with the error of the call.
// readErr is the error of the upstream.
func (w *work) readAndWrite(ctx context.Context, answered answered) (readErr, err error) {
	pass, readErr := w.read(ctx)
	defer pass.ticket.Seal()
	if err := answered(ctx, readErr); err != nil {
		return nil, err
	}
	if err := w.follow(ctx, pass, readErr == nil); err != nil {
		return nil, err
	}
	pass.ticket.Seal()
	results, err := pass.ticket.Wait(ctx)
	if err != nil {
		return readErr, err
	}
	return readErr, w.settle(ctx, pass, results, readErr == nil)
}

// handleFailure blocks until the page may be read again after readErr. It returns true when the page ends instead, because
// its records are requested one by one, and a *pageError when it will not be read.
func (w *work) handleFailure(ctx context.Context, readErr error) (ended bool, err error) {
	failures := w.organization.failed()
	if again, err := w.requestLess(ctx, readErr); again || err != nil {
		return false, err
	}
	unanswered := fetch.Unanswered(readErr)
	isDown := unanswered && (w.organization.paused || w.cfg.Outage.GaveUp(w.job, time.Time{}))
	switch {
	case failures < w.cfg.Attempts && fetch.Retryable(readErr) && !isDown:
		w.log.InfoContext(ctx, "reading a page", "attempts", failures, "err", readErr)
		return false, w.sleep(ctx, failures, readErr)
	case w.listing.published: // its rows are known and are requested one by one
		return true, w.requestUnsettled(ctx, nil)
	case unanswered:
		return false, w.organization.pause(ctx, readErr)
	default:
		return false, &pageError{cause: readErr}
	}
}

// sleep waits before the next attempt. It returns a *pageError when the job has ended by then.
func (w *work) sleep(ctx context.Context, failures int, cause error) error {
	ended, err := w.cfg.Jobs.Sleep(ctx, w.job.ID, w.cfg.Loop.Delay(failures, cause))
	if ended {
		err = &pageError{cause: cause}
	}
	return err
}

// requestLess makes the page smaller if the upstream may then return it, and waits until it may be requested. It returns true when the page
// is to be read again. A page that is not answered is requested once more before, unless the chain has found already that pages may be
// too large.
func (w *work) requestLess(ctx context.Context, readErr error) (again bool, err error) {
	unanswered, failures := fetch.Unanswered(readErr), w.organization.failures
	limit := w.cfg.Sizes.Smaller(w.page.Offset, w.page.Limit)
	if w.listing.published || limit == w.page.Limit || unanswered && failures < 2 && w.page.GrowFrom == 0 || !w.cfg.Fetcher.AsksTooMuch(ctx, readErr) {
		return false, nil
	}
	w.log.InfoContext(ctx, "a page is requested again with fewer rows", "rows", w.page.Limit, "fewer_rows", limit, "err", readErr)
	if w.page.SteppedBack && len(w.page.Before) > 0 { // it must reach the first row of the page before it
		w.page.Offset += w.page.Limit - limit
	}
	w.page.Limit, w.page.GrowFrom = limit, w.page.Number+fetch.GrowAfter
	// The smaller page ends before some of the rows that were read: they are new to the next one.
	w.ledger = ledger{rows: limit, totals: core.Totals{Retried: w.ledger.totals.Retried}}
	w.organization.failures = 0
	if unanswered {
		err = w.sleep(ctx, failures, readErr)
	}
	return true, err
}

// conclude reports a page that was processed, and ends the organization with its last page.
func (p *Worker) conclude(ctx context.Context, w *work, failure *pageError) error {
	job, name := w.job, w.organization.name
	if len(w.ledger.late) > 0 {
		err := p.cfg.Loop.RetryUntilStopped(ctx, "storing the late records of a page", func() error {
			return p.cfg.Notes.NoteRequestedIDs(ctx, job.ID, name, w.page.Number, w.page.Epoch, w.ledger.late)
		})
		if err != nil {
			return err
		}
	}
	counted, complete := false, false
	run, err := p.cfg.Progress.Write(ctx, job.ID, name, failure != nil || w.listing.last, func(run *core.OrganizationRun) {
		counted = w.report(run, failure)
		complete = counted && failure == nil && run.AllPagesDone()
	})
	if err != nil {
		return err
	}
	if !counted && run.State.Final() { // cancelled since, or ended by another consumer of the page
		p.Forget(ctx, job, run)
		return p.cfg.EndJob(ctx, job.ID)
	}
	if !counted {
		return loop.ErrBusy // another consumer has reported it; should that fail, only this message continues the list
	}
	w.ended(failure)
	if failure != nil {
		w.log.WarnContext(ctx, "organization could not be read", "err", failure.cause)
		p.Forget(ctx, job, run)
		if w.organization.paused {
			if err := p.cfg.Jobs.Resume(ctx, job.ID); err != nil {
				return err
			}
		}
		return p.cfg.EndJob(ctx, job.ID)
	}
	if complete {
		return p.cfg.EndList(ctx, job, run)
	}
	return nil
}

// ended counts the page as processed.
func (w *work) ended(failure *pageError) {
	totals := w.ledger.totals
	w.cfg.Outcomes.Ended(core.ScopePage, w.message.Version(), failure == nil && (totals.Rejected == 0 || totals.Written()))
}

// report adds the page to its organization's run. It returns false when it must not: the organization has ended, or another
// consumer, to which the page was redelivered, has reported it.
func (w *work) report(run *core.OrganizationRun, failure *pageError) bool {
	if run.State.Final() || run.PageDone(w.page.Number) || w.page.Epoch < run.ListEpoch ||
		(w.page.Epoch < run.Epoch && w.page.Number >= run.Restart) {
		return false
	}
	if run.State == core.JobQueued {
		run.State = core.JobRunning
	}
	l, overlapping := &w.listing, !w.cfg.Sizes.NonOverlapping
	if l.counted {
		if l.total > 0 || l.last {
			run.Expect(int64(l.total))
		}
		if !overlapping {
			run.NoteTotal(l.total)
		}
	}
	if failure != nil {
		run.Count(w.ledger.totals)
		run.State = core.JobFailed
		run.EndPause()
		run.Error = &core.JobError{Code: string(core.CodeOf(failure.cause)), Message: fmt.Sprintf(
			"page %d (rows from %d) could not be read: %s", w.page.Number, w.page.Offset, core.MessageOf(failure.cause))}
		return true
	}
	if l.repeats || l.shifted && !overlapping {
		run.Shifted = true
	} else if l.shifted && run.Unswept == nil {
		run.Unswept = &core.JobError{Code: core.JobErrorListShifted, Message: "the list kept shifting while it was read"}
	}
	if l.last {
		number := w.page.Number
		run.LastPage = &number
	}
	if len(w.ledger.late) > 0 {
		run.NoteLate(w.page.Number, w.page.Epoch)
	}
	run.Invalid = run.Invalid || len(l.invalid) > 0
	run.EndPage(w.page.Number, w.ledger.totals, l.kinds)
	return true
}
