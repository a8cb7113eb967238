package run

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/consumers/loop"
	"tutti/internal/core"
	"tutti/internal/retry"
)

// sweepConcurrency bounds the concurrent calls of a sweep.
const sweepConcurrency = 16

// sweepChunk is how many documents a sweep processes before it checks whether its job has ended.
const sweepChunk = 256

// recordRequests publishes record Requests for a job, and waits for their outcomes.
type recordRequests struct{ *repository }

// requestAgain publishes a record Request for each id, waits until they have ended, and counts the documents that were
// removed and the records that were rejected.
func (q *recordRequests) requestAgain(ctx context.Context, job core.Job, organization string, ids []string) (sweepResult, error) {
	ids, err := q.notRejected(ctx, job, organization, ids)
	if err != nil {
		return sweepResult{}, err
	}
	settled, open, err := q.settle(ctx, job, organization, ids, false)
	swept := sweepResult{removed: settled.Removed, rejected: settled.Rejected}
	if open > 0 {
		swept.guard = &core.JobError{Code: core.JobErrorSweepIncomplete, Message: fmt.Sprintf(
			"%d records that the run did not see could not be requested yet; they will be, and removed if they no longer exist", open)}
	}
	return swept, err
}

// notRejected returns those of ids that no page of the job rejected: a rejected record was seen, and is already counted.
func (q *recordRequests) notRejected(ctx context.Context, job core.Job, organization string, ids []string) ([]string, error) {
	var mu sync.Mutex
	var left []string
	err := q.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		if q.Outcomes.HasDeadLetter(organization, id) {
			letter, err := q.Outcomes.FindDeadLetter(ctx, organization, id)
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
func (q *recordRequests) settle(
	ctx context.Context, job core.Job, organization string, ids []string, requested bool,
) (settled core.Totals, open int, err error) {
	for round := 0; round < 2 && len(ids) > 0; round++ {
		published := round > 0 || !requested
		if published {
			if err := q.publish(ctx, job, organization, ids); err != nil {
				return settled, open, err
			}
		}
		waiting, err := q.wait(ctx, job, organization, ids)
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
		err = q.eachDocument(ctx, job, ended, func(id string, stored core.StoredDocument, found bool) {
			rejected := q.Outcomes.HasDeadLetter(organization, id)
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
// SweepTimeout, since a record is retried without limit.
func (q *recordRequests) wait(
	ctx context.Context, job core.Job, organization string, ids []string,
) (map[string]struct{}, error) {
	left, since := len(ids)+1, time.Now()
	for try := 0; ; try++ {
		pending, err := q.Requests.PendingRecords(ctx, q.Repository.Code, organization)
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
		if len(open) > 0 && q.jobEnded(ctx, job.ID) {
			return nil, loop.ErrJobEnded
		}
		if len(open) == 0 || time.Since(since) > q.SweepTimeout {
			return open, nil
		}
		if err := q.loop.Sleep(retry.Delay(try, 20*time.Millisecond, time.Second)); err != nil {
			return nil, err
		}
	}
}

func (q *recordRequests) publish(ctx context.Context, job core.Job, organization string, ids []string) error {
	return q.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		req := q.childRequest(job, core.ScopeRecord, organization)
		req.RecordID, req.Cause, req.Force, req.AsOf = id, core.CauseSweep, false, job.StartVersion
		return q.loop.RetryUntilStopped(ctx, "publishing a record of a sweep", func() error { return q.Requests.PublishUnlessRemovalPending(ctx, req) })
	})
}

// eachDocument reads documents and calls use with each, on several goroutines.
func (q *recordRequests) eachDocument(
	ctx context.Context, job core.Job, ids []string, use func(id string, d core.StoredDocument, found bool),
) error {
	return q.Outcomes.PauseOnError(q.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		stored, found, err := q.Index.Get(ctx, q.Repository.IndexName, id)
		if err == nil {
			use(id, stored, found)
		}
		return err
	}))
}

// eachUntilJobEnds calls f for each id, concurrently, and returns loop.ErrJobEnded soon after the job has ended.
func (q *recordRequests) eachUntilJobEnds(ctx context.Context, job core.Job, ids []string, f func(ctx context.Context, id string) error) error {
	for chunk := range slices.Chunk(ids, sweepChunk) {
		if q.jobEnded(ctx, job.ID) {
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
