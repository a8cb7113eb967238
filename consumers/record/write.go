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
type writer struct {
	Config
	documents documents
}

func newWriter(cfg Config) *writer {
	w := &writer{Config: cfg}
	if w.documents = (single{&w.Config}); cfg.Split != nil {
		w.documents = &several{Config: &w.Config, refreshed: newRefresh()}
	}
	return w
}

// writeVersion is the version that a record is written with. It is strict when it follows a stored version that was read
// before the record was fetched: when several processes do so, only the first write succeeds, and the others fetch again.
type writeVersion struct {
	version core.Version
	strict  bool
}

// execute executes req: it fetches the record and writes or removes its document with the version at. It returns the
// organization under which the record was settled, and the result.
func (w *writer) execute(ctx context.Context, req core.Request, at writeVersion) (string, results, error) {
	if req.Kind == core.KindRemove {
		result, err := w.removeRequested(ctx, req, at)
		return req.Organization, result, err
	}
	rec, fetchedAt, err := w.fetch(ctx, req)
	if err == nil && rec.Part != nil || errors.Is(err, core.ErrRecordAbsent) {
		if err := w.requestHolder(ctx, req, at, rec); err != nil {
			rec.Release()
			return req.Organization, nil, err
		}
	}
	switch {
	case err == nil:
		result, err := w.writeFetched(ctx, rec, fetchedAt, at)
		return req.Organization, result, err
	case core.CodeOf(err) == core.CodeAbsent || errors.Is(err, core.ErrOtherOrganization):
		return w.settleMoved(ctx, req, at, rec.Organization, err)
	default:
		return req.Organization, nil, err
	}
}

// writeFetched writes a fetched record, or removes its document when the record is not indexable.
func (w *writer) writeFetched(ctx context.Context, rec core.Record, fetchedAt time.Time, at writeVersion) (results, error) {
	if !rec.Indexable {
		stored, err := w.documents.owner(ctx, w.Repository.IndexName, rec.ID)
		if err != nil || stored.foreign {
			return mismatch(rec.ID), w.Outcomes.PauseOnError(err)
		}
		rs, err := w.documents.remove(ctx, rec.ID, at)
		if err == nil && rec.Excluded != nil && rs[0].Outcome == core.OutcomeRemoved {
			rs[0].Outcome = core.OutcomeExcluded
		}
		return rs, err
	}
	if rec.TooLarge != nil {
		return only(rec.ID, core.Result{Outcome: core.OutcomeRejected, Code: core.CodeTooLarge, Rejected: rec.TooLarge}), nil
	}
	return w.documents.write(ctx, rec, fetchedAt, at)
}

// fetch fetches req's record, unless its sweep was cancelled.
func (w *writer) fetch(ctx context.Context, req core.Request) (core.Record, time.Time, error) {
	var check func() error
	if req.Cause == core.CauseSweep {
		check = func() error { return w.checkSweepCancelled(ctx, req) }
	}
	return w.Fetcher.Record(ctx, req, check)
}

// checkSweepCancelled returns errSweepCancelled for a Request of a sweep whose job was cancelled. The Requests of a job that
// ended otherwise are still executed.
func (w *writer) checkSweepCancelled(ctx context.Context, req core.Request) error {
	job, err := w.Jobs.Get(ctx, req.JobID)
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return nil
	case err == nil && job.State == core.JobCancelled:
		return errSweepCancelled
	}
	return err
}
