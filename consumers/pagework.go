package consumers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

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
	r    *repository
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
	return &pageWork{r: r, msg: m, req: m.Request(), job: job, page: page, reread: rereads}
}

// run reads the page until all its documents have a final outcome. It returns a *pageError when the upstream does not return
// the page, and errSweepEnded when the job ended before the page could be read or reread.
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
		case ctx.Err() != nil || w.r.c.draining.Err() != nil:
			return readErr
		}
		failures++
		if !retryable(readErr) || failures >= w.r.c.cfg.PageAttempts {
			if w.nextPublished { // its rows are known and are requested one by one
				return w.requestUnsettled(ctx, nil)
			}
			return &pageError{cause: readErr}
		}
		w.r.log.Info("reading a page", "job_id", w.req.JobID, "organization", w.req.Organization,
			"page", w.page.Number, "attempts", failures, "err", readErr)
		delay := max(retryAfter(readErr), backoff(failures, w.r.c.cfg.RetryBase, w.r.c.cfg.RetryMax))
		ended, err := w.r.sleepInJob(ctx, w.job.ID, delay)
		if err != nil {
			return err
		}
		if ended {
			return &pageError{cause: readErr}
		}
	}
}

// awaitIndex blocks until the index takes writes. It returns errSweepEnded when the job has ended by then.
func (w *pageWork) awaitIndex(ctx context.Context) error {
	if err := w.r.pause.wait(w.r.c.draining); err != nil {
		return err
	}
	if w.r.jobEnded(ctx, w.job.ID) {
		return errSweepEnded
	}
	return nil
}

// waitBeforeRereading waits before a page is reread for documents that the index did not take: it did not respond, or their
// bodies grew too old. After too many attempts it requests them one by one and returns true, so that a page does not wait
// for a single document. While nearly all documents are rejected the page waits for the end of the pause.
func (w *pageWork) waitBeforeRereading(ctx context.Context, attempts *int) (requested bool, err error) {
	if w.r.pausedByRejections() {
		return false, nil
	}
	*attempts++
	if *attempts >= w.r.c.cfg.PageAttempts {
		return true, w.requestUnsettled(ctx, nil)
	}
	return false, sleep(w.r.c.draining, backoff(*attempts, w.r.c.cfg.RetryBase, w.r.c.cfg.RetryMax))
}

// read streams the page's rows into the bulk writer.
func (w *pageWork) read(ctx context.Context) (*pagePass, error) {
	pass := &pagePass{ticket: w.r.c.deps.Writer.Ticket(), joined: len(w.page.Before) == 0}
	pass.ticket.Expect(w.page.Limit)
	pass.ids = make([]string, 0, w.page.Limit)
	pass.hashes = make([]uint64, 0, w.page.Limit)
	pass.fresh = make(map[uint64]struct{}, w.page.Limit)
	if err := w.r.pageCalls.Acquire(ctx, 1); err != nil {
		return pass, err
	}
	defer w.r.pageCalls.Release(1)
	w.markRunning(ctx)
	w.invalid = w.invalid[:0]
	pass.sent = time.Now()
	var err error
	pass.info, err = w.r.Upstream.Page(ctx, w.req.Organization, w.page.Offset, w.page.Limit, func(rec core.Record) error {
		return w.addRow(ctx, pass, rec)
	})
	pass.duration = time.Since(pass.sent)
	if errors.Is(err, core.ErrOrganizationAbsent) {
		err = w.r.confirmAbsent(ctx, w.req.Organization, err)
	}
	if err == nil && w.r.NonOverlapping {
		err = w.checkJoined(ctx, pass)
	}
	w.r.c.cfg.Metrics.addFetched(w.r.Code, "ok", len(pass.hashes)-pass.skip)
	if err != nil {
		w.r.c.cfg.Metrics.addFetched(w.r.Code, fetchResult(err), 1)
	}
	return pass, err
}

// markRunning sets a queued organization to running when its first page is read. If that fails, the report of the page does
// it.
func (w *pageWork) markRunning(ctx context.Context) {
	if !w.organizationQueued {
		return
	}
	w.organizationQueued = false
	if _, err := w.r.c.deps.Organizations.UpdateOrganization(ctx, w.job.ID, w.req.Organization, func(run *core.OrganizationRun) error {
		if run.State == core.JobQueued {
			run.State = core.JobRunning
		}
		return nil
	}); err != nil {
		w.r.log.Info("setting an organization to running; the report of the page retries", "job_id", w.job.ID, "organization", w.req.Organization, "err", err)
	}
}

// addRow processes one row of the page: it writes a document, or sets the row aside, or skips it as settled.
func (w *pageWork) addRow(ctx context.Context, pass *pagePass, rec core.Record) error {
	hash := hashOf(rec)
	first, known := len(pass.hashes) == 0, slices.Contains(w.page.Before, hash)
	overlap := first && known && !w.r.NonOverlapping
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
		w.r.c.cfg.Metrics.addDocuments(w.r.IndexName, core.OutcomeMismatch, 1)
		w.r.log.Info("record belongs to another organization", "organization", w.req.Organization, "record_id", rec.ID,
			"job_id", w.req.JobID)
		return nil
	}
	if !rec.Indexable {
		return nil // not seen: the sweep requests it
	}
	if rec.TooLarge != nil {
		return w.setAside(ctx, rec, hash, core.ReasonTooLarge, w.r.c.tooLargeHint())
	}
	pass.noteOverdue(rec.ID, w.r.c.deps.Writer.MaxBodyAge())
	w.scratch = w.r.Document(w.scratch[:0], rec)
	pass.ids = append(pass.ids, rec.ID)
	ready := time.Now()
	err := w.r.c.deps.Writer.Add(ctx, pass.ticket, w.r.IndexName, core.Write{
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
		Repository: w.r.Code, Organization: w.req.Organization, RecordID: id, Reason: reason, Hint: hint,
		Document: kept.Bytes, Size: kept.Size, SHA256: kept.SHA256, Truncated: kept.Truncated,
	}})
	if len(w.invalid)%maxInvalidRows != 0 {
		return nil
	}
	return w.storeInvalid(ctx)
}

// publishNext publishes the following page, once, before waiting for the outcomes of the documents.
func (w *pageWork) publishNext(ctx context.Context, pass *pagePass) error {
	w.total, w.counted = pass.info.Total, pass.info.Rows > 0 || w.page.Offset == 0
	if w.nextPublished {
		return nil
	}
	w.totals.Fetched += int64(len(pass.fresh))
	next := w.nextPage(pass)
	if next != nil || w.r.NonOverlapping {
		if err := w.notePage(ctx, pass); err != nil {
			return err
		}
	}
	if next != nil {
		req := w.r.childRequest(w.job, core.ScopePage, w.req.Organization)
		req.Page = next
		err := w.r.retryUntilStopped(ctx, "publishing the next page", func() error { return w.r.c.deps.Requests.Publish(ctx, req) })
		if err != nil {
			return err
		}
	}
	w.last, w.nextPublished = next == nil, true
	return nil
}

// nextPage returns the following page, nil after the last one. A page that does not match the one before is followed by one
// that steps back: the list has shifted, and rows may have moved into what was already read.
func (w *pageWork) nextPage(pass *pagePass) *core.Page {
	next := &core.Page{
		Number: w.page.Number + 1, Epoch: w.page.Epoch, Limit: w.nextLimit(pass), StepsBack: w.page.StepsBack,
		Read: w.page.Read + len(pass.fresh), Moved: w.moved, Repeats: w.page.Repeats && len(pass.fresh) == 0,
	}
	rows, end := pass.info.Rows, w.page.Offset+pass.info.Rows
	if len(pass.fresh) == 0 && end > next.Read && end < pass.info.Total {
		// An unchanged list has as many distinct ids up to here as rows. After a shift, the list is read on from a step
		// back.
		if w.repeats = w.r.NonOverlapping || pass.joined || w.page.Repeats; w.repeats {
			return nil
		}
		next.Repeats = true
	}
	if w.repeats = w.totalContradictsRows(pass); w.repeats {
		return nil
	}
	if w.r.NonOverlapping {
		w.shifted = !pass.joined
		if rows == 0 || w.page.Offset+w.page.Limit >= pass.info.Total {
			return nil
		}
		next.Offset, next.Before = w.page.Offset+w.page.Limit, pass.lastIDs()
		return next
	}
	if !pass.joined {
		if w.page.StepsBack < maxStepsBack {
			next.StepsBack++
			next.SteppedBack = true
			next.Limit = w.page.Limit // it must reach the first row of this page
			next.Offset = max(0, w.page.Offset-w.page.Limit+1)
			if next.Offset > 0 {
				next.Before = w.page.Before
			}
			return next
		}
		w.shifted = true
	}
	if rows == 0 || end >= pass.info.Total {
		return nil
	}
	next.Offset = end
	if rows > 1 {
		next.Offset = end - 1
		next.Before = pass.lastIDs()
	}
	return next
}

// totalContradictsRows reports whether the total of a list contradicts the rows of a page, so that the list's end is
// unknown.
func (w *pageWork) totalContradictsRows(pass *pagePass) bool {
	rows, total := pass.info.Rows, pass.info.Total
	if rows == 0 {
		return w.page.Offset == 0 && total > 0
	}
	return total < w.page.Offset+rows
}

// nextLimit returns how many rows the next page requests: half as many as this one when this one took so long that rows were
// too old, because of the upstream or of the index; twice as many, up to the configured size, when it was quick.
func (w *pageWork) nextLimit(pass *pagePass) int {
	limit, maxAge := w.page.Limit, w.r.c.deps.Writer.MaxBodyAge()
	switch {
	case pass.duration >= maxAge && limit >= 2*minPageSize:
		limit /= 2
	case pass.duration < maxAge/4 && limit < w.r.PageSize:
		limit = min(2*limit, w.r.PageSize)
	}
	if w.r.NonOverlapping && (w.page.Offset+w.page.Limit)%limit != 0 { // pages are numbered there
		return w.page.Limit
	}
	return limit
}

// settle processes the outcomes of a pass. Ids without a final outcome are requested one by one when rereading the page
// would not return them in time: an earlier pass read them and this one did not, or they would be too old again.
func (w *pageWork) settle(ctx context.Context, pass *pagePass, results []core.Result, whole bool) error {
	metrics := w.r.c.cfg.Metrics
	var outcomes [core.OutcomeRejected + 1]int
	retry := core.Code("")
	again := make(map[string]bool)
	for i, res := range results {
		id := pass.ids[i]
		if err := w.settleOne(ctx, id, &res); err != nil {
			return err
		}
		outcomes[res.Outcome]++
		hash := xxhash.Sum64String(id)
		if res.Outcome == core.OutcomeRetry {
			_, again[id] = pass.fresh[hash]
			retry = res.Code
			w.r.pauseOnCode(res.Code)
			w.totals.Retried++
		} else if pass.countOnce(hash) {
			w.totals.AddOutcome(res.Outcome)
		}
	}
	for o, n := range outcomes {
		metrics.addDocuments(w.r.IndexName, core.Outcome(o), n)
	}
	if err := w.settleInvalid(ctx, pass, whole); err != nil {
		return err
	}
	if len(again) == 0 && whole && len(w.unsettled) == 0 {
		return nil
	}
	return w.recordSettled(ctx, pass, again, whole, retry)
}

// settleOne processes the outcome of one document: a success clears its dead letter, a rejection stores one.
func (w *pageWork) settleOne(ctx context.Context, id string, res *core.Result) error {
	org := w.req.Organization
	if w.r.pausesFor(org, id, *res) {
		res.Outcome, res.Code = core.OutcomeRetry, core.CodeOverloaded
		return nil
	}
	switch res.Outcome {
	case core.OutcomeIndexed, core.OutcomeRemoved:
		return w.r.clearDeadLetterUntilStopped(ctx, org, id)
	case core.OutcomeStale:
		if w.r.aheadOfClock(w.msg.Version(), res.CurrentVersion) {
			res.Outcome, res.Code = core.OutcomeRetry, core.CodeConflict
			return nil
		}
		return w.r.clearDeadLetterUntilStopped(ctx, org, id)
	case core.OutcomeRejected:
		return w.r.retryUntilStopped(ctx, "storing a dead letter", func() error {
			return w.r.storeRejected(ctx, w.recordRequest(id), id, *res)
		})
	case core.OutcomeRetry, core.OutcomeMismatch:
	}
	return nil
}

func (r *repository) clearDeadLetterUntilStopped(ctx context.Context, organization, id string) error {
	if !r.c.deps.DeadLetters.Has(r.Code, organization, id) {
		return nil
	}
	return r.retryUntilStopped(ctx, "clearing a dead letter", func() error { return r.clearDeadLetter(ctx, organization, id) })
}

// storeInvalid stores dead letters for the rows that were set aside, and releases their documents.
func (w *pageWork) storeInvalid(ctx context.Context) error {
	for i := range w.invalid {
		row := &w.invalid[i]
		if row.stored {
			continue
		}
		err := w.r.retryUntilStopped(ctx, "storing a dead letter", func() error {
			return w.r.storeDeadLetter(ctx, w.recordRequest(row.letter.RecordID), row.letter)
		})
		if err != nil {
			return err
		}
		row.stored, row.letter.Document = true, nil
	}
	return nil
}

// settleInvalid settles the rows that were set aside, once the page was read completely.
func (w *pageWork) settleInvalid(ctx context.Context, pass *pagePass, whole bool) error {
	if !whole {
		return nil
	}
	if err := w.storeInvalid(ctx); err != nil {
		return err
	}
	for _, row := range w.invalid {
		w.settleID(row.letter.RecordID)
		if pass.countOnce(row.hash) {
			w.totals.Rejected++
		}
	}
	w.r.c.cfg.Metrics.addDocuments(w.r.IndexName, core.OutcomeRejected, len(w.invalid))
	w.invalid = nil
	return nil
}

// recordSettled stores the settled ids for the next pass, and requests one by one those that it would not return.
func (w *pageWork) recordSettled(ctx context.Context, pass *pagePass, again map[string]bool, whole bool, why core.Code) error {
	came := make(map[string]struct{}, len(pass.ids))
	for _, id := range pass.ids {
		if _, late := pass.overdue[id]; !late {
			came[id] = struct{}{}
		}
		if _, open := again[id]; !open {
			w.settleID(id)
		}
	}
	gone := w.unsettled
	w.unsettled = again
	for id, counts := range gone {
		if _, done := w.settled[id]; done {
			continue
		}
		w.unsettled[id] = counts
	}
	switch {
	case why == core.CodeConflict: // a clock was set back; their own Requests take the version after the stored one
		return w.requestUnsettled(ctx, nil)
	case whole:
		return w.requestUnsettled(ctx, came)
	}
	return nil
}

// requestUnsettled publishes a record Request, with the page's version, for each unsettled id that is not in keep.
func (w *pageWork) requestUnsettled(ctx context.Context, keep map[string]struct{}) error {
	requested := 0
	for id, counts := range w.unsettled {
		if _, kept := keep[id]; kept {
			continue
		}
		req := w.recordRequest(id)
		req.AsOf = w.msg.Version()
		if err := w.r.retryUntilStopped(ctx, "publishing a record", func() error { return w.r.c.deps.Requests.PublishUnlessRemovalPending(ctx, req) }); err != nil {
			return err
		}
		delete(w.unsettled, id)
		w.settleID(id)
		if counts {
			w.late = append(w.late, id)
		}
		requested++
	}
	if requested > 0 {
		w.r.log.Info("records of a page are requested one by one", "job_id", w.req.JobID, "organization", w.req.Organization,
			"page", w.page.Number, "rows", w.page.Limit, "records", requested)
	}
	return nil
}

// settleID records that an id is done for this page.
func (w *pageWork) settleID(id string) {
	if w.settled == nil {
		w.settled = make(map[string]struct{}, w.page.Limit)
	}
	w.settled[id] = struct{}{}
}

// recordRequest returns the Request for one record of the page.
func (w *pageWork) recordRequest(id string) core.Request {
	req := w.r.childRequest(w.job, core.ScopeRecord, w.req.Organization)
	req.RecordID, req.Force = id, false
	return req
}
