package consumers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"tutti/internal/core"
)

// noteLate stores the ids of the page's records that were requested one by one, for the end of the organization's run.
func (w *pageWork) noteLate(ctx context.Context) error {
	return w.r.retryUntilStopped(ctx, "storing the late records of a page", func() error {
		return w.r.c.deps.Pages.NoteLate(ctx, w.job.ID, w.req.Organization, w.page.Number, w.page.Epoch, w.late)
	})
}

// settleLate waits for the records that the pages of an organization requested one by one, and adds their outcomes to its
// totals, once. If some are still pending when the wait times out, the organization is not swept and ends partial.
func (r *repository) settleLate(ctx context.Context, job core.Job, run core.OrganizationRun) (core.OrganizationRun, error) {
	late := run.Late
	ids, err := r.c.deps.Pages.LateIDs(ctx, job.ID, run.Organization, late)
	if err != nil {
		return run, err
	}
	settled, open, err := r.settleRecords(ctx, job, run.Organization, ids, true)
	if err != nil {
		return run, err
	}
	return r.c.deps.Organizations.UpdateOrganization(ctx, job.ID, run.Organization, func(run *core.OrganizationRun) error {
		if run.State.Final() || !maps.Equal(run.Late, late) {
			return nil
		}
		run.Late = nil
		run.Count(settled)
		if open > 0 && run.Unswept == nil {
			run.Unswept = &core.JobError{Code: core.JobErrorSweepIncomplete, Message: fmt.Sprintf(
				"%d records that could not be written with their pages are still being retried; nothing was removed", open)}
		}
		return nil
	})
}

// settleRecords waits until the record Requests of ids have ended, which it publishes unless requested is true, and counts
// the outcomes. A record without an outcome, because its Request was replaced by one of the sweep of a cancelled job, is
// requested once more. open is the number of records that have not ended.
func (r *repository) settleRecords(
	ctx context.Context, job core.Job, organization string, ids []string, requested bool,
) (settled core.Totals, open int, err error) {
	for round := 0; round < 2 && len(ids) > 0; round++ {
		published := round > 0 || !requested
		if published {
			if err := r.publishSweepRequests(ctx, job, organization, ids); err != nil {
				return settled, open, err
			}
		}
		waiting, err := r.waitForRecords(ctx, job, organization, ids)
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
		err = r.eachDocument(ctx, job, ended, func(id string, stored core.StoredDocument, found bool) {
			rejected := r.c.deps.DeadLetters.Has(r.Code, organization, id)
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

// waitForRecords waits until no Request for one of ids is in the queue. It returns the remaining ids when none has ended for
// SweepTimeout, since a record is retried without limit.
func (r *repository) waitForRecords(
	ctx context.Context, job core.Job, organization string, ids []string,
) (map[string]struct{}, error) {
	left, since := len(ids)+1, time.Now()
	for try := 0; ; try++ {
		pending, err := r.c.deps.Requests.PendingRecords(ctx, r.Code, organization)
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
		if len(open) > 0 && r.jobEnded(ctx, job.ID) {
			return nil, errSweepEnded
		}
		if len(open) == 0 || time.Since(since) > r.c.cfg.SweepTimeout {
			return open, nil
		}
		if err := sleep(r.c.draining, backoff(try, 20*time.Millisecond, time.Second)); err != nil {
			return nil, err
		}
	}
}
