package page

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

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

// listing is what a page has shown of its list. What follows the page is decided once, when it was first read completely.
type listing struct {
	// reading counts how often the list was restarted before this page was admitted.
	reading   int
	total     int  // rows of the whole list, as last returned
	counted   bool // the page had a total; a page past the end of the list has none
	published bool // the next page is published, or there is none
	verdict
	// hashes are those of the page's rows, set only for an organization of a group in a job that compares.
	hashes []uint64
	// invalid are the hashes of the records that the page shows as not to be indexed.
	invalid []uint64
	// kinds are those of the page's records.
	kinds core.Kinds
}

// verdict is what the first complete pass over a page says of the list.
type verdict struct {
	last    bool // no page follows
	shifted bool // the list shifted more often than maxStepsBack
	repeats bool // the list repeats rows instead of continuing, or its total contradicts its rows
}

// follow publishes the page that follows, once, before the outcomes of the documents are awaited; whole is false when the page was not read to
// its end. It removes from p.fresh the ids that earlier pages of the chain have read.
func (w *work) follow(ctx context.Context, p *pass, whole bool) error {
	moved, err := w.excludeEarlierIDs(ctx, p)
	if err != nil || !whole {
		return err
	}
	l := &w.listing
	l.total, l.counted = p.info.Total, p.info.Rows > 0 || w.page.Offset == 0
	if l.published {
		return nil
	}
	w.ledger.totals.Fetched += int64(len(p.fresh))
	if p.counter != nil {
		l.kinds = p.counter.Take(int64(len(p.fresh)))
		w.cfg.Kinds.Release(p.counter)
	}
	var next *core.Page
	next, l.verdict = following(w.page, seen{
		PageInfo: p.info, fresh: len(p.fresh), joined: p.joined, moved: moved, last: p.hashes[max(0, len(p.hashes)-idsCarried):],
		overlapping: !w.cfg.Sizes.NonOverlapping, limit: w.nextLimit(p.duration),
	})
	if err := w.note(ctx, p, next != nil); err != nil {
		return err
	}
	if next != nil {
		req := state.Child(w.job, core.ScopePage, w.organization.name)
		req.Page, req.Traceparent = next, w.message.Request().Traceparent // beside this page in the trace, not below it
		err := w.cfg.Loop.RetryUntilStopped(ctx, "publishing the next page", func() error { return w.cfg.Requests.Publish(ctx, req) })
		if err != nil {
			return err
		}
	}
	l.published = true
	return nil
}

// excludeEarlierIDs removes from p.fresh the ids that earlier pages of the chain have read, and reports whether rows have moved. A page that
// directly follows the one before shares only the overlap with it. So all of them are searched only once rows have moved, and on the pages 1,
// 2, 4, 8 …, which keeps the cost below that of the list itself.
func (w *work) excludeEarlierIDs(ctx context.Context, p *pass) (moved bool, err error) {
	moved = w.page.Moved || !p.joined || p.overlapRows > 1
	n := w.page.Number
	if n == 0 || len(p.fresh) == 0 || !moved && n&(n-1) != 0 {
		return moved, nil
	}
	ids := slices.Collect(maps.Keys(p.fresh))
	err = w.cfg.Loop.RetryUntilStopped(ctx, "searching the stored ids of the pages", func() error {
		noted, err := w.cfg.Notes.IDsOnEarlierPages(ctx, w.job.ID, w.organization.name, w.listing.reading, n, ids)
		for id := range noted {
			delete(p.fresh, id)
			moved = true
		}
		return err
	})
	return moved, err
}

// note stores what the following pages and the end of the list read of the page, unless its group does, and settles the records that it shows
// as not to be indexed.
func (w *work) note(ctx context.Context, p *pass, goesOn bool) error {
	compares := state.Compares(w.job, w.cfg.Split != nil)
	notes := goesOn || w.cfg.Sizes.NonOverlapping || compares
	if w.organization.member != nil && (notes || len(p.invalid) > 0) {
		if notes = goesOn || !w.fitsMember(p); notes {
			if err := w.leaveGroup(ctx); err != nil {
				return err
			}
		} else if compares {
			w.listing.hashes = p.hashes
		}
	}
	w.listing.invalid = make([]uint64, 0, len(p.invalid))
	for _, id := range p.invalid {
		w.listing.invalid = append(w.listing.invalid, xxhash.Sum64String(id))
		w.ledger.settle(id)
	}
	hashes := p.hashes
	if !notes {
		hashes = nil
	}
	// With an epoch, other ids may be stored of the page, as it was before its list was restarted.
	return w.store(ctx, hashes, w.organization.member == nil && (len(p.invalid) > 0 || w.page.Epoch > 0))
}

// store stores the ids of a page and, if invalid is set, which of its records are not to be indexed.
func (w *work) store(ctx context.Context, hashes []uint64, invalid bool) error {
	job, name, l, number := w.job.ID, w.organization.name, &w.listing, w.page.Number
	return w.cfg.Loop.RetryUntilStopped(ctx, "storing the ids of a page", func() error {
		if invalid {
			if err := w.cfg.Notes.NoteInvalid(ctx, job, name, l.reading, number, l.invalid); err != nil {
				return err
			}
		}
		if len(hashes) == 0 {
			return nil
		}
		return w.cfg.Notes.NotePage(ctx, job, name, l.reading, number, hashes)
	})
}

// nextLimit returns how many rows the next page requests: half as many as this one when this one took so long that rows were
// too old, because of the upstream or of the index; twice as many, up to the configured size, when it was quick, unless a larger page was
// not returned lately.
func (w *work) nextLimit(took time.Duration) int {
	limit, maxAge := w.page.Limit, w.cfg.Writer.MaxBodyAge()
	switch end := w.page.Offset + limit; {
	case took >= maxAge:
		if smaller := w.cfg.Sizes.Smaller(end, limit); smaller >= minPageSize {
			return smaller
		}
	case took < maxAge/4 && w.page.Number+1 >= w.page.GrowFrom:
		return w.cfg.Sizes.Larger(end, limit)
	}
	return limit
}

// seen is what a complete pass has seen of a page.
type seen struct {
	core.PageInfo
	fresh         int // rows that the chain did not read before
	joined, moved bool
	last          []uint64 // the hashes that the next page is matched with
	overlapping   bool     // the pages of the list overlap
	limit         int      // of the next page
}

// following returns the page that follows one, nil after the last one. A page that does not match the one before is followed by one
// that steps back: the list has shifted, and rows may have moved into what was already read. A full page is never the last one: a
// repository counts after it has read the rows, and a row removed in between makes the next one fall out of page and total.
func following(page core.Page, s seen) (*core.Page, verdict) {
	next := &core.Page{
		Number: page.Number + 1, Epoch: page.Epoch, Limit: s.limit, GrowFrom: page.GrowFrom, StepsBack: page.StepsBack,
		Read: page.Read + s.fresh, Moved: s.moved, Repeats: page.Repeats && s.fresh == 0,
	}
	end := page.Offset + s.Rows
	if s.fresh == 0 && end > next.Read && end < s.Total {
		// An unchanged list has as many distinct ids up to here as rows. After a shift, the list is read on from a step
		// back.
		if !s.overlapping || s.joined || page.Repeats {
			return nil, verdict{last: true, repeats: true}
		}
		next.Repeats = true
	}
	if s.contradictsRows(page) {
		return nil, verdict{last: true, repeats: true}
	}
	ends := s.Rows == 0 || s.Rows < page.Limit && end >= s.Total
	switch {
	case !s.overlapping && ends:
		return nil, verdict{last: true, shifted: !s.joined}
	case !s.overlapping:
		next.Offset, next.Before = page.Offset+page.Limit, s.last
		return next, verdict{shifted: !s.joined}
	case !s.joined && page.StepsBack < maxStepsBack:
		next.StepsBack++
		next.SteppedBack = true
		next.Limit = page.Limit // it must reach the first row of this page
		next.Offset = max(0, page.Offset-page.Limit+1)
		if next.Offset > 0 {
			next.Before = page.Before
		}
		return next, verdict{}
	case ends:
		return nil, verdict{last: true, shifted: !s.joined}
	}
	next.Offset = end
	if s.Rows > 1 {
		next.Offset = end - 1
		next.Before = s.last
	}
	return next, verdict{shifted: !s.joined}
}

// contradictsRows reports whether the total of a list contradicts the rows of a page, so that the list's end is
// unknown.
func (s seen) contradictsRows(page core.Page) bool {
	if s.Rows == 0 {
		return page.Offset == 0 && s.Total > 0
	}
	return s.Total < page.Offset+s.Rows
}
