package record

import (
	"context"
	"errors"
	"time"

	"tutti/internal/core"
)

// errSweepCancelled ends a Request of a sweep whose job was cancelled.
var errSweepCancelled = errors.New("the job of the sweep was cancelled")

// writer writes and removes the documents of a repository's records.
type writer struct{ Config }

// writeVersion is the version that a record is written with. It is strict when it follows a stored version that was read
// before the record was fetched: when several processes do so, only the first write succeeds, and the others fetch again.
type writeVersion struct {
	version core.Version
	strict  bool
}

// execute executes req: it fetches the record and writes or removes its document with the version at. It returns the
// organization under which the record was settled, and the result.
func (w *writer) execute(ctx context.Context, req core.Request, at writeVersion) (string, core.Result, error) {
	if req.Kind == core.KindRemove {
		result, err := w.removeRequested(ctx, req, at)
		return req.Organization, result, err
	}
	rec, fetchedAt, err := w.fetch(ctx, req)
	switch {
	case err == nil:
		result, err := w.writeFetched(ctx, rec, fetchedAt, at)
		return req.Organization, result, err
	case core.CodeOf(err) == core.CodeAbsent || errors.Is(err, core.ErrOtherOrganization):
		return w.settleMoved(ctx, req, at, rec.Organization, err)
	default:
		return req.Organization, core.Result{}, err
	}
}

// writeFetched writes a fetched record, or removes its document when the record is not indexable.
func (w *writer) writeFetched(ctx context.Context, rec core.Record, fetchedAt time.Time, at writeVersion) (core.Result, error) {
	if !rec.Indexable {
		stored, err := w.ownerOf(ctx, rec.ID)
		if err != nil || stored.foreign {
			return mismatch(), err
		}
		return w.removeDocument(ctx, rec.ID, at)
	}
	if rec.TooLarge != nil {
		return core.Result{Outcome: core.OutcomeRejected, Code: core.CodeTooLarge, Rejected: rec.TooLarge}, nil
	}
	defer rec.Release()
	write := core.Write{Op: core.OpIndex, ID: rec.ID, Version: at.version, Strict: at.strict, FetchedAt: fetchedAt}
	write.Document, rec.Body = w.Document(nil, rec), nil
	return w.writeOne(ctx, write, rec.Release)
}

// removeDocument deletes a document, also when none is stored: the version of the delete keeps an older write in flight from
// restoring the document.
func (w *writer) removeDocument(ctx context.Context, id string, at writeVersion) (core.Result, error) {
	write := core.Write{Op: core.OpDelete, ID: id, Version: at.version, Strict: at.strict, FetchedAt: time.Now()}
	return w.writeOne(ctx, write, func() {})
}

// fetch fetches req's record, unless its sweep was cancelled.
func (w *writer) fetch(ctx context.Context, req core.Request) (core.Record, time.Time, error) {
	return w.Fetcher.Record(ctx, req, func() error { return w.checkSweepCancelled(ctx, req) })
}

// checkSweepCancelled returns errSweepCancelled for a Request of a sweep whose job was cancelled. The Requests of a job that
// ended otherwise are still executed.
func (w *writer) checkSweepCancelled(ctx context.Context, req core.Request) error {
	if req.Cause != core.CauseSweep {
		return nil
	}
	job, err := w.Jobs.Get(ctx, req.JobID)
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return nil
	case err == nil && job.State == core.JobCancelled:
		return errSweepCancelled
	}
	return err
}

// writeOne writes one document, and calls added once the Writer has copied its bytes.
func (w *writer) writeOne(ctx context.Context, write core.Write, added func()) (core.Result, error) {
	ticket := w.Writer.Ticket()
	if err := w.Writer.Add(ctx, ticket, w.Repository.IndexName, write); err != nil {
		return core.Result{}, err
	}
	write.Document = nil
	added()
	ticket.Seal()
	results, err := ticket.Wait(ctx)
	if err != nil {
		return core.Result{}, err
	}
	return results[0], nil
}
