package page

import (
	"context"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"tutti/consumers/counts"
	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// maxBuffer is the largest buffer for a document that is reused for the next one.
const maxBuffer = 1 << 20

// pass is one pass over the page's rows.
type pass struct {
	w           *work
	ids         []string            // of the records whose documents were added to the ticket, in that order
	documents   []string            // ids of the documents in the ticket, including the records' markers; nil if each record has one
	ends        []int               // by record: the end of its documents
	hashes      []uint64            // hashes of all rows' ids
	excluded    map[string]struct{} // ids of the records that an exclusion rule applies to, whose documents are removed
	invalid     []string            // ids of the records that the list shows as not to be indexed
	fresh       map[uint64]struct{} // those of hashes that the chain did not read before, and that are not counted yet
	overlapRows int                 // rows that the page before also read
	comparison  *comparison         // with the index, nil unless the job compares
	aside       []asideRow          // rows that cannot be documents
	counter     counts.Counter      // of the kinds of its records, nil if they are not counted
	ticket      *bulk.Ticket
	info        core.PageInfo
	joined      bool
	ended       func() // ends the pass for the Pace, nil before it began
	// withoutDocuments counts the records that have no files.
	withoutDocuments int

	sent     time.Time           // when the page was requested; no row is assumed to be younger
	duration time.Duration       // time from sent to the last row, including the waits for the bulk writer
	waited   time.Duration       // waits for the bulk writer
	overdue  map[string]struct{} // ids of rows that are too old to be written, or may be when the page is reread
}

// read streams the page's rows into the bulk writer.
func (w *work) read(ctx context.Context) (*pass, error) {
	rows := w.page.Limit
	if w.organization.member != nil { // most of many organizations are small
		rows = min(rows, memberRows)
	}
	p := &pass{
		w: w, ticket: w.cfg.Writer.Ticket(), joined: len(w.page.Before) == 0,
		ids: make([]string, 0, rows), hashes: make([]uint64, 0, rows), fresh: make(map[uint64]struct{}, rows),
	}
	p.ticket.Expect(rows)
	if state.Compares(w.job, w.cfg.Split != nil) {
		p.comparison = &comparison{pass: p}
	}
	var err error
	p.info, err = w.cfg.Fetcher.Page(ctx, fetch.PageCall{
		Job: w.job, Organization: w.organization.name, Offset: w.page.Offset, Limit: w.page.Limit, Begin: func() error { return p.begin(ctx) },
	}, func(rec core.Record) (bool, error) { return p.addRow(ctx, rec) })
	p.duration = time.Since(p.sent)
	if p.ended != nil {
		p.ended()
	}
	if p.comparison != nil {
		if diffErr := p.comparison.writeDifferent(ctx); err == nil { // also the rows before an error
			err = diffErr
		}
	}
	if err == nil && w.cfg.Sizes.NonOverlapping {
		err = p.checkJoined(ctx)
	}
	if p.withoutDocuments > 0 {
		w.log.WarnContext(ctx, "records without files make no documents", "records", p.withoutDocuments)
	}
	return p, err
}

// begin begins the pass, when its page may be requested: many organizations wait for their turn.
func (p *pass) begin(ctx context.Context) error {
	w := p.w
	if member := w.organization.member; member != nil && member.group.jobEnded(ctx) {
		return loop.ErrJobEnded
	}
	if w.organization.queued {
		w.organization.markRunning(ctx)
	}
	if !w.listing.published {
		p.counter = w.cfg.Kinds.Counter(w.job)
	}
	var err error
	if p.ended, err = w.cfg.Pace.Page(ctx); err != nil {
		return core.WrapError(core.CodeUnavailable, "waiting until a page may be read", err)
	}
	p.sent = time.Now()
	return nil
}

// addRow matches one row of the page with the page before, and adds its record unless that is settled. It reports whether the page before did
// not read the row.
func (p *pass) addRow(ctx context.Context, rec core.Record) (unread bool, err error) {
	w := p.w
	ready := time.Now()
	if err := w.cfg.Pace.Row(ctx); err != nil {
		return false, core.WrapError(core.CodeUnavailable, "waiting until a row may be passed on", err)
	}
	p.waited += time.Since(ready)
	hash := hashOf(rec)
	first, known := len(p.hashes) == 0, slices.Contains(w.page.Before, hash)
	overlap := first && known && !w.cfg.Sizes.NonOverlapping
	if overlap || known && w.page.SteppedBack {
		p.joined = true
	}
	p.hashes = append(p.hashes, hash)
	if known {
		p.overlapRows++
	} else {
		p.fresh[hash] = struct{}{}
	}
	if overlap {
		return false, nil
	}
	counts := p.counter != nil && !known
	if w.ledger.isSettled(rec.ID) { // by an earlier pass, which was not whole
		if counts {
			w.cfg.Kinds.Count(p.counter, rec, w.organization.name)
		}
		return true, nil
	}
	return true, p.addRecord(ctx, rec, hash, counts)
}

// addRecord processes a record that has no outcome yet: it writes its document, or sets the row aside. It counts the kinds of the document if
// counts is set.
func (p *pass) addRecord(ctx context.Context, rec core.Record, hash uint64, counts bool) error {
	w := p.w
	if err := core.ValidKey("id", rec.ID); err != nil {
		return p.setAside(ctx, rec, hash, core.ReasonInvalidID, core.MessageOf(err)+"; fix the record's id at its repository")
	}
	if rec.Organization != w.organization.name {
		w.cfg.Outcomes.Count(core.OutcomeMismatch, 1)
		w.log.InfoContext(ctx, "record belongs to another organization", "record_id", rec.ID)
		return nil
	}
	switch {
	case rec.Excluded != nil:
		p.exclude(rec.ID)
	case !rec.Indexable: // the sweep removes its documents, under the guard
		p.invalid = append(p.invalid, rec.ID)
		if p.comparison != nil {
			return p.comparison.add(ctx, rec.ID, nil)
		}
		return nil
	case rec.TooLarge != nil:
		return p.setAside(ctx, rec, hash, core.ReasonTooLarge, w.cfg.Outcomes.TooLargeHint())
	}
	p.noteOverdue(rec.ID, w.cfg.Writer.MaxBodyAge())
	counts = counts && rec.Excluded == nil
	if w.cfg.Split != nil {
		return p.addDocuments(ctx, rec, hash, counts)
	}
	if rec.Excluded == nil {
		w.buffer = w.cfg.Document(w.buffer[:0], rec)
		if counts {
			p.counter.AddShaped(w.buffer, rec.Shape)
		}
		if p.comparison != nil {
			return p.comparison.add(ctx, rec.ID, w.buffer)
		}
	}
	p.ids = append(p.ids, rec.ID)
	err := p.add(ctx, rec, core.Write{Op: core.OpIndex, ID: rec.ID, Document: w.buffer, Plain: rec.Plain})
	if cap(w.buffer) > maxBuffer {
		w.buffer = nil
	}
	return err
}

// addDocuments adds the documents of a record to the ticket, then its marker (outcome.MarkerID), and counts their kinds. The sweep finds the
// documents of an excluded record that cannot be split.
func (p *pass) addDocuments(ctx context.Context, rec core.Record, hash uint64, counts bool) error {
	if counts {
		p.counter.Record()
	}
	before := len(p.documents)
	var addErr error
	err := p.w.cfg.Split(rec, func(id string, document []byte) error {
		p.documents = append(p.documents, id)
		if counts {
			p.counter.Add(document)
		}
		addErr = p.add(ctx, rec, core.Write{Op: core.OpIndex, ID: id, Document: document})
		return addErr
	})
	if err != nil && addErr == nil && rec.Excluded == nil { // before any document
		return p.setAside(ctx, rec, hash, core.ReasonRejected, core.MessageOf(err)+"; fix the record, then retry")
	}
	if addErr != nil {
		return addErr
	}
	if len(p.documents) == before && rec.Excluded == nil {
		p.withoutDocuments++
	}
	if err := p.add(ctx, rec, core.Write{Op: core.OpDelete, ID: outcome.MarkerID(rec.ID)}); err != nil {
		return err
	}
	p.ids, p.documents = append(p.ids, rec.ID), append(p.documents, rec.ID)
	p.ends = append(p.ends, len(p.documents))
	return nil
}

// add adds a write of the run's version for a record to the ticket. A document of an excluded record is removed, also while a rebuild
// fills another index: there it would be missing.
func (p *pass) add(ctx context.Context, rec core.Record, write core.Write) error {
	repository, index := &p.w.cfg.Repository, p.w.index
	if rec.Excluded != nil {
		index, write.Op, write.Document = repository.IndexName, core.OpDelete, nil
	}
	write.Version, write.FetchedAt, write.Repository = p.w.version, p.sent, repository.Code
	ready := time.Now()
	err := p.w.cfg.Writer.Add(ctx, p.ticket, index, write)
	p.waited += time.Since(ready)
	return err
}

// exclude records that an exclusion rule applies to a record.
func (p *pass) exclude(id string) {
	if p.excluded == nil {
		p.excluded = make(map[string]struct{})
	}
	p.excluded[id] = struct{}{}
}

// noteOverdue records a row that arrived late. A row that waited for the index may be in time when the page is reread, as
// the rows before it need not be written then. A row for which the upstream used half of the maximum age of a body may not.
func (p *pass) noteOverdue(id string, maxAge time.Duration) {
	if time.Since(p.sent)-p.waited < maxAge/2 {
		return
	}
	if p.overdue == nil {
		p.overdue = make(map[string]struct{})
	}
	p.overdue[id] = struct{}{}
}

// checkJoined reads the row before the page by itself: it is the last one of the page before, unless rows moved in between.
func (p *pass) checkJoined(ctx context.Context) error {
	page := p.w.page
	if len(page.Before) == 0 {
		return nil
	}
	return p.w.cfg.Fetcher.Row(ctx, p.w.organization.name, page.Offset-1, func(rec core.Record) error {
		p.joined = page.Before[len(page.Before)-1] == hashOf(rec)
		return nil
	})
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
