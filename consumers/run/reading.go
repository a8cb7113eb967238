package run

import (
	"context"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// maxScratch is the largest buffer for a document that is reused for the next one.
const maxScratch = 1 << 20

// maxInvalidRows is how many invalid rows are buffered with their documents, up to core.MaxDeadLetterBytes each, before they
// are stored as dead letters.
const maxInvalidRows = 16

// pagePass is one pass over the page's rows.
type pagePass struct {
	ids         []string            // of the records whose documents were added to the ticket, in that order
	documents   []string            // ids of the documents in the ticket, including the records' markers; nil if each record has one
	ends        []int               // by record: the end of its documents
	hashes      []uint64            // hashes of all rows' ids
	excluded    map[string]struct{} // ids of the records that an exclusion rule applies to, whose documents are removed
	notValid    []string            // ids of the records that the list shows as not to be indexed
	fresh       map[uint64]struct{} // those of hashes that the chain did not read before, and that are not counted yet
	overlapRows int                 // rows that the page before also read
	comparison  pageComparison      // of a job that compares
	counter     KindCounter         // of the kinds of its records, nil if they are not counted
	counts      bool                // the kinds of the current record are counted
	ticket      *bulk.Ticket
	info        core.PageInfo
	joined      bool
	skip        int // leading rows that the page before has read

	sent     time.Time           // when the page was requested; no row is assumed to be younger
	duration time.Duration       // time from sent to the last row, including the waits for the bulk writer
	waited   time.Duration       // waits for the bulk writer
	overdue  map[string]struct{} // ids of rows that are too old to be written, or may be when the page is reread
}

// invalidRow is a row that cannot be a document, with the hash of its id.
type invalidRow struct {
	hash   uint64
	letter core.DeadLetter
	stored bool
}

// read streams the page's rows into the bulk writer.
func (w *pageWork) read(ctx context.Context) (*pagePass, error) {
	pass := &pagePass{ticket: w.Writer.Ticket(), joined: len(w.page.Before) == 0}
	rows := w.page.Limit
	if w.member != nil { // most of many organizations are small
		rows = min(rows, memberRows)
	}
	pass.ticket.Expect(rows)
	pass.ids = make([]string, 0, rows)
	pass.hashes = make([]uint64, 0, rows)
	pass.fresh = make(map[uint64]struct{}, rows)
	release, err := w.Fetcher.AcquirePage(ctx)
	if err != nil {
		return pass, err
	}
	defer release()
	if w.member != nil && w.member.group.jobEnded(ctx) { // many organizations wait for their turn
		return pass, loop.ErrJobEnded
	}
	if err := w.Fetcher.ReadTypes(ctx, w.job); err != nil {
		w.Fetcher.CountPage(0, err)
		return pass, err
	}
	w.markRunning(ctx)
	if !w.nextPublished {
		pass.counter = w.counter(w.job)
	}
	w.invalid, w.withoutDocuments = w.invalid[:0], 0
	pass.sent = time.Now()
	pass.info, err = w.Fetcher.Page(ctx, w.req.Organization, w.page.Offset, w.page.Limit, func(rec core.Record) error {
		return w.addRow(ctx, pass, rec)
	})
	pass.duration = time.Since(pass.sent)
	if diffErr := w.writeDifferent(ctx, pass); err == nil { // also the rows before an error
		err = diffErr
	}
	if err == nil && w.NonOverlapping {
		err = w.checkJoined(ctx, pass)
	}
	if w.withoutDocuments > 0 {
		w.log.WarnContext(ctx, "records without files make no documents", "job_id", w.req.JobID, "organization", w.req.Organization,
			"page", w.page.Number, "records", w.withoutDocuments)
	}
	w.Fetcher.CountPage(len(pass.hashes)-pass.skip, err)
	return pass, err
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
	if w.skipSettled(pass, rec, known) {
		return nil
	}
	if err := core.ValidKey("id", rec.ID); err != nil {
		return w.setAside(ctx, rec, hash, core.ReasonInvalidID, core.MessageOf(err)+"; fix the record's id at its repository")
	}
	if rec.Organization != w.req.Organization {
		w.Outcomes.Count(core.OutcomeMismatch, 1)
		w.log.InfoContext(ctx, "record belongs to another organization", "organization", w.req.Organization, "record_id", rec.ID,
			"job_id", w.req.JobID)
		return nil
	}
	switch {
	case rec.Excluded != nil:
		pass.exclude(rec.ID)
	case !rec.Indexable: // the sweep removes its documents, under the guard
		pass.notValid = append(pass.notValid, rec.ID)
		if w.compares(w.job) {
			return w.compareRow(ctx, pass, rec.ID, nil)
		}
		return nil
	case rec.TooLarge != nil:
		return w.setAside(ctx, rec, hash, core.ReasonTooLarge, w.Outcomes.TooLargeHint())
	}
	pass.noteOverdue(rec.ID, w.Writer.MaxBodyAge())
	pass.beginCount(rec, known)
	if w.Split != nil {
		return w.addDocuments(ctx, pass, rec, hash)
	}
	if rec.Excluded == nil {
		w.scratch = w.Document(w.scratch[:0], rec)
		if pass.counts {
			pass.counter.AddShaped(w.scratch, rec.Shape)
		}
		if w.compares(w.job) {
			return w.compareRow(ctx, pass, rec.ID, w.scratch)
		}
	}
	pass.ids = append(pass.ids, rec.ID)
	err := w.add(ctx, pass, rec, core.Write{Op: core.OpIndex, ID: rec.ID, Document: w.scratch, Plain: rec.Plain})
	if cap(w.scratch) > maxScratch {
		w.scratch = nil
	}
	return err
}

// addDocuments adds the documents of a record to the ticket, then its marker (outcome.MarkerID). The sweep finds the documents of an
// excluded record that cannot be split.
func (w *pageWork) addDocuments(ctx context.Context, pass *pagePass, rec core.Record, hash uint64) error {
	if pass.counts {
		pass.counter.Record()
	}
	before := len(pass.documents)
	var addErr error
	err := w.Split(rec, func(id string, document []byte) error {
		pass.documents = append(pass.documents, id)
		if pass.counts {
			pass.counter.Add(document)
		}
		addErr = w.add(ctx, pass, rec, core.Write{Op: core.OpIndex, ID: id, Document: document})
		return addErr
	})
	if err != nil && addErr == nil && rec.Excluded == nil { // before any document
		return w.setAside(ctx, rec, hash, core.ReasonRejected, core.MessageOf(err)+"; fix the record, then retry")
	}
	if addErr != nil {
		return addErr
	}
	if len(pass.documents) == before && rec.Excluded == nil {
		w.withoutDocuments++
	}
	if err := w.add(ctx, pass, rec, core.Write{Op: core.OpDelete, ID: outcome.MarkerID(rec.ID)}); err != nil {
		return err
	}
	pass.ids, pass.documents = append(pass.ids, rec.ID), append(pass.documents, rec.ID)
	pass.ends = append(pass.ends, len(pass.documents))
	return nil
}

// add adds a write of the run's version for a record to the ticket. A document of an excluded record is removed, also while a rebuild
// fills another index: there it would be missing.
func (w *pageWork) add(ctx context.Context, pass *pagePass, rec core.Record, write core.Write) error {
	index := w.indexOf(w.job)
	if rec.Excluded != nil {
		index, write.Op, write.Document = w.Repository.IndexName, core.OpDelete, nil
	}
	write.Version, write.FetchedAt, write.Repository = versionOf(w.job, w.msg), pass.sent, w.Repository.Code
	ready := time.Now()
	err := w.Writer.Add(ctx, pass.ticket, index, write)
	pass.waited += time.Since(ready)
	return err
}

// exclude records that an exclusion rule applies to a record.
func (p *pagePass) exclude(id string) {
	if p.excluded == nil {
		p.excluded = make(map[string]struct{})
	}
	p.excluded[id] = struct{}{}
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
		Document: kept.Bytes, Size: kept.Size, SHA256: kept.SHA256, Truncated: kept.Truncated, Version: w.msg.Version(),
	}})
	if len(w.invalid)%maxInvalidRows != 0 {
		return nil
	}
	return w.storeInvalid(ctx)
}

// checkJoined reads the row before the page by itself: it is the last one of the page before, unless rows moved in between.
func (w *pageWork) checkJoined(ctx context.Context, pass *pagePass) error {
	if len(w.page.Before) == 0 {
		return nil
	}
	return w.Fetcher.Row(ctx, w.req.Organization, w.page.Offset-1, func(rec core.Record) error {
		pass.joined = w.page.Before[len(w.page.Before)-1] == hashOf(rec)
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

// storeInvalid stores dead letters for the rows that were set aside, and releases their documents.
func (w *pageWork) storeInvalid(ctx context.Context) error {
	for i := range w.invalid {
		row := &w.invalid[i]
		if row.stored {
			continue
		}
		err := w.loop.RetryUntilStopped(ctx, "storing a dead letter", func() error {
			return w.Outcomes.StoreDeadLetter(ctx, w.recordRequest(row.letter.RecordID), row.letter)
		})
		if err != nil {
			return err
		}
		row.stored, row.letter.Document = true, nil
	}
	return nil
}
