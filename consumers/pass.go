package consumers

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"tutti/internal/bulk"
	"tutti/internal/core"
)

// pagePass is one pass over the page's rows.
type pagePass struct {
	ids         []string            // of the documents added to the ticket, in its order
	hashes      []uint64            // of all rows' ids
	fresh       map[uint64]struct{} // those of hashes that the chain did not read before, and that have not counted
	overlapRows int                 // rows that the page before ended with
	ticket      *bulk.Ticket
	info        core.PageInfo
	joined      bool
	skip        int // rows that the page before has read

	sent     time.Time           // when the page was requested: nothing says that a row is younger
	duration time.Duration       // how long the page took since, the waits for room in the bulk writer included
	waited   time.Duration       // for room in the bulk writer
	overdue  map[string]struct{} // ids of rows that come too late to be written, or that might if the page is read once more
}

// noteOverdue notes how late a row comes. One that waited for the index may come in time when the page is read again, as those
// before it need not be written then. One for which the upstream alone took half of the time that a body may wait may not.
func (p *pagePass) noteOverdue(id string, maxAge time.Duration) {
	if time.Since(p.sent)-p.waited < maxAge/2 {
		return
	}
	if p.overdue == nil {
		p.overdue = make(map[string]struct{})
	}
	p.overdue[id] = struct{}{}
}

// lastIDs returns what the next page is joined to.
func (p *pagePass) lastIDs() []uint64 { return p.hashes[max(0, len(p.hashes)-idsCarried):] }

// countOnce reports whether the outcome of a row counts: it is the first one of an id that is new to the chain.
func (p *pagePass) countOnce(hash uint64) bool {
	_, fresh := p.fresh[hash]
	delete(p.fresh, hash)
	return fresh
}

// hashOf returns the hash that stands for a row: that of its id, or of the whole row where it has none.
func hashOf(rec core.Record) uint64 {
	switch {
	case rec.ID != "":
		return xxhash.Sum64String(rec.ID)
	case rec.TooLarge != nil:
		return xxhash.Sum64String(rec.TooLarge.SHA256)
	default:
		return xxhash.Sum64(rec.Body)
	}
}

// excludeEarlierIDs removes from pass.fresh what earlier pages of the chain have read. A page that follows the one before in the
// list has nothing of theirs but the overlap, so all of them are searched only once rows have moved, and on the pages
// 1, 2, 4, 8 …, which keeps the cost below that of the list itself.
func (w *pageWork) excludeEarlierIDs(ctx context.Context, pass *pagePass) error {
	w.moved = w.page.Moved || !pass.joined || pass.overlapRows > 1
	n := w.page.Number
	if n == 0 || len(pass.fresh) == 0 || !w.moved && n&(n-1) != 0 {
		return nil
	}
	ids := slices.Collect(maps.Keys(pass.fresh))
	return w.r.retryUntilStopped(ctx, "searching the noted ids", func() error {
		noted, err := w.r.c.deps.Pages.NotedBefore(ctx, w.job.ID, w.req.Organization, w.reread, n, ids)
		for id := range noted {
			delete(pass.fresh, id)
			w.moved = true
		}
		return err
	})
}
