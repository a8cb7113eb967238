package sweep

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// remover removes documents.
type remover struct {
	cfg      Config
	requests *requests
}

// remove removes documents that the guard allows to remove, or that no guard counts: it deletes those whose records the list showed as not
// to be indexed, with the version of the run, and requests the others, and those that could not be deleted. Before, it notes their ids. noted
// are those of an attempt that was interrupted, which it counts, or removes if they are still there.
func (r *remover) remove(
	ctx context.Context, job core.Job, organization string, step sweepStep, documents unseenDocuments, noted []string,
) (Result, error) {
	before, err := r.removedBefore(ctx, job, organization, noted, &documents)
	if err != nil || documents.empty() {
		return before, err
	}
	err = r.cfg.Loop.RetryUntilStopped(ctx, "noting the documents that a sweep removes", func() error {
		return r.cfg.Notes.NoteSwept(ctx, job.ID, organization, int(step), slices.Concat(documents.ids, documents.invalidIDs))
	})
	if err != nil {
		return Result{}, err
	}
	removed, left, err := r.deleteInvalid(ctx, job, organization, documents.invalidIDs)
	if err != nil {
		return Result{}, err
	}
	swept, err := r.requests.requestAgain(ctx, job, organization, append(documents.ids, left...))
	swept.add(before)
	swept.Removed += removed
	if state.Compares(job, r.cfg.Split != nil) {
		swept.Surplus += removed
	}
	return swept, err
}

// removeAll removes documents by organization, and counts those that an attempt that was interrupted has noted.
func (r *remover) removeAll(
	ctx context.Context, job core.Job, step sweepStep, byOrganization map[string]unseenDocuments, noted map[string][]string,
) (all Result, err error) {
	addNoted(byOrganization, noted)
	for organization, documents := range byOrganization {
		if core.ValidKey("organization", organization) != nil {
			continue // the documents cannot be requested
		}
		swept, err := r.remove(ctx, job, organization, step, documents, noted[organization])
		if err != nil {
			return all, err
		}
		all.add(swept)
	}
	return all, nil
}

// notRemoved returns the result of a sweep that guard forbids, with what an attempt that was interrupted has removed nevertheless.
func (r *remover) notRemoved(
	ctx context.Context, job core.Job, unseen unseenDocuments, guard *core.JobError, noted map[string][]string,
) (Result, error) {
	result := Result{Guard: guard}
	if state.Compares(job, r.cfg.Split != nil) {
		result.Surplus = int64(unseen.counted())
	}
	for organization, ids := range noted {
		before, err := r.removedBefore(ctx, job, organization, ids, &unseenDocuments{})
		if err != nil {
			return result, err
		}
		result.add(before)
	}
	return result, nil
}

// deleteInvalid deletes documents whose records the list showed as not to be indexed. A document that is newer by now stays. left are
// those that could not be deleted.
func (r *remover) deleteInvalid(ctx context.Context, job core.Job, organization string, ids []string) (removed int64, left []string, err error) {
	for chunk := range slices.Chunk(ids, sweepChunk) {
		for try := 1; len(chunk) > 0 && try <= r.cfg.Attempts; try++ {
			if err := r.awaitIndex(ctx, job, try); err != nil {
				return removed, left, err
			}
			deleted, again, err := r.deleteChunk(ctx, job, organization, chunk)
			if err != nil {
				return removed, left, err
			}
			removed, chunk = removed+deleted, again
		}
		left = append(left, chunk...)
	}
	r.cfg.Outcomes.Count(core.OutcomeRemoved, int(removed))
	if removed > 0 {
		r.cfg.Logger.InfoContext(ctx, "the documents of invalid records were removed", "job_id", job.ID, "organization", organization, "documents", removed)
	}
	return removed, left, nil
}

// awaitIndex blocks until the index takes writes, for the try-th time. It returns loop.ErrJobEnded when the job has ended by then.
func (r *remover) awaitIndex(ctx context.Context, job core.Job, try int) error {
	if try > 1 {
		if err := r.cfg.Loop.Sleep(r.cfg.Loop.Delay(try-1, nil)); err != nil {
			return err
		}
	}
	if err := r.cfg.Loop.AwaitIndex(); err != nil {
		return err
	}
	if r.cfg.Jobs.Ended(ctx, job.ID) {
		return loop.ErrJobEnded
	}
	return nil
}

// deletion is the deletion of a document, or of the marker of a record with several, whose id is then the record's.
type deletion struct{ id, record string }

// deleteChunk deletes documents, and returns those that a retry may delete.
func (r *remover) deleteChunk(ctx context.Context, job core.Job, organization string, ids []string) (removed int64, again []string, err error) {
	deletions, err := r.deletionsOf(ctx, job, ids)
	if err != nil {
		return 0, nil, err
	}
	ticket := r.cfg.Writer.Ticket()
	for _, d := range deletions {
		write := core.Write{
			Op: core.OpDelete, ID: d.id, Version: job.StartVersion, FetchedAt: time.Now(), Repository: r.cfg.Repository.Code,
		}
		if r.isMarker(d) {
			write.ID = outcome.MarkerID(d.record)
		}
		if err := r.cfg.Writer.Add(ctx, ticket, r.cfg.Repository.IndexName, write); err != nil {
			return 0, nil, err
		}
	}
	ticket.Seal()
	results, err := ticket.Wait(ctx)
	if err != nil {
		return 0, nil, err
	}
	for i, res := range results {
		d := deletions[i]
		switch {
		case res.Outcome == core.OutcomeRemoved && !r.cfg.Outcomes.AheadOfClock(job.StartVersion, res.NextVersion):
			req := state.Child(job, core.ScopeRecord, organization)
			req.RecordID = d.record
			err := r.cfg.Loop.RetryUntilStopped(ctx, "settling the dead letter of an invalid record", func() error {
				return r.cfg.Outcomes.Settle(ctx, req, organization, d.id, job.StartVersion, res)
			})
			if err != nil {
				return removed, nil, err
			}
			if !r.isMarker(d) {
				removed++
			}
		case res.Outcome == core.OutcomeStale && !r.cfg.Outcomes.AheadOfClock(job.StartVersion, res.CurrentVersion): // it is newer than the list
		case !r.isMarker(d):
			r.cfg.Outcomes.PauseOnCode(res.Code)
			again = append(again, d.id)
		}
	}
	return removed, again, nil
}

// isMarker reports whether d is the deletion of a marker.
func (r *remover) isMarker(d deletion) bool { return r.cfg.Split != nil && d.id == d.record }

// deletionsOf returns the deletions of documents and, of records with several, their markers.
func (r *remover) deletionsOf(ctx context.Context, job core.Job, ids []string) ([]deletion, error) {
	deletions := make([]deletion, 0, len(ids))
	if r.cfg.Split == nil {
		for _, id := range ids {
			deletions = append(deletions, deletion{id: id, record: id})
		}
		return deletions, nil
	}
	records := make(map[string]struct{})
	var mu sync.Mutex
	err := r.requests.eachDocument(ctx, job, ids, func(id string, stored core.StoredDocument, found bool) {
		record := gjson.GetBytes(stored.Source, r.cfg.Repository.Fields.ID).String()
		if !found || stored.Version >= job.StartVersion {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		deletions = append(deletions, deletion{id: id, record: record})
		records[record] = struct{}{}
	})
	for record := range records {
		deletions = append(deletions, deletion{id: record, record: record})
	}
	return deletions, err
}
