package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// requests are the Requests for records that a sweep publishes, and what their outcomes are.
type requests struct{ cfg Config }

// sweepConcurrency bounds the concurrent calls of a sweep.
const sweepConcurrency = 16

// sweepChunk is how many documents a sweep processes before it checks whether its job has ended.
const sweepChunk = 256

// requestAgain publishes a record Request for each id, waits until they have ended, and counts the documents that were
// removed and the records that were rejected.
func (q *requests) requestAgain(ctx context.Context, job core.Job, organization string, ids []string) (Result, error) {
	ids, err := q.notRejected(ctx, job, organization, ids)
	if err != nil {
		return Result{}, err
	}
	settled, open, err := q.settle(ctx, job, organization, ids, false)
	swept := Result{Removed: settled.Removed, Rejected: settled.Rejected}
	if state.Compares(job, q.cfg.Split != nil) {
		swept.Surplus = int64(len(ids))
	}
	if open > 0 {
		swept.Guard = &core.JobError{Code: core.JobErrorSweepIncomplete, Message: fmt.Sprintf(
			"%d records that the run did not see could not be requested yet; they will be, and removed if they no longer exist", open)}
	}
	return swept, err
}

// notRejected returns those of ids that no page of the job rejected: a rejected record was seen, and is already counted.
func (q *requests) notRejected(ctx context.Context, job core.Job, organization string, ids []string) ([]string, error) {
	var mu sync.Mutex
	var left []string
	err := q.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		if q.cfg.Outcomes.HasDeadLetter(organization, id) {
			letter, err := q.cfg.Outcomes.FindDeadLetter(ctx, organization, id)
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
func (q *requests) settle(
	ctx context.Context, job core.Job, organization string, ids []string, requested bool,
) (settled core.Totals, open int, err error) {
	if q.cfg.Split != nil {
		if requested {
			return q.settleRequested(ctx, job, organization, ids)
		}
		return q.settleDocuments(ctx, job, organization, ids)
	}
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
			rejected := q.cfg.Outcomes.HasDeadLetter(organization, id)
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
func (q *requests) wait(
	ctx context.Context, job core.Job, organization string, ids []string,
) (map[string]struct{}, error) {
	left, since := len(ids)+1, time.Now()
	for try := 0; ; try++ {
		pending, err := q.cfg.Requests.PendingRecords(ctx, q.cfg.Repository.Code, organization)
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
		if len(open) > 0 && q.cfg.Jobs.Ended(ctx, job.ID) {
			return nil, loop.ErrJobEnded
		}
		if len(open) == 0 {
			return open, nil
		}
		if time.Since(since) > q.cfg.Timeout {
			_, waited, err := q.cfg.Calls.Organizations(ctx, job)
			if err != nil && (q.cfg.Loop.Stopping(ctx) || errors.Is(err, loop.ErrJobEnded)) {
				return nil, err
			}
			if err != nil || !waited {
				return open, nil
			}
			// The repository answers again; the records wait for their next attempt.
			left, since, try = len(ids)+1, time.Now().Add(q.cfg.Timeout), 0
		}
		if err := q.cfg.Loop.Sleep(retry.Delay(try, 20*time.Millisecond, time.Second)); err != nil {
			return nil, err
		}
	}
}

func (q *requests) publish(ctx context.Context, job core.Job, organization string, ids []string) error {
	for chunk := range slices.Chunk(ids, sweepChunk) {
		if q.cfg.Jobs.Ended(ctx, job.ID) {
			return loop.ErrJobEnded
		}
		err := q.cfg.Loop.PublishEach(ctx, func(yield func(core.Request) bool) {
			for _, id := range chunk {
				req := state.Child(job, core.ScopeRecord, organization)
				req.RecordID, req.Cause, req.Force, req.AsOf = id, core.CauseSweep, false, job.StartVersion
				if !yield(req) {
					return
				}
			}
		}, func(core.Request) {})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachDocument reads documents and calls use with each, on several goroutines.
func (q *requests) eachDocument(
	ctx context.Context, job core.Job, ids []string, use func(id string, d core.StoredDocument, found bool),
) error {
	return q.cfg.Outcomes.PauseOnError(q.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		stored, found, err := q.cfg.Index.Get(ctx, q.cfg.Repository.IndexName, id)
		if err == nil {
			use(id, stored, found)
		}
		return err
	}))
}

// eachUntilJobEnds calls f for each id, concurrently, and returns loop.ErrJobEnded soon after the job has ended.
func (q *requests) eachUntilJobEnds(ctx context.Context, job core.Job, ids []string, f func(ctx context.Context, id string) error) error {
	for chunk := range slices.Chunk(ids, sweepChunk) {
		if q.cfg.Jobs.Ended(ctx, job.ID) {
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
