package run

import (
	"time"

	"github.com/cespare/xxhash/v2"

	"tutti/internal/bulk"
	"tutti/internal/core"
)

// pagePass is one pass over the page's rows.
type pagePass struct {
	ids         []string            // of the documents added to the ticket, in that order
	hashes      []uint64            // hashes of all rows' ids
	fresh       map[uint64]struct{} // those of hashes that the chain did not read before, and that are not counted yet
	overlapRows int                 // rows that the page before also read
	ticket      *bulk.Ticket
	info        core.PageInfo
	joined      bool
	skip        int // leading rows that the page before has read

	sent     time.Time           // when the page was requested; no row is assumed to be younger
	duration time.Duration       // time from sent to the last row, including the waits for the bulk writer
	waited   time.Duration       // waits for the bulk writer
	overdue  map[string]struct{} // ids of rows that are too old to be written, or may be when the page is reread
}

// noteOverdue records a row that arrived late. A row that waited for the index may be in time when the page is reread, as
// the rows before it need not be written then. A row for which the upstream used half of the maximum age of a body may not.
func (p *pagePass) noteOverdue(id string, maxAge time.Duration) {
	if time.Since(p.sent)-p.waited < maxAge/2 {
		return
	}
	if p.overdue == nil {
		p.overdue = make(map[string]struct{})
	}
	p.overdue[id] = struct{}{}
}

// lastIDs returns the hashes that the next page is matched with.
func (p *pagePass) lastIDs() []uint64 { return p.hashes[max(0, len(p.hashes)-idsCarried):] }

// countOnce reports whether the outcome of a row counts: it is the first one of an id that is new to the chain.
func (p *pagePass) countOnce(hash uint64) bool {
	_, fresh := p.fresh[hash]
	delete(p.fresh, hash)
	return fresh
}

// hashOf returns the hash that identifies a row: that of its id, or of the whole row when it has none.
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
