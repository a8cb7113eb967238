package run

import (
	"context"
	"slices"
	"time"

	"tutti/consumers/fetch"
	"tutti/internal/core"
)

// Bounds for reading a shifting list.
const (
	// idsCarried is how many of a page's last ids the next page is matched with.
	idsCarried = 64
	// minPageSize is the size below which pages are not made smaller: their late rows are requested one by one instead.
	minPageSize = 16
	// maxStepsBack is how often a chain steps back before its job ends partial.
	maxStepsBack = 50
)

// maxScratch is the largest buffer for a document that is reused for the next one.
const maxScratch = 1 << 20

// maxInvalidRows is how many invalid rows are buffered with their documents, up to core.MaxDeadLetterBytes each, before they
// are stored as dead letters.
const maxInvalidRows = 16

// pageError is an upstream's final failure to return a page, which ends the organization's run.
type pageError struct{ cause error }

func (f *pageError) Error() string { return "reading a page: " + f.cause.Error() }
func (f *pageError) Unwrap() error { return f.cause }

// pageWork processes one page: the page may be read several times, until each of its documents has a final outcome.
type pageWork struct {
	*repository
	msg  core.Message
	req  core.Request
	job  core.Job
	page core.Page
	// organizationQueued is true until the organization is stored as running.
	organizationQueued bool
	// reread counts how often the list was restarted before this page was admitted.
	reread int

	totals        core.Totals
	total         int  // rows of the whole list, as last returned
	counted       bool // the page returned total; one past the end of a list does not
	last          bool // no page follows
	shifted       bool // the list shifted more often than maxStepsBack
	repeats       bool // the list repeats rows instead of continuing, or its total contradicts its rows
	moved         bool // rows have moved in this chain: see core.Page
	nextPublished bool // the next page is published, or there is none

	settled   map[string]struct{} // ids with a final outcome, set only once the page has to be reread
	unsettled map[string]bool     // ids that were read and have no final outcome; true if it counts
	late      []string            // ids that count and were requested one by one
	invalid   []invalidRow        // rows that cannot be documents
	scratch   []byte
}

// invalidRow is a row that cannot be a document, with the hash of its id.
type invalidRow struct {
	hash   uint64
	letter core.DeadLetter
	stored bool
}

func newPageWork(r *repository, m core.Message, job core.Job, page core.Page, rereads int) *pageWork {
	return &pageWork{repository: r, msg: m, req: m.Request(), job: job, page: page, reread: rereads}
}

// run reads the page until all its documents have a final outcome. It returns a *pageError when the upstream does not return
// the page, and errJobEnded when the job ended before the page could be read or reread.
func (w *pageWork) run(ctx context.Context) error {
	for failures, attempts := 0, 0; ; {
		if err := w.awaitIndex(ctx); err != nil {
			return err
		}
		pass, readErr := w.read(ctx)
		if err := w.excludeEarlierIDs(ctx, pass); err != nil {
			return err
		}
		if readErr == nil {
			if err := w.publishNext(ctx, pass); err != nil {
				return err
			}
		}
		pass.ticket.Seal()
		results, err := pass.ticket.Wait(ctx)
		if err != nil {
			return err
		}
		if err := w.settle(ctx, pass, results, readErr == nil); err != nil {
			return err
		}
		switch {
		case readErr == nil && len(w.unsettled) == 0:
			return nil
		case readErr == nil:
			if requested, err := w.waitBeforeRereading(ctx, &attempts); requested || err != nil {
				return err
			}
			continue
		case w.loop.Stopping(ctx):
			return readErr
		}
		failures++
		if !fetch.Retryable(readErr) || failures >= w.PageAttempts {
			if w.nextPublished { // its rows are known and are requested one by one
				return w.requestUnsettled(ctx, nil)
			}
			return &pageError{cause: readErr}
		}
		w.log.Info("reading a page", "job_id", w.req.JobID, "organization", w.req.Organization,
			"page", w.page.Number, "attempts", failures, "err", readErr)
		delay := w.loop.Delay(failures, readErr)
		ended, err := w.sleepInJob(ctx, w.job.ID, delay)
		if err != nil {
			return err
		}
		if ended {
			return &pageError{cause: readErr}
		}
	}
}

// awaitIndex blocks until the index takes writes. It returns errJobEnded when the job has ended by then.
func (w *pageWork) awaitIndex(ctx context.Context) error {
	if err := w.loop.AwaitIndex(); err != nil {
		return err
	}
	if w.jobEnded(ctx, w.job.ID) {
		return errJobEnded
	}
	return nil
}

// waitBeforeRereading waits before a page is reread for documents that the index did not take: it did not respond, or their
// bodies grew too old. After too many attempts it requests them one by one and returns true, so that a page does not wait
// for a single document. While nearly all documents are rejected the page waits for the end of the pause.
func (w *pageWork) waitBeforeRereading(ctx context.Context, attempts *int) (requested bool, err error) {
	if w.Outcomes.PausedByRejections() {
		return false, nil
	}
	*attempts++
	if *attempts >= w.PageAttempts {
		return true, w.requestUnsettled(ctx, nil)
	}
	return false, w.loop.Sleep(w.loop.Delay(*attempts, nil))
}

// read streams the page's rows into the bulk writer.
func (w *pageWork) read(ctx context.Context) (*pagePass, error) {
	pass := &pagePass{ticket: w.Writer.Ticket(), joined: len(w.page.Before) == 0}
	pass.ticket.Expect(w.page.Limit)
	pass.ids = make([]string, 0, w.page.Limit)
	pass.hashes = make([]uint64, 0, w.page.Limit)
	pass.fresh = make(map[uint64]struct{}, w.page.Limit)
	release, err := w.Fetcher.AcquirePage(ctx)
	if err != nil {
		return pass, err
	}
	defer release()
	w.markRunning(ctx)
	w.invalid = w.invalid[:0]
	pass.sent = time.Now()
	pass.info, err = w.Fetcher.Page(ctx, w.req.Organization, w.page.Offset, w.page.Limit, func(rec core.Record) error {
		return w.addRow(ctx, pass, rec)
	})
	pass.duration = time.Since(pass.sent)
	if err == nil && w.NonOverlapping {
		err = w.checkJoined(ctx, pass)
	}
	w.Fetcher.CountPage(len(pass.hashes)-pass.skip, err)
	return pass, err
}

// markRunning sets a queued organization to running when its first page is read. If that fails, the report of the page does
// it.
func (w *pageWork) markRunning(ctx context.Context) {
	if !w.organizationQueued {
		return
	}
	w.organizationQueued = false
	if _, err := w.Organizations.UpdateOrganization(ctx, w.job.ID, w.req.Organization, func(run *core.OrganizationRun) error {
		if run.State == core.JobQueued {
			run.State = core.JobRunning
		}
		return nil
	}); err != nil {
		w.log.Info("setting an organization to running; the report of the page retries", "job_id", w.job.ID, "organization", w.req.Organization, "err", err)
	}
}

// addRow processes one row of the page: it writes a document, or sets the row aside, or skips it as settled.
func (w *pageWork) addRow(ctx context.Context, pass *pagePass, rec core.Record) error {
	hash := hashOf(rec)
	first, known := len(pass.hashes) == 0, slices.Contains(w.page.Before, hash)
	overlap := first && known && !w.NonOverlapping
	if overlap || known && w.page.SteppedBack {
		pass.joined = true
	}
	pass.hashes = append(pass.hashes, hash)
	if known {
		pass.overlapRows++
	} else {
		pass.fresh[hash] = struct{}{}
	}
	if overlap {
		pass.skip = 1 // read by the page before
		return nil
	}
	if _, done := w.settled[rec.ID]; done {
		return nil
	}
	if err := core.ValidKey("id", rec.ID); err != nil {
		return w.setAside(ctx, rec, hash, core.ReasonInvalidID, core.MessageOf(err)+"; fix the record's id at its repository")
	}
	if rec.Organization != w.req.Organization {
		w.Outcomes.Count(core.OutcomeMismatch, 1)
		w.log.Info("record belongs to another organization", "organization", w.req.Organization, "record_id", rec.ID,
			"job_id", w.req.JobID)
		return nil
	}
	if !rec.Indexable {
		return nil // not seen: the sweep requests it
	}
	if rec.TooLarge != nil {
		return w.setAside(ctx, rec, hash, core.ReasonTooLarge, w.Outcomes.TooLargeHint())
	}
	pass.noteOverdue(rec.ID, w.Writer.MaxBodyAge())
	w.scratch = w.Document(w.scratch[:0], rec)
	pass.ids = append(pass.ids, rec.ID)
	ready := time.Now()
	err := w.Writer.Add(ctx, pass.ticket, w.Repository.IndexName, core.Write{
		Op: core.OpIndex, ID: rec.ID, Version: w.msg.Version(), Document: w.scratch, FetchedAt: pass.sent,
	})
	pass.waited += time.Since(ready)
	if cap(w.scratch) > maxScratch {
		w.scratch = nil
	}
	return err
}

// setAside buffers a row that cannot be a document, because of its id or its size.
func (w *pageWork) setAside(ctx context.Context, rec core.Record, hash uint64, reason, hint string) error {
	kept := rec.TooLarge
	if kept == nil {
		kept = core.NewDeadLetterDocument(rec.Body)
	}
	id := rec.ID
	if id == "" {
		id = "without-id-" + kept.SHA256
	}
	if _, done := w.settled[id]; done {
		return nil
	}
	w.invalid = append(w.invalid, invalidRow{hash: hash, letter: core.DeadLetter{
		Repository: w.Repository.Code, Organization: w.req.Organization, RecordID: id, Reason: reason, Hint: hint,
		Document: kept.Bytes, Size: kept.Size, SHA256: kept.SHA256, Truncated: kept.Truncated,
	}})
	if len(w.invalid)%maxInvalidRows != 0 {
		return nil
	}
	return w.storeInvalid(ctx)
}
