package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// sweeper sweeps the index for documents that a run did not see. It publishes record Requests for a job, and waits for their
// outcomes.
type sweeper struct{ *repository }

// sweepResult is the result of one sweep: how many documents were removed and how many records were rejected, or why nothing
// was requested.
type sweepResult struct {
	removed, rejected int64
	surplus           int64 // documents that a job that compares did not find on the list
	guard             *core.JobError
}

// add adds the result of another sweep.
func (s *sweepResult) add(o sweepResult) {
	s.removed += o.removed
	s.rejected += o.rejected
	s.surplus += o.surplus
	if o.guard != nil {
		s.guard = o.guard
	}
}

// note adds the result to the organization's run, once.
func (s sweepResult) note(run *core.OrganizationRun) {
	if run.Swept {
		return
	}
	run.Swept = true
	run.Totals.Removed += s.removed
	run.Totals.Rejected += s.rejected
	run.Totals.Drift.Surplus += s.surplus
	if s.guard != nil {
		run.State, run.Error = core.JobPartial, s.guard
	}
}

// sweepOrganization requests each document of an organization that the run did not see from the upstream. It waits until
// each of those Requests has its outcome.
func (s *sweeper) sweepOrganization(ctx context.Context, job core.Job, run core.OrganizationRun) (sweepResult, error) {
	organization := run.Organization
	job.Force = job.Force || slices.Contains(s.ExcludedOrganizations, organization) // its documents are to be removed
	before, err := s.removedBefore(ctx, job, organization, stepUnseen)
	if err != nil {
		return sweepResult{}, err
	}
	swept := before[organization]
	unseen, guard, err := s.unseen(ctx, job, []core.OrganizationRun{run}, s.scopeOf(organization))
	if err != nil || guard != nil || unseen.empty() {
		swept.add(s.forbidden(job, unseen, guard))
		return swept, err
	}
	removed, err := s.remove(ctx, job, organization, stepUnseen, unseen)
	swept.add(removed)
	return swept, err
}

// sweepCompleteOrganizations sweeps each organization of a repository's job that was read completely, and stores the result
// in its run.
func (s *sweeper) sweepCompleteOrganizations(ctx context.Context, job core.Job, runs []core.OrganizationRun) error {
	for _, run := range runs {
		if !run.ReadWhole() || run.Swept {
			continue
		}
		swept, err := s.sweepOrganization(ctx, job, run)
		if err != nil {
			return err
		}
		if err := s.noteSweep(ctx, job, run.Organization, swept); err != nil {
			return err
		}
	}
	return nil
}

// sweepRepository sweeps a repository of which all organizations were read completely: their documents, and those of
// organizations that it no longer lists. It returns the result of the latter, and stores the others in their runs.
func (s *sweeper) sweepRepository(ctx context.Context, job core.Job, runs []core.OrganizationRun) (sweepResult, error) {
	before, err := s.removedBefore(ctx, job, "", stepUnseen)
	if err != nil {
		return sweepResult{}, err
	}
	for _, run := range runs {
		if run.Swept { // its totals have it
			delete(before, run.Organization)
		}
	}
	unseen, guard, err := s.unseen(ctx, job, runs, core.IndexScope{Repository: s.Repository.Code})
	if err != nil || guard != nil {
		all := sumOf(before)
		all.add(s.forbidden(job, unseen, guard))
		return all, err
	}
	byOrganization, err := s.groupByOrganization(ctx, job, unseen)
	if err != nil {
		return sweepResult{}, err
	}
	for _, run := range runs {
		unseen, removed := byOrganization[run.Organization], before[run.Organization]
		delete(byOrganization, run.Organization)
		delete(before, run.Organization)
		if !unseen.empty() || removed != (sweepResult{}) {
			if err := s.sweepWithGuard(ctx, job, run.Organization, unseen, removed); err != nil {
				return sweepResult{}, err
			}
		}
	}
	vanished := sumOf(before)
	for organization, unseen := range byOrganization {
		if core.ValidKey("organization", organization) != nil {
			continue // the document cannot be requested
		}
		swept, err := s.remove(ctx, job, organization, stepUnseen, unseen)
		if err != nil {
			return vanished, err
		}
		vanished.add(swept)
	}
	return vanished, nil
}

// sweepWithGuard sweeps one organization of a repository's job, under its own guard. swept is what an interrupted attempt has removed.
func (s *sweeper) sweepWithGuard(ctx context.Context, job core.Job, organization string, unseen unseenDocuments, swept sweepResult) error {
	total, err := s.Index.Count(ctx, s.Repository.IndexName, s.scopeOf(organization))
	if err != nil {
		return s.Outcomes.PauseOnError(err)
	}
	if unseen.guard(job, total) {
		swept.add(s.forbidden(job, unseen, unseen.guardError(total)))
	} else {
		removed, err := s.remove(ctx, job, organization, stepUnseen, unseen)
		if err != nil {
			return err
		}
		swept.add(removed)
	}
	return s.noteSweep(ctx, job, organization, swept)
}

func (s *sweeper) noteSweep(ctx context.Context, job core.Job, organization string, swept sweepResult) error {
	_, err := s.Organizations.UpdateOrganization(ctx, job.ID, organization, func(run *core.OrganizationRun) error {
		swept.note(run)
		state.NoteRejected(s.Repository.Code, run)
		return nil
	})
	return err
}

func (s *sweeper) scopeOf(organization string) core.IndexScope {
	return core.IndexScope{Repository: s.Repository.Code, Field: s.Repository.Fields.Organization, Organization: organization}
}

// groupByOrganization groups documents by their organization, without those that no longer exist.
func (s *sweeper) groupByOrganization(ctx context.Context, job core.Job, all unseenDocuments) (map[string]unseenDocuments, error) {
	groups := make(map[string]unseenDocuments)
	var mu sync.Mutex
	add := func(ids []string, invalid bool) error {
		return s.eachDocument(ctx, job, ids, func(id string, stored core.StoredDocument, found bool) {
			if !found {
				return
			}
			organization := gjson.GetBytes(stored.Source, s.Repository.Fields.Organization).String()
			mu.Lock()
			defer mu.Unlock()
			group := groups[organization]
			group.first, group.requestedAlone = all.first, all.requestedAlone
			group.add(id, stored.Version, invalid)
			groups[organization] = group
		})
	}
	if err := add(all.ids, false); err != nil {
		return groups, err
	}
	return groups, add(all.invalidIDs, true)
}

// unseen returns the documents of the scope of runs that these may not have seen, or whose records their lists showed as not to be
// indexed, or why the guard forbids to remove them.
func (s *sweeper) unseen(
	ctx context.Context, job core.Job, runs []core.OrganizationRun, scope core.IndexScope,
) (unseenDocuments, *core.JobError, error) {
	unseen := unseenDocuments{first: job.StartVersion}
	if job.StartCheckpoint == core.CheckpointNone {
		return unseen, nil, nil
	}
	var err error
	// The scan sees the documents of Requests that end after this.
	if unseen.requestedAlone, err = s.Requests.PendingRecords(ctx, s.Repository.Code, scope.Organization); err != nil {
		return unseen, nil, err
	}
	if why, err := s.refresh(ctx, job); why != nil || err != nil {
		return unseen, why, err
	}
	shown, err := s.shown(ctx, job, runs)
	if err != nil {
		return unseen, nil, err
	}
	index := s.Index
	scan := scope
	scan.WrittenBy = job.StartCheckpoint
	scan.Beyond = core.Version(time.Now().Add(s.ClockSkew).UnixNano())
	total := int64(-1)
	err = index.Scan(ctx, s.Repository.IndexName, scan, job.StartVersion, func(id string, v core.Version) error {
		record := id
		if s.Split != nil && len(unseen.requestedAlone)+len(shown.invalid) > 0 {
			var err error
			if record, err = s.recordOf(ctx, id); err != nil {
				return err
			}
		}
		invalid := contains(shown.invalid, record)
		if !invalid && contains(shown.listed, id) {
			return nil
		}
		if total < 0 { // most sweeps find nothing and need no count
			var err error
			if total, err = index.Count(ctx, s.Repository.IndexName, scope); err != nil {
				return err
			}
		}
		if _, is := unseen.requestedAlone[record]; is && s.Split != nil { // its own Request removes the document
			return nil
		}
		unseen.add(id, v, invalid)
		unseen.guard(job, total) // which bounds the ids that are held
		return nil
	})
	if err != nil {
		return unseen, nil, s.Outcomes.PauseOnError(err)
	}
	if unseen.guard(job, total) {
		return unseen, unseen.guardError(total), nil
	}
	return unseen, nil, nil
}

// forbidden returns the result of a sweep of which the guard, if any, forbids to remove the documents.
func (s *sweeper) forbidden(job core.Job, unseen unseenDocuments, guard *core.JobError) sweepResult {
	result := sweepResult{guard: guard}
	if s.compares(job) && guard != nil {
		result.surplus = int64(unseen.counted())
	}
	return result
}

// sweepConcurrency bounds the concurrent calls of a sweep.
const sweepConcurrency = 16

// sweepChunk is how many documents a sweep processes before it checks whether its job has ended.
const sweepChunk = 256

// requestAgain publishes a record Request for each id, waits until they have ended, and counts the documents that were
// removed and the records that were rejected.
func (s *sweeper) requestAgain(ctx context.Context, job core.Job, organization string, ids []string) (sweepResult, error) {
	ids, err := s.notRejected(ctx, job, organization, ids)
	if err != nil {
		return sweepResult{}, err
	}
	settled, open, err := s.settle(ctx, job, organization, ids, false)
	swept := sweepResult{removed: settled.Removed, rejected: settled.Rejected}
	if s.compares(job) {
		swept.surplus = int64(len(ids))
	}
	if open > 0 {
		swept.guard = &core.JobError{Code: core.JobErrorSweepIncomplete, Message: fmt.Sprintf(
			"%d records that the run did not see could not be requested yet; they will be, and removed if they no longer exist", open)}
	}
	return swept, err
}

// notRejected returns those of ids that no page of the job rejected: a rejected record was seen, and is already counted.
func (s *sweeper) notRejected(ctx context.Context, job core.Job, organization string, ids []string) ([]string, error) {
	var mu sync.Mutex
	var left []string
	err := s.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		if s.Outcomes.HasDeadLetter(organization, id) {
			letter, err := s.Outcomes.FindDeadLetter(ctx, organization, id)
			if err != nil && core.CodeOf(err) != core.CodeNotFound {
				return err
			}
			if letter.JobID == job.ID && letter.Request != nil && letter.Request.Cause != core.CauseSweep {
				return nil
			}
		}
		mu.Lock()
		defer mu.Unlock()
		left = append(left, id)
		return nil
	})
	return left, err
}

// settle waits until the record Requests of ids have ended, which it publishes unless requested is true, and counts
// the outcomes. A record without an outcome, because its Request was replaced by one of the sweep of a cancelled job, is
// requested once more. open is the number of records that have not ended.
func (s *sweeper) settle(
	ctx context.Context, job core.Job, organization string, ids []string, requested bool,
) (settled core.Totals, open int, err error) {
	if s.Split != nil {
		if requested {
			return s.settleRequested(ctx, job, organization, ids)
		}
		return s.settleDocuments(ctx, job, organization, ids)
	}
	for round := 0; round < 2 && len(ids) > 0; round++ {
		published := round > 0 || !requested
		if published {
			if err := s.publish(ctx, job, organization, ids); err != nil {
				return settled, open, err
			}
		}
		waiting, err := s.wait(ctx, job, organization, ids)
		if err != nil {
			return settled, open, err
		}
		open += len(waiting)
		ended := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
			_, waits := waiting[id]
			return waits
		})
		ids = nil
		var mu sync.Mutex
		err = s.eachDocument(ctx, job, ended, func(id string, stored core.StoredDocument, found bool) {
			rejected := s.Outcomes.HasDeadLetter(organization, id)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case found && stored.Version >= job.StartVersion && (stored.Version <= core.Version(time.Now().UnixNano()) || !rejected):
				settled.Indexed++
			case rejected:
				settled.Rejected++
			case !found && published:
				settled.Removed++
			default:
				ids = append(ids, id)
			}
		})
		if err != nil || open > 0 {
			return settled, open, err
		}
	}
	return settled, open, nil
}

// wait waits until no Request for one of ids is in the queue. It returns the remaining ids when none has ended for
// SweepTimeout, since a record is retried without limit. That time does not include an outage of the repository.
func (s *sweeper) wait(
	ctx context.Context, job core.Job, organization string, ids []string,
) (map[string]struct{}, error) {
	left, since := len(ids)+1, time.Now()
	for try := 0; ; try++ {
		pending, err := s.Requests.PendingRecords(ctx, s.Repository.Code, organization)
		if err != nil {
			return nil, err
		}
		open := make(map[string]struct{})
		for _, id := range ids {
			if _, still := pending[id]; still {
				open[id] = struct{}{}
			}
		}
		if len(open) < left {
			left, since = len(open), time.Now()
		}
		if len(open) > 0 && s.jobs.Ended(ctx, job.ID) {
			return nil, loop.ErrJobEnded
		}
		if len(open) == 0 {
			return open, nil
		}
		if time.Since(since) > s.SweepTimeout {
			_, waited, err := s.calls.Organizations(ctx, job)
			if err != nil && (s.loop.Stopping(ctx) || errors.Is(err, loop.ErrJobEnded)) {
				return nil, err
			}
			if err != nil || !waited {
				return open, nil
			}
			// The repository answers again; the records wait for their next attempt.
			left, since, try = len(ids)+1, time.Now().Add(s.SweepTimeout), 0
		}
		if err := s.loop.Sleep(retry.Delay(try, 20*time.Millisecond, time.Second)); err != nil {
			return nil, err
		}
	}
}

func (s *sweeper) publish(ctx context.Context, job core.Job, organization string, ids []string) error {
	return s.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		req := state.Child(job, core.ScopeRecord, organization)
		req.RecordID, req.Cause, req.Force, req.AsOf = id, core.CauseSweep, false, job.StartVersion
		return s.loop.RetryUntilStopped(ctx, "publishing a record of a sweep", func() error { return s.Requests.PublishUnlessRemovalPending(ctx, req) })
	})
}

// eachDocument reads documents and calls use with each, on several goroutines.
func (s *sweeper) eachDocument(
	ctx context.Context, job core.Job, ids []string, use func(id string, d core.StoredDocument, found bool),
) error {
	return s.Outcomes.PauseOnError(s.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		stored, found, err := s.Index.Get(ctx, s.Repository.IndexName, id)
		if err == nil {
			use(id, stored, found)
		}
		return err
	}))
}

// eachUntilJobEnds calls f for each id, concurrently, and returns loop.ErrJobEnded soon after the job has ended.
func (s *sweeper) eachUntilJobEnds(ctx context.Context, job core.Job, ids []string, f func(ctx context.Context, id string) error) error {
	for chunk := range slices.Chunk(ids, sweepChunk) {
		if s.jobs.Ended(ctx, job.ID) {
			return loop.ErrJobEnded
		}
		calls, callCtx := errgroup.WithContext(ctx)
		calls.SetLimit(sweepConcurrency)
		for _, id := range chunk {
			calls.Go(func() error { return f(callCtx, id) })
		}
		if err := calls.Wait(); err != nil {
			return err
		}
	}
	return nil
}
