package run

import (
	"context"

	"tutti/consumers/fetch"
	"tutti/internal/core"
)

// growAfter is how many pages have at most the size that the upstream returned, after it did not return a larger one.
const growAfter = 16

// requestLess makes the page smaller if the upstream may then return it, and waits until it may be requested. It returns true when the page
// is to be read again. A page that is not answered is requested once more before, unless the chain has found already that pages may be
// too large.
func (w *pageWork) requestLess(ctx context.Context, readErr error) (again bool, err error) {
	unanswered := fetch.Unanswered(readErr)
	limit := w.smallerLimit(w.page.Offset, w.page.Limit)
	if w.nextPublished || limit == w.page.Limit || unanswered && w.failures < 2 && w.page.GrowFrom == 0 || !w.Fetcher.AsksTooMuch(ctx, readErr) {
		return false, nil
	}
	w.log.InfoContext(ctx, "a page is requested again with fewer rows", "job_id", w.req.JobID, "organization", w.req.Organization,
		"page", w.page.Number, "rows", w.page.Limit, "fewer_rows", limit, "err", readErr)
	if w.page.SteppedBack && len(w.page.Before) > 0 { // it must reach the first row of the page before it
		w.page.Offset += w.page.Limit - limit
	}
	w.page.Limit, w.page.GrowFrom = limit, w.page.Number+growAfter
	// The smaller page ends before some of the rows that were read: they are new to the next one.
	w.totals = core.Totals{Retried: w.totals.Retried}
	w.settled, w.unsettled, w.late, w.drifted = nil, nil, nil, nil
	delay := w.loop.Delay(w.failures, readErr)
	w.failures = 0
	if !unanswered {
		return true, nil
	}
	ended, err := w.jobs.Sleep(ctx, w.job.ID, delay)
	if ended {
		err = &pageError{cause: readErr}
	}
	return true, err
}

// smallerLimit returns at most half of a limit with which a page can begin at an offset, or the limit itself if there is none.
func (r *repository) smallerLimit(offset, limit int) int {
	if !r.NonOverlapping {
		return min(limit, max(limit/2, 2)) // pages overlap by one row
	}
	smaller := max(limit/2, 1)
	for offset%smaller != 0 { // pages are numbered
		smaller--
	}
	return smaller
}

// largerLimit returns up to twice a limit, if a page can begin at an offset with it, or the limit itself.
func (r *repository) largerLimit(offset, limit int) int {
	larger := max(limit, min(2*limit, r.PageSize))
	if r.NonOverlapping && offset%larger != 0 {
		return limit
	}
	return larger
}
