package queue

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
)

const (
	// publishConcurrency is how many Requests of one PublishAll are under way.
	publishConcurrency = 64
	// minBatch is how many records travel together at least: fewer are sent one by one, and replace older ones.
	minBatch = 8
	// batchShare is the share of maxPending that may be batches: more than a few wait only where records are not worked
	// on, and then it counts that newer Requests replace older ones.
	batchShare = 1000
	// batchCountMaxAge is how old the number of waiting batches may be that PublishAll goes by.
	batchCountMaxAge = 500 * time.Millisecond
)

// PublishAll is Publish for many Requests, for which the server syncs far less often: those that index records of one
// repository for one cause travel together, up to core.MaxBatchRecords in a message. Such a message replaces none that
// waits for one of its records, and none replaces it; versions decide where a record is in several. While many batches
// wait, every Request travels by itself and replaces an older one as always. A few that come while others are under way
// are gathered with those of other callers. It returns one error for each Request, in
// order, or nil when all are stored.
func (q *Queue) PublishAll(ctx context.Context, rs []core.Request) []error {
	errs := make([]error, len(rs))
	group := errgroup.Group{}
	group.SetLimit(publishConcurrency)
	publish := func(members []int) {
		group.Go(func() error {
			err := q.publishBatch(ctx, rs, members)
			for _, i := range members {
				errs[i] = err
				q.metrics.countPublished(err)
			}
			return nil
		})
	}
	for _, members := range groupBatches(rs) {
		if len(members) >= minBatch && q.batches.admit(ctx, q) {
			publish(members)
			continue
		}
		for i := range members {
			publish(members[i : i+1])
		}
	}
	_ = group.Wait() // the errors are each Request's own
	for _, err := range errs {
		if err != nil {
			return errs
		}
	}
	return nil
}

// groupBatches groups the Requests that may travel together, by their places in rs; all others stand alone.
func groupBatches(rs []core.Request) [][]int {
	type group struct {
		repository string
		cause      core.Cause
	}
	var batches [][]int
	open := make(map[group]int) // the batch of a group that has room
	for i, r := range rs {
		if !batchable(r) {
			batches = append(batches, []int{i})
			continue
		}
		g := group{r.Repository, r.Cause}
		b, ok := open[g]
		if !ok || len(batches[b]) == core.MaxBatchRecords {
			b = len(batches)
			open[g] = b
			batches = append(batches, nil)
		}
		batches[b] = append(batches[b], i)
	}
	return batches
}

// batchable reports whether nothing that is worked by is lost when r travels in a batch.
func batchable(r core.Request) bool {
	return r.Scope == core.ScopeRecord && r.Kind == core.KindIndex && r.JobID == "" && r.Attempts == 0 &&
		r.AsOf == 0 && !r.Force && !r.Rebuild && r.NotBefore.IsZero() && r.Cause != core.CauseOutbox && r.Validate() == nil
}

func (q *Queue) publishBatch(ctx context.Context, rs []core.Request, members []int) error {
	first := rs[members[0]]
	if first.AsOf > 0 {
		return q.publishUnlessRemovalPending(ctx, first)
	}
	if len(members) == 1 {
		return q.gather.publish(ctx, q, first)
	}
	batch := core.Request{
		ID: uuid.Must(uuid.NewV7()).String(), Kind: core.KindIndex, Scope: core.ScopeRecords,
		Repository: first.Repository, Cause: first.Cause, ReceivedAt: first.ReceivedAt, Traceparent: first.Traceparent,
		Records: make([]core.RecordKey, 0, len(members)),
	}
	named := make(map[core.RecordKey]struct{}, len(members))
	for _, m := range members {
		key := core.RecordKey{Organization: rs[m].Organization, ID: rs[m].RecordID}
		if _, twice := named[key]; !twice {
			named[key] = struct{}{}
			key.RequestID = rs[m].ID
			batch.Records = append(batch.Records, key)
		}
	}
	return q.publishRequest(ctx, batch)
}

// batchLimiter bounds how many records wait in batches: the stream's own bound counts messages.
type batchLimiter struct {
	mu        sync.Mutex
	waiting   int64
	countedAt time.Time
}

// admit counts a batch that is about to be published; false when too many wait, or nobody knows. Of those that ask at the
// same time one asks the server; the others go by what was known before.
func (w *batchLimiter) admit(ctx context.Context, q *Queue) bool {
	limit := max(2, int64(q.cfg.MaxPending/batchShare))
	w.mu.Lock()
	stale := time.Since(w.countedAt) > batchCountMaxAge
	if stale {
		w.countedAt = time.Now()
	}
	w.mu.Unlock()
	if stale {
		waiting, err := q.countBatches(ctx)
		if err != nil {
			waiting = limit // the publishes will say what is wrong
		}
		w.mu.Lock()
		w.waiting, w.countedAt = waiting, time.Now()
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting >= limit {
		return false
	}
	w.waiting++
	return true
}

// countBatches returns the number of batches of any repository that wait or are in hand.
func (q *Queue) countBatches(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	total := int64(0)
	for _, c := range q.openConsumers() {
		if c.class != core.ClassBatches {
			continue
		}
		consumer, err := q.requests.Consumer(ctx, c.cfg.Durable)
		if err != nil {
			return 0, wrapError("counting the batches that wait", err)
		}
		state := consumer.CachedInfo()
		total += int64(state.NumPending) + int64(state.NumAckPending)
	}
	return total, nil
}
