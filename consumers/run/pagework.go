package run

import (
	"context"
	"errors"
	"time"

	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/internal/core"
)

// pageError is an upstream's final failure to return a page, which ends the organization's run.
type pageError struct{ cause error }

func (f *pageError) Error() string { return "reading a page: " + f.cause.Error() }
func (f *pageError) Unwrap() error { return f.cause }

// pageWork processes one page: the page may be read several times, until each of its documents has a final outcome.
type pageWork struct {
	organizationRun

	msg  core.Message
	page core.Page
	// reread counts how often the list was restarted before this page was admitted.
	reread int

	totals        core.Totals
	total         int  // rows of the whole list, as last returned
	counted       bool // the page had a total; a page past the end of the list has none
	last          bool // no page follows
	shifted       bool // the list shifted more often than maxStepsBack
	repeats       bool // the list repeats rows instead of continuing, or its total contradicts its rows
	moved         bool // rows have moved in this chain: see core.Page
	nextPublished bool // the next page is published, or there is none

	settled   map[string]struct{} // ids with a final outcome, set only for a page that may be reread
	unsettled map[string]bool     // ids that were read and have no final outcome; true if new to the chain
	late      []string            // ids that are new to the chain and were requested one by one
	invalid   []invalidRow        // rows that cannot be documents
	drifted   map[string]struct{} // ids of the records that are counted in totals.Drift
	scratch   []byte
	// withoutDocuments counts the records of the last pass that have no files.
	withoutDocuments int
	// hashes are those of the page's rows, set only for an organization of a group in a job that compares.
	hashes []uint64
	// notValid are the hashes of the records that the page shows as not to be indexed.
	notValid []uint64
	// kinds are those of the page's records, as first read.
	kinds core.Kinds
}

// newPageWork returns the work on a page of an organization's run. A page that is redelivered continues its pause; a page of
// another organization of a paused job resumes the job if no organization is paused any more.
func newPageWork(r *repository, m core.Message, job core.Job, page core.Page, run core.OrganizationRun) *pageWork {
	w := &pageWork{
		organizationRun: organizationRun{
			repository: r, req: m.Request(), job: job, organizationQueued: run.State == core.JobQueued,
			paused: job.State == core.JobPaused || run.PausedSince != nil,
		},
		msg: m, page: page, reread: run.Rereads,
	}
	if run.PausedSince != nil {
		w.failingSince = *run.PausedSince
	}
	return w
}

// run reads the page until all its documents have a final outcome. It returns a *pageError when the upstream does not return
// the page, and loop.ErrJobEnded when the job ended before the page could be read or reread.
func (w *pageWork) run(ctx context.Context) error {
	for rereads := 0; ; {
		if err := w.awaitIndex(ctx); err != nil {
			return err
		}
		if w.member == nil || rereads > 0 { // a group checks once
			if err := w.checkRebuild(ctx); err != nil {
				return err
			}
		}
		readErr, err := w.readAndWrite(ctx)
		switch {
		case err != nil:
			return err
		case readErr == nil && len(w.unsettled) == 0:
			return nil
		case readErr == nil && w.Outcomes.PausedByRejections():
			continue
		case readErr == nil: // the index did not respond, or bodies grew too old
			if rereads++; rereads >= w.PageAttempts { // a page does not wait for a single document
				return w.requestUnsettled(ctx, nil)
			}
			if err := w.loop.Sleep(w.loop.Delay(rereads, nil)); err != nil {
				return err
			}
			continue
		case w.loop.Stopping(ctx):
			return readErr
		}
		if ended, err := w.handleFailure(ctx, readErr); ended || err != nil {
			return err
		}
	}
}

// handleFailure blocks until the page may be read again after readErr. It returns true when the page ends instead, because
// its records are requested one by one, and a *pageError when it will not be read.
func (w *pageWork) handleFailure(ctx context.Context, readErr error) (ended bool, err error) {
	w.failures++
	if w.failingSince.IsZero() {
		w.failingSince = time.Now()
	}
	if again, err := w.requestLess(ctx, readErr); again || err != nil {
		return false, err
	}
	unanswered := fetch.Unanswered(readErr)
	isDown := unanswered && (w.paused || w.outage.GaveUp(w.job, time.Time{}))
	switch {
	case w.failures < w.PageAttempts && fetch.Retryable(readErr) && !isDown:
		w.log.InfoContext(ctx, "reading a page", "job_id", w.req.JobID, "organization", w.req.Organization,
			"page", w.page.Number, "attempts", w.failures, "err", readErr)
		jobEnded, err := w.jobs.Sleep(ctx, w.job.ID, w.loop.Delay(w.failures, readErr))
		if jobEnded {
			err = &pageError{cause: readErr}
		}
		return false, err
	case w.nextPublished: // its rows are known and are requested one by one
		return true, w.requestUnsettled(ctx, nil)
	case unanswered:
		return false, w.pause(ctx, readErr)
	default:
		return false, &pageError{cause: readErr}
	}
}

// readAndWrite makes one pass over the page, and settles the documents that were written. readErr is the error of the
// upstream.
func (w *pageWork) readAndWrite(ctx context.Context) (readErr, err error) {
	done, err := w.outage.Await(w.job, func() bool { return w.jobs.Ended(ctx, w.job.ID) })
	if err != nil {
		return nil, err
	}
	pass, readErr := w.read(ctx)
	defer w.release(pass.counter)
	if errors.Is(readErr, loop.ErrJobEnded) {
		done(readErr)
		pass.ticket.Seal()
		return nil, readErr
	}
	if fetch.Unanswered(readErr) || readErr != nil && w.loop.Stopping(ctx) {
		done(readErr)
	} else {
		done(nil)
		w.failingSince = time.Time{}
		if w.paused {
			if err := w.resume(ctx); err != nil {
				pass.ticket.Seal()
				return readErr, err
			}
		}
	}
	if err := w.excludeEarlierIDs(ctx, pass); err != nil {
		return readErr, err
	}
	if readErr == nil {
		if err := w.publishNext(ctx, pass); err != nil {
			return nil, err
		}
	}
	pass.ticket.Seal()
	results, err := pass.ticket.Wait(ctx)
	if err != nil {
		return readErr, err
	}
	return readErr, w.settle(ctx, pass, results, readErr == nil)
}
