package consumers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
)

// The guard against a mass removal (CONTRACT section 1): a sweep that would ask for more than guardShare of a
// scope's documents and more than guardFew of them, or for all of them, asks for none.
const (
	guardShare = 0.20
	guardFew   = 10
)

// sideBySide bounds the calls that a sweep makes at once.
const sideBySide = 16

// errEnough ends a scan early.
var errEnough = errors.New("enough seen")

// sweepOrganization asks the upstream, one by one, for the documents of an organization that the run did not see. It
// waits until each of those Requests has had its outcome, and gives the number of documents that are gone, or why
// nothing was asked for.
func (r *repository) sweepOrganization(ctx context.Context, job core.Job, organization string) (int64, *core.JobError, error) {
	scope := core.IndexScope{Repository: r.Code, Field: r.OrganizationField(), Organization: organization}
	unseen, guard, err := r.unseen(ctx, job, scope)
	if err != nil || guard != nil || len(unseen) == 0 {
		return 0, guard, err
	}
	removed, err := r.askAgain(ctx, job, organization, unseen)
	return removed, nil, err
}

// sweepVanished does the same for documents of organizations that the repository no longer lists.
func (r *repository) sweepVanished(ctx context.Context, job core.Job, runs []core.OrganizationRun) (int64, *core.JobError, error) {
	unseen, guard, err := r.unseen(ctx, job, core.IndexScope{Repository: r.Code})
	if err != nil || guard != nil || len(unseen) == 0 {
		return 0, guard, err
	}
	vanished := make(map[string][]string)
	for _, id := range unseen {
		stored, found, err := r.c.deps.Index.Get(ctx, r.IndexName, id)
		if err != nil {
			return 0, nil, err
		}
		organization := gjson.GetBytes(stored.Source, r.OrganizationField()).String()
		listed := slices.ContainsFunc(runs, func(run core.OrganizationRun) bool { return run.Organization == organization })
		if found && !listed && core.ValidKey("organization", organization) == nil {
			vanished[organization] = append(vanished[organization], id)
		}
	}
	var total int64
	for organization, ids := range vanished {
		removed, err := r.askAgain(ctx, job, organization, ids)
		if err != nil {
			return total, nil, err
		}
		total += removed
	}
	return total, nil, nil
}

// unseen gives the ids of a scope's documents that are older than the run, or the guard's word.
func (r *repository) unseen(ctx context.Context, job core.Job, scope core.IndexScope) ([]string, *core.JobError, error) {
	if err := r.gate.wait(r.c.draining); err != nil {
		return nil, nil, err
	}
	index := r.c.deps.Index
	if err := index.Refresh(ctx, r.IndexName); err != nil {
		return nil, nil, r.noted(err)
	}
	total, err := index.Count(ctx, r.IndexName, scope)
	if err != nil {
		return nil, nil, r.noted(err)
	}
	var ids []string
	err = index.Scan(ctx, r.IndexName, scope, job.StartVersion, func(id string, _ core.Version) error {
		ids = append(ids, id)
		if !job.Force && guarded(len(ids), total) {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, nil, r.noted(err)
	}
	if !job.Force && guarded(len(ids), total) {
		return nil, &core.JobError{Code: core.JobErrorPruneGuard, Message: fmt.Sprintf(
			"%d or more of %d documents were not seen by the run; nothing was removed. Run again with force to remove them",
			len(ids), total)}, nil
	}
	return ids, nil, nil
}

func guarded(unseen int, total int64) bool {
	if unseen == 0 {
		return false
	}
	return int64(unseen) >= total || (unseen > guardFew && float64(unseen) > guardShare*float64(total))
}

// noted shuts the gate when err says that the index is not there, and gives err.
func (r *repository) noted(err error) error {
	r.noteRetry(core.CodeOf(err))
	return err
}

// askAgain publishes a record Request for each id, waits until all of them have ended, and counts which documents
// are gone.
func (r *repository) askAgain(ctx context.Context, job core.Job, organization string, ids []string) (int64, error) {
	publishing, publishCtx := errgroup.WithContext(ctx)
	publishing.SetLimit(sideBySide)
	for _, id := range ids {
		publishing.Go(func() error {
			req := r.childRequest(job, core.ScopeRecord, organization)
			req.RecordID, req.Cause, req.Force = id, core.CauseSweep, false
			return r.insist(publishCtx, "publishing a swept record", func() error {
				return r.c.deps.Requests.Publish(publishCtx, req)
			})
		})
	}
	if err := publishing.Wait(); err != nil {
		return 0, err
	}
	if err := r.waitForRecords(ctx, organization, ids); err != nil {
		return 0, err
	}
	return r.countGone(ctx, ids)
}

// waitForRecords waits until no Request for one of ids is in the queue any more.
func (r *repository) waitForRecords(ctx context.Context, organization string, ids []string) error {
	for try := 0; ; try++ {
		pending, err := r.c.deps.Requests.PendingRecords(ctx, r.Code, organization)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(ids, func(id string) bool { _, still := pending[id]; return still }) {
			return nil
		}
		if err := sleep(r.c.draining, growing(try, 20*time.Millisecond, time.Second)); err != nil {
			return err
		}
	}
}

func (r *repository) countGone(ctx context.Context, ids []string) (int64, error) {
	var gone atomic.Int64
	asking, askCtx := errgroup.WithContext(ctx)
	asking.SetLimit(sideBySide)
	for _, id := range ids {
		asking.Go(func() error {
			_, found, err := r.c.deps.Index.Get(askCtx, r.IndexName, id)
			if err == nil && !found {
				gone.Add(1)
			}
			return err
		})
	}
	err := asking.Wait()
	return gone.Load(), err
}
