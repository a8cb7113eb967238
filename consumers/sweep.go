package consumers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
)

// The guard against a mass removal (CONTRACT section 1): a sweep that would request more than guardShare of a
// scope's documents and more than guardMin of them, or all of them, requests none.
const (
	guardShare = 0.20
	guardMin   = 10
)

// sweepConcurrency bounds the concurrent calls of a sweep.
const sweepConcurrency = 16

// sweepChunk is how many documents a sweep processes before it checks whether its job has ended.
const sweepChunk = 256

var (
	// errGuardReached ends a scan early.
	errGuardReached = errors.New("the guard's limit is reached")
	// errSweepEnded ends a sweep, or the processing of a page, whose job has ended, by a cancel or in another process.
	errSweepEnded = errors.New("the job has ended")
)

// sweepResult is the result of one sweep: how many documents were removed and how many records were rejected, or why nothing
// was requested.
type sweepResult struct {
	removed, rejected int64
	guard             *core.JobError
}

// note adds the result to the organization's run, once.
func (s sweepResult) note(run *core.OrganizationRun) {
	if run.Swept {
		return
	}
	run.Swept = true
	run.Totals.Removed += s.removed
	run.Totals.Rejected += s.rejected
	if s.guard != nil {
		run.State, run.Error = core.JobPartial, s.guard
	}
}

// sweepOrganization requests each document of an organization that the run did not see from the upstream. It waits until
// each of those Requests has its outcome.
func (r *repository) sweepOrganization(ctx context.Context, job core.Job, organization string) (sweepResult, error) {
	unseen, guard, err := r.unseen(ctx, job, r.scopeOf(organization))
	if err != nil || guard != nil || len(unseen.ids) == 0 {
		return sweepResult{guard: guard}, err
	}
	return r.requestAgain(ctx, job, organization, unseen.ids)
}

// sweepCompleteOrganizations sweeps each organization of a repository's job that was read completely, and stores the result
// in its run.
func (r *repository) sweepCompleteOrganizations(ctx context.Context, job core.Job, runs []core.OrganizationRun) error {
	for _, run := range runs {
		if !run.ReadWhole() || run.Swept {
			continue
		}
		swept, err := r.sweepOrganization(ctx, job, run.Organization)
		if err != nil {
			return err
		}
		if err := r.noteSweep(ctx, job, run.Organization, swept); err != nil {
			return err
		}
	}
	return nil
}

// sweepRepository sweeps a repository of which all organizations were read completely: their documents, and those of
// organizations that it no longer lists. It returns the result of the latter, and stores the others in their runs.
func (r *repository) sweepRepository(ctx context.Context, job core.Job, runs []core.OrganizationRun) (sweepResult, error) {
	unseen, guard, err := r.unseen(ctx, job, core.IndexScope{Repository: r.Code})
	if err != nil || guard != nil || len(unseen.ids) == 0 {
		return sweepResult{guard: guard}, err
	}
	byOrganization, err := r.groupByOrganization(ctx, job, unseen)
	if err != nil {
		return sweepResult{}, err
	}
	for _, run := range runs {
		unseen := byOrganization[run.Organization]
		delete(byOrganization, run.Organization)
		if len(unseen.ids) > 0 {
			if err := r.sweepWithGuard(ctx, job, run.Organization, unseen); err != nil {
				return sweepResult{}, err
			}
		}
	}
	var vanished sweepResult
	for organization, unseen := range byOrganization {
		if core.ValidKey("organization", organization) != nil {
			continue // the document cannot be requested
		}
		swept, err := r.requestAgain(ctx, job, organization, unseen.ids)
		if err != nil {
			return vanished, err
		}
		vanished.removed += swept.removed
		vanished.rejected += swept.rejected
		if swept.guard != nil {
			vanished.guard = swept.guard
		}
	}
	return vanished, nil
}

// sweepWithGuard sweeps one organization of a repository's job, under its own guard.
func (r *repository) sweepWithGuard(ctx context.Context, job core.Job, organization string, unseen unseenDocuments) error {
	total, err := r.c.deps.Index.Count(ctx, r.IndexName, r.scopeOf(organization))
	if err != nil {
		return r.pauseOnError(err)
	}
	var swept sweepResult
	if !job.Force && guarded(unseen.missing, total) {
		swept.guard = guardError(unseen.missing, total)
	} else if swept, err = r.requestAgain(ctx, job, organization, unseen.ids); err != nil {
		return err
	}
	return r.noteSweep(ctx, job, organization, swept)
}

func (r *repository) noteSweep(ctx context.Context, job core.Job, organization string, swept sweepResult) error {
	_, err := r.c.deps.Organizations.UpdateOrganization(ctx, job.ID, organization, func(run *core.OrganizationRun) error {
		swept.note(run)
		r.noteRejected(run)
		return nil
	})
	return err
}

func (r *repository) scopeOf(organization string) core.IndexScope {
	return core.IndexScope{Repository: r.Code, Field: r.Type.Fields().Organization, Organization: organization}
}

// unseenDocuments are documents that a run may not have seen: their versions are below first, the run's own, or lie in the
// future. The guard counts those that are missing: neither records that were requested alone before, because they were too
// old to be written with their page, nor versions from the future, which the run's pages could not replace.
type unseenDocuments struct {
	ids            []string
	missing        int
	first          core.Version
	requestedAlone map[string]struct{}
}

func (u *unseenDocuments) add(id string, v core.Version) {
	u.ids = append(u.ids, id)
	if _, is := u.requestedAlone[id]; !is && v < u.first {
		u.missing++
	}
}

// groupByOrganization groups documents by their organization, without those that no longer exist.
func (r *repository) groupByOrganization(ctx context.Context, job core.Job, all unseenDocuments) (map[string]unseenDocuments, error) {
	groups := make(map[string]unseenDocuments)
	var mu sync.Mutex
	err := r.eachDocument(ctx, job, all.ids, func(id string, stored core.StoredDocument, found bool) {
		if !found {
			return
		}
		organization := gjson.GetBytes(stored.Source, r.Type.Fields().Organization).String()
		mu.Lock()
		defer mu.Unlock()
		group := groups[organization]
		group.first, group.requestedAlone = all.first, all.requestedAlone
		group.add(id, stored.Version)
		groups[organization] = group
	})
	return groups, err
}

// unseen returns a scope's documents that the run may not have seen, or why the guard forbids to request them.
func (r *repository) unseen(ctx context.Context, job core.Job, scope core.IndexScope) (unseenDocuments, *core.JobError, error) {
	unseen := unseenDocuments{first: job.StartVersion}
	if job.StartCheckpoint == core.CheckpointNone {
		return unseen, nil, nil
	}
	var err error
	// The scan sees the documents of Requests that end after this.
	if unseen.requestedAlone, err = r.c.deps.Requests.PendingRecords(ctx, r.Code, scope.Organization); err != nil {
		return unseen, nil, err
	}
	if why, err := r.refresh(ctx, job); why != nil || err != nil {
		return unseen, why, err
	}
	index := r.c.deps.Index
	scan := scope
	scan.WrittenBy = job.StartCheckpoint
	scan.Beyond = core.Version(time.Now().Add(r.c.cfg.ClockSkew).UnixNano())
	total := int64(-1)
	err = index.Scan(ctx, r.IndexName, scan, job.StartVersion, func(id string, v core.Version) error {
		if total < 0 { // most sweeps find nothing and need no count
			var err error
			if total, err = index.Count(ctx, r.IndexName, scope); err != nil {
				return err
			}
		}
		unseen.add(id, v)
		if !job.Force && guarded(unseen.missing, total) {
			return errGuardReached
		}
		return nil
	})
	if err != nil && !errors.Is(err, errGuardReached) {
		return unseen, nil, r.pauseOnError(err)
	}
	if !job.Force && guarded(unseen.missing, total) {
		return unseen, guardError(unseen.missing, total), nil
	}
	return unseen, nil, nil
}

func guarded(unseen int, total int64) bool {
	if unseen == 0 {
		return false
	}
	return int64(unseen) >= total || (unseen > guardMin && float64(unseen) > guardShare*float64(total))
}

func guardError(unseen int, total int64) *core.JobError {
	return &core.JobError{Code: core.JobErrorPruneGuard, Message: fmt.Sprintf(
		"%d or more of %d documents were not seen by the run; nothing was removed. Run again with force to remove them",
		unseen, total)}
}

// pauseOnError pauses the repository when err means that the index takes no writes, and returns err.
func (r *repository) pauseOnError(err error) error {
	r.pauseOnCode(core.CodeOf(err))
	return err
}

// requestAgain publishes a record Request for each id, waits until they have ended, and counts the documents that were
// removed and the records that were rejected.
func (r *repository) requestAgain(ctx context.Context, job core.Job, organization string, ids []string) (sweepResult, error) {
	ids, err := r.notRejected(ctx, job, organization, ids)
	if err != nil {
		return sweepResult{}, err
	}
	settled, open, err := r.settleRecords(ctx, job, organization, ids, false)
	swept := sweepResult{removed: settled.Removed, rejected: settled.Rejected}
	if open > 0 {
		swept.guard = &core.JobError{Code: core.JobErrorSweepIncomplete, Message: fmt.Sprintf(
			"%d records that the run did not see could not be requested yet; they will be, and removed if they no longer exist", open)}
	}
	return swept, err
}

// notRejected returns those of ids that no page of the job rejected: a rejected record was seen, and is already counted.
func (r *repository) notRejected(ctx context.Context, job core.Job, organization string, ids []string) ([]string, error) {
	var mu sync.Mutex
	var left []string
	err := r.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		if r.c.deps.DeadLetters.Has(r.Code, organization, id) {
			letter, err := r.c.deps.DeadLetters.Find(ctx, r.Code, organization, id)
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

func (r *repository) publishSweepRequests(ctx context.Context, job core.Job, organization string, ids []string) error {
	return r.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		req := r.childRequest(job, core.ScopeRecord, organization)
		req.RecordID, req.Cause, req.Force, req.AsOf = id, core.CauseSweep, false, job.StartVersion
		return r.retryUntilStopped(ctx, "publishing a record of a sweep", func() error { return r.c.deps.Requests.PublishUnlessRemovalPending(ctx, req) })
	})
}

// checkSweepCancelled returns errSweepEnded for a Request of a sweep whose job was cancelled. The Requests of a job that
// ended otherwise are still executed.
func (r *repository) checkSweepCancelled(ctx context.Context, req core.Request) error {
	if req.Cause != core.CauseSweep {
		return nil
	}
	job, err := r.c.deps.Jobs.Get(ctx, req.JobID)
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return nil
	case err == nil && job.State == core.JobCancelled:
		return errSweepEnded
	}
	return err
}

// jobEnded reports whether a job is known to be final.
func (r *repository) jobEnded(ctx context.Context, id string) bool {
	job, err := r.c.deps.Jobs.Get(ctx, id)
	return err == nil && job.State.Final()
}

// eachDocument reads documents and calls use with each, on several goroutines.
func (r *repository) eachDocument(
	ctx context.Context, job core.Job, ids []string, use func(id string, d core.StoredDocument, found bool),
) error {
	return r.pauseOnError(r.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		stored, found, err := r.c.deps.Index.Get(ctx, r.IndexName, id)
		if err == nil {
			use(id, stored, found)
		}
		return err
	}))
}

// eachUntilJobEnds calls f for each id, concurrently, and returns errSweepEnded soon after the job has ended.
func (r *repository) eachUntilJobEnds(ctx context.Context, job core.Job, ids []string, f func(ctx context.Context, id string) error) error {
	for chunk := range slices.Chunk(ids, sweepChunk) {
		if r.jobEnded(ctx, job.ID) {
			return errSweepEnded
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
