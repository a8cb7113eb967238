package run

import (
	"context"
	"maps"
	"slices"

	"tutti/consumers/state"
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

// excludeEarlierIDs removes from pass.fresh the ids that earlier pages of the chain have read. A page that directly follows
// the one before shares only the overlap with it. So all of them are searched only once rows have moved, and on the pages 1,
// 2, 4, 8 …, which keeps the cost below that of the list itself.
func (w *pageWork) excludeEarlierIDs(ctx context.Context, pass *pagePass) error {
	w.moved = w.page.Moved || !pass.joined || pass.overlapRows > 1
	n := w.page.Number
	if n == 0 || len(pass.fresh) == 0 || !w.moved && n&(n-1) != 0 {
		return nil
	}
	ids := slices.Collect(maps.Keys(pass.fresh))
	return w.loop.RetryUntilStopped(ctx, "searching the stored ids of the pages", func() error {
		noted, err := w.Pages.IDsOnEarlierPages(ctx, w.job.ID, w.req.Organization, w.reread, n, ids)
		for id := range noted {
			delete(pass.fresh, id)
			w.moved = true
		}
		return err
	})
}

// publishNext publishes the following page, once, before waiting for the outcomes of the documents.
func (w *pageWork) publishNext(ctx context.Context, pass *pagePass) error {
	w.total, w.counted = pass.info.Total, pass.info.Rows > 0 || w.page.Offset == 0
	if w.nextPublished {
		return nil
	}
	w.totals.Fetched += int64(len(pass.fresh))
	if pass.counter != nil {
		w.kinds = pass.counter.Take(int64(len(pass.fresh)))
	}
	next := w.nextPage(pass)
	notes := next != nil || w.NonOverlapping || w.compares(w.job)
	if w.member != nil && (notes || len(pass.notValid) > 0) {
		if notes = next != nil || !w.fitsMember(pass); notes {
			if err := w.leaveGroup(ctx); err != nil {
				return err
			}
		} else if w.compares(w.job) {
			w.hashes = pass.hashes
		}
	}
	if err := w.noteInvalid(ctx, pass); err != nil {
		return err
	}
	if notes {
		if err := w.notePage(ctx, pass.hashes); err != nil {
			return err
		}
	}
	if next != nil {
		req := state.Child(w.job, core.ScopePage, w.req.Organization)
		req.Page, req.Traceparent = next, w.req.Traceparent // beside this page in the trace, not below it
		err := w.loop.RetryUntilStopped(ctx, "publishing the next page", func() error { return w.Requests.Publish(ctx, req) })
		if err != nil {
			return err
		}
	}
	w.last, w.nextPublished = next == nil, true
	return nil
}

// notePage stores the ids of a page, for the following pages and for rereadIfShifted.
func (w *pageWork) notePage(ctx context.Context, hashes []uint64) error {
	if len(hashes) == 0 {
		return nil
	}
	return w.loop.RetryUntilStopped(ctx, "storing the ids of a page", func() error {
		return w.Pages.NotePage(ctx, w.job.ID, w.req.Organization, w.reread, w.page.Number, hashes)
	})
}

// nextPage returns the following page, nil after the last one. A page that does not match the one before is followed by one
// that steps back: the list has shifted, and rows may have moved into what was already read. A full page is never the last one: a
// repository counts after it has read the rows, and a row removed in between makes the next one fall out of page and total.
func (w *pageWork) nextPage(pass *pagePass) *core.Page {
	next := &core.Page{
		Number: w.page.Number + 1, Epoch: w.page.Epoch, Limit: w.nextLimit(pass), GrowFrom: w.page.GrowFrom, StepsBack: w.page.StepsBack,
		Read: w.page.Read + len(pass.fresh), Moved: w.moved, Repeats: w.page.Repeats && len(pass.fresh) == 0,
	}
	rows, end := pass.info.Rows, w.page.Offset+pass.info.Rows
	if len(pass.fresh) == 0 && end > next.Read && end < pass.info.Total {
		// An unchanged list has as many distinct ids up to here as rows. After a shift, the list is read on from a step
		// back.
		if w.repeats = w.NonOverlapping || pass.joined || w.page.Repeats; w.repeats {
			return nil
		}
		next.Repeats = true
	}
	if w.repeats = w.totalContradictsRows(pass); w.repeats {
		return nil
	}
	if w.NonOverlapping {
		w.shifted = !pass.joined
		if rows == 0 || rows < w.page.Limit && end >= pass.info.Total {
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
	if rows == 0 || rows < w.page.Limit && end >= pass.info.Total {
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
// too old, because of the upstream or of the index; twice as many, up to the configured size, when it was quick, unless a larger page was
// not returned lately.
func (w *pageWork) nextLimit(pass *pagePass) int {
	limit, maxAge := w.page.Limit, w.Writer.MaxBodyAge()
	switch end := w.page.Offset + limit; {
	case pass.duration >= maxAge:
		if smaller := w.smallerLimit(end, limit); smaller >= minPageSize {
			return smaller
		}
	case pass.duration < maxAge/4 && w.page.Number+1 >= w.page.GrowFrom:
		return w.largerLimit(end, limit)
	}
	return limit
}

// lastIDs returns the hashes that the next page is matched with.
func (p *pagePass) lastIDs() []uint64 { return p.hashes[max(0, len(p.hashes)-idsCarried):] }
