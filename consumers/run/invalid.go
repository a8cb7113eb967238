package run

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/tidwall/gjson"

	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// shownIDs are what the lists of a job showed, as sorted hashes of record ids: 8 bytes for each.
type shownIDs struct {
	listed  []uint64 // all ids, in a job that compares: it does not write every record that it has seen
	invalid []uint64 // those of records that are not to be indexed
}

func contains(sorted []uint64, id string) bool {
	if len(sorted) == 0 {
		return false
	}
	_, found := slices.BinarySearch(sorted, xxhash.Sum64String(id))
	return found
}

// shown reads what the lists of runs showed.
func (s *sweeper) shown(ctx context.Context, job core.Job, runs []core.OrganizationRun) (all shownIDs, err error) {
	for _, run := range runs {
		listed, invalid := unpackIDs(run.IDs), unpackIDs(run.InvalidIDs)
		isRead := run.LastPage != nil && (run.Listed == nil || *run.Listed > 0)
		if isRead && len(listed) == 0 && s.compares(job) {
			if listed, err = s.Pages.NotedIDs(ctx, job.ID, run.Organization, run.Rereads, *run.LastPage); err != nil {
				return all, err
			}
		}
		if isRead && len(invalid) == 0 && run.Invalid {
			if invalid, err = s.Pages.NotedInvalid(ctx, job.ID, run.Organization, run.Rereads, *run.LastPage); err != nil {
				return all, err
			}
		}
		all.listed, all.invalid = append(all.listed, listed...), append(all.invalid, invalid...)
	}
	slices.Sort(all.listed)
	slices.Sort(all.invalid)
	return all, nil
}

// noteInvalid stores which records the page shows as not to be indexed, and settles them: it decides as it was first read completely.
func (w *pageWork) noteInvalid(ctx context.Context, pass *pagePass) error {
	w.notValid = make([]uint64, 0, len(pass.notValid))
	for _, id := range pass.notValid {
		w.notValid = append(w.notValid, xxhash.Sum64String(id))
		w.settleID(id)
	}
	if w.member != nil || len(w.notValid) == 0 && w.page.Epoch == 0 { // nothing was noted for the page before
		return nil
	}
	return w.storeNotValid(ctx)
}

func (w *pageWork) storeNotValid(ctx context.Context) error {
	return w.loop.RetryUntilStopped(ctx, "storing the ids of invalid records", func() error {
		return w.Pages.NoteInvalid(ctx, w.job.ID, w.req.Organization, w.reread, w.page.Number, w.notValid)
	})
}

// reportInvalid records that the page showed records as not to be indexed.
func (w *pageWork) reportInvalid(run *core.OrganizationRun) {
	if len(w.notValid) > 0 {
		run.Invalid = true
	}
}

// noteHeld stores what the group would have stored of a page, once its organization leaves the group.
func (w *pageWork) noteHeld(ctx context.Context) error {
	if err := w.notePage(ctx, w.hashes); err != nil || len(w.notValid) == 0 {
		return err
	}
	return w.storeNotValid(ctx)
}

// remove removes documents that the guard allows to remove, or that no guard counts: it deletes those whose records the list showed as not
// to be indexed, with the version of the run, and requests the others, and those that could not be deleted. Before, it notes their ids.
func (s *sweeper) remove(ctx context.Context, job core.Job, organization string, step sweepStep, documents unseenDocuments) (sweepResult, error) {
	err := s.loop.RetryUntilStopped(ctx, "noting the documents that a sweep removes", func() error {
		return s.Pages.NoteSwept(ctx, job.ID, organization, int(step), slices.Concat(documents.ids, documents.invalidIDs))
	})
	if err != nil {
		return sweepResult{}, err
	}
	removed, left, err := s.deleteInvalid(ctx, job, organization, documents.invalidIDs)
	if err != nil {
		return sweepResult{}, err
	}
	swept, err := s.requestAgain(ctx, job, organization, append(documents.ids, left...))
	swept.removed += removed
	if s.compares(job) {
		swept.surplus += removed
	}
	return swept, err
}

// deleteInvalid deletes documents whose records the list showed as not to be indexed. A document that is newer by now stays. left are
// those that could not be deleted.
func (s *sweeper) deleteInvalid(ctx context.Context, job core.Job, organization string, ids []string) (removed int64, left []string, err error) {
	for chunk := range slices.Chunk(ids, sweepChunk) {
		for try := 1; len(chunk) > 0 && try <= s.PageAttempts; try++ {
			if err := s.awaitIndex(ctx, job, try); err != nil {
				return removed, left, err
			}
			deleted, again, err := s.deleteChunk(ctx, job, organization, chunk)
			if err != nil {
				return removed, left, err
			}
			removed, chunk = removed+deleted, again
		}
		left = append(left, chunk...)
	}
	s.Outcomes.Count(core.OutcomeRemoved, int(removed))
	if removed > 0 {
		s.log.InfoContext(ctx, "the documents of invalid records were removed", "job_id", job.ID, "organization", organization, "documents", removed)
	}
	return removed, left, nil
}

// awaitIndex blocks until the index takes writes, for the try-th time. It returns loop.ErrJobEnded when the job has ended by then.
func (s *sweeper) awaitIndex(ctx context.Context, job core.Job, try int) error {
	if try > 1 {
		if err := s.loop.Sleep(s.loop.Delay(try-1, nil)); err != nil {
			return err
		}
	}
	if err := s.loop.AwaitIndex(); err != nil {
		return err
	}
	if s.jobs.Ended(ctx, job.ID) {
		return loop.ErrJobEnded
	}
	return nil
}

// deletion is the deletion of a document, or of the marker of a record with several, whose id is then the record's.
type deletion struct{ id, record string }

// deleteChunk deletes documents, and returns those that a retry may delete.
func (s *sweeper) deleteChunk(ctx context.Context, job core.Job, organization string, ids []string) (removed int64, again []string, err error) {
	deletions, err := s.deletionsOf(ctx, job, ids)
	if err != nil {
		return 0, nil, err
	}
	ticket := s.Writer.Ticket()
	for _, d := range deletions {
		write := core.Write{
			Op: core.OpDelete, ID: d.id, Version: job.StartVersion, FetchedAt: time.Now(), Repository: s.Repository.Code,
		}
		if s.isMarker(d) {
			write.ID = outcome.MarkerID(d.record)
		}
		if err := s.Writer.Add(ctx, ticket, s.Repository.IndexName, write); err != nil {
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
		case res.Outcome == core.OutcomeRemoved && !s.Outcomes.AheadOfClock(job.StartVersion, res.NextVersion):
			req := state.Child(job, core.ScopeRecord, organization)
			req.RecordID = d.record
			err := s.loop.RetryUntilStopped(ctx, "settling the dead letter of an invalid record", func() error {
				return s.Outcomes.Settle(ctx, req, organization, d.id, job.StartVersion, res)
			})
			if err != nil {
				return removed, nil, err
			}
			if !s.isMarker(d) {
				removed++
			}
		case res.Outcome == core.OutcomeStale && !s.Outcomes.AheadOfClock(job.StartVersion, res.CurrentVersion): // it is newer than the list
		case !s.isMarker(d):
			s.Outcomes.PauseOnCode(res.Code)
			again = append(again, d.id)
		}
	}
	return removed, again, nil
}

// isMarker reports whether d is the deletion of a marker.
func (s *sweeper) isMarker(d deletion) bool { return s.Split != nil && d.id == d.record }

// deletionsOf returns the deletions of documents and, of records with several, their markers.
func (s *sweeper) deletionsOf(ctx context.Context, job core.Job, ids []string) ([]deletion, error) {
	deletions := make([]deletion, 0, len(ids))
	if s.Split == nil {
		for _, id := range ids {
			deletions = append(deletions, deletion{id: id, record: id})
		}
		return deletions, nil
	}
	records := make(map[string]struct{})
	var mu sync.Mutex
	err := s.eachDocument(ctx, job, ids, func(id string, stored core.StoredDocument, found bool) {
		record := gjson.GetBytes(stored.Source, s.Repository.Fields.ID).String()
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
