package queue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"tutti/internal/base/span"
	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
)

const (
	// publishConcurrency is how many Requests of one PublishAll are in flight.
	publishConcurrency = 64
	// minBatch is the smallest batch: fewer records are published one by one and replace older Requests.
	minBatch = 8
	// batchShare limits the pending batches to MaxPending/batchShare. More are pending only while records are not processed,
	// and then newer Requests should replace older ones.
	batchShare = 1000
	// batchCountMaxAge is how old the count of pending batches may be.
	batchCountMaxAge = 500 * time.Millisecond
)

// PublishAll is Publish for many Requests, with far fewer syncs on the server: Requests to index records of one
// repository for one cause share a message, up to core.MaxBatchRecords. A batch replaces no pending Request of its
// records, and no Request replaces it; versions decide if a record is in several. While many batches are pending,
// every Request is published by itself and replaces an older one. Small groups that arrive while others are in flight
// are combined with those of other callers. It returns one error for each Request, in order, or nil when all are
// stored.
func (p *publisher) PublishAll(ctx context.Context, rs []core.Request) []error {
	errs := make([]error, len(rs))
	rs = withTraceparent(ctx, rs)
	group := errgroup.Group{}
	group.SetLimit(publishConcurrency)
	publish := func(members []int) {
		group.Go(func() error {
			err := p.publishBatch(ctx, rs, members)
			for _, i := range members {
				errs[i] = err
				p.metrics.countPublished(err)
			}
			return nil
		})
	}
	for _, members := range groupBatches(rs) {
		records := byRecord(rs, members)
		if len(records) >= minBatch && p.batches.admit(ctx, p) {
			publish(members)
			continue
		}
		for _, same := range records {
			publish(same)
		}
	}
	_ = group.Wait() // each Request has its own error
	for _, err := range errs {
		if err != nil {
			return errs
		}
	}
	return nil
}

// withTraceparent returns rs, of which those without a Traceparent have that of the span of ctx.
func withTraceparent(ctx context.Context, rs []core.Request) []core.Request {
	parent := span.Traceparent(ctx)
	if parent == "" {
		return rs
	}
	rs = slices.Clone(rs)
	for i := range rs {
		rs[i].Traceparent = cmp.Or(rs[i].Traceparent, parent)
	}
	return rs
}

// groupBatches groups the Requests that may share a batch, by their positions in rs; each other Request is its own
// group.
func groupBatches(rs []core.Request) [][]int {
	type group struct {
		repository string
		cause      core.Cause
	}
	var batches [][]int
	open := make(map[group]int) // the last batch of each group
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

// byRecord groups the members of a batch by their record: Requests for the same record become one.
func byRecord(rs []core.Request, members []int) [][]int {
	records := make([][]int, 0, len(members))
	at := make(map[core.RecordKey]int, len(members))
	for _, m := range members {
		key := core.RecordKey{Organization: rs[m].Organization, ID: rs[m].RecordID}
		i, again := at[key]
		if !again {
			i = len(records)
			at[key] = i
			records = append(records, nil)
		}
		records[i] = append(records[i], m)
	}
	return records
}

// batchable reports whether r may be in a batch without losing anything that its processing needs.
func batchable(r core.Request) bool {
	return r.Scope == core.ScopeRecord && r.Kind == core.KindIndex && r.Document == "" && r.Part == nil && r.JobID == "" && r.Attempts == 0 &&
		r.AsOf == 0 && !r.Force && !r.Rebuild && !r.Difference && r.NotBefore.IsZero() && r.Cause != core.CauseOutbox && r.Validate() == nil
}

func (p *publisher) publishBatch(ctx context.Context, rs []core.Request, members []int) error {
	first := rs[members[0]]
	if first.AsOf > 0 {
		return p.publish(ctx, first, true)
	}
	records := byRecord(rs, members)
	if len(records) == 1 {
		return p.gather.publish(ctx, p, first)
	}
	batch := core.Request{
		ID: uuid.Must(uuid.NewV7()).String(), Kind: core.KindIndex, Scope: core.ScopeRecords,
		Repository: first.Repository, Cause: first.Cause, ReceivedAt: first.ReceivedAt, Traceparent: first.Traceparent,
		Records: make([]core.RecordKey, 0, len(records)),
	}
	oneTrace := !slices.ContainsFunc(members, func(m int) bool { return rs[m].Traceparent != first.Traceparent })
	if !oneTrace {
		batch.Traceparent = ""
	}
	for _, same := range records {
		r := rs[same[0]]
		key := core.RecordKey{Organization: r.Organization, ID: r.RecordID, RequestID: r.ID}
		if !oneTrace {
			key.Traceparent = r.Traceparent
		}
		batch.Records = append(batch.Records, key)
	}
	return p.publishNewest(ctx, batch)
}

// batchLimiter limits how many batches are pending: the stream's own limit counts messages.
type batchLimiter struct {
	mu        sync.Mutex
	waiting   int64
	countedAt time.Time
}

// admit counts a batch that is about to be published; false when too many are pending. If several callers find the count
// too old, one of them requests it from the server and the others use the previous count.
func (w *batchLimiter) admit(ctx context.Context, p *publisher) bool {
	limit := int64(maxBatches(p.maxPending))
	w.mu.Lock()
	stale := time.Since(w.countedAt) > batchCountMaxAge
	if stale {
		w.countedAt = time.Now()
	}
	w.mu.Unlock()
	if stale {
		waiting, err := p.countBatches(ctx)
		if err != nil {
			waiting = limit // the publish returns the cause
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

// maxBatches returns how many batches may be pending of so many Requests.
func maxBatches(maxPending int) int { return max(2, maxPending/batchShare) }

// countBatches returns the number of batches of all repositories that are pending or in flight.
func (p *publisher) countBatches(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, natsconn.CallTimeout)
	defer cancel()
	total := int64(0)
	for _, c := range p.openConsumers() {
		if c.class != core.ClassBatches {
			continue
		}
		consumer, err := p.requests.Consumer(ctx, c.cfg.Durable)
		if err != nil {
			return 0, natsconn.WrapError("counting the pending batches", err)
		}
		state := consumer.CachedInfo()
		total += int64(state.NumPending) + int64(state.NumAckPending)
	}
	return total, nil
}
