package loop

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
	"tutti/internal/retry"
)

// batchesInFlight bounds the batches of a repository in flight; their records are bounded like single records.
const batchesInFlight = 16

// publishAttempts is how often publishing a message for a record of a batch is tried before the batch is requeued instead.
const publishAttempts = 3

// PullBatches pulls messages for several records from src like Pull, and calls handle with a message for each record, at most
// limit at a time.
func (l *Loop) PullBatches(src Source, limit int, handle Handler) {
	slots := semaphore.NewWeighted(int64(limit))
	l.Pull(core.ClassBatches, src, batchesInFlight, func(ctx context.Context, m core.Message, _ func()) {
		l.processBatch(ctx, m, slots, handle)
	})
}

// processBatch processes each record of m as if it had a message of its own, and ends m when all of them have ended. A
// record that has to be retried gets a message of its own, so that no record waits for another. When m is redelivered, all
// of its records do: one of them may have ended the process, and must not affect the others.
func (l *Loop) processBatch(ctx context.Context, m core.Message, slots *semaphore.Weighted, handle Handler) {
	defer l.Release(m)
	b := &batch{l: l, done: make(chan struct{})}
	records := m.Request().Records
	b.open.Store(int64(len(records)))
	for _, k := range records {
		one := &batchedMessage{batch: b, parent: m, request: m.Request().ForRecord(k)}
		if m.Deliveries() > 1 {
			one.requeue(ctx, one.request, 0)
			continue
		}
		if slots.Acquire(l.draining, 1) != nil {
			b.endRecord(false)
			continue
		}
		l.inFlight.Go(func() {
			defer slots.Release(1)
			handle(ctx, one, func() {})
		})
	}
	<-b.done // each record ends, at the latest when the process stops
	if b.failed.Load() {
		l.Requeue(context.WithoutCancel(ctx), m, l.RetryDelay(m, nil))
		return
	}
	l.Ack(ctx, m)
}

// batch is a message for several records, in flight.
type batch struct {
	l *Loop
	// open counts the records that have not ended; done is closed with the last one. failed is set when a record must be
	// redelivered with the batch.
	open   atomic.Int64
	failed atomic.Bool
	done   chan struct{}
}

func (b *batch) endRecord(done bool) {
	if !done {
		b.failed.Store(true)
	}
	if b.open.Add(-1) == 0 {
		close(b.done)
	}
}

// batchedMessage is one record of a batch, as a message of its own.
type batchedMessage struct {
	batch   *batch
	parent  core.Message
	request core.Request
}

var _ core.Message = (*batchedMessage)(nil)

// Request implements core.Message.
func (m *batchedMessage) Request() core.Request { return m.request }

// Version implements core.Message: the version of the batch.
func (m *batchedMessage) Version() core.Version { return m.parent.Version() }

// Deliveries implements core.Message: the deliveries of the batch.
func (m *batchedMessage) Deliveries() int { return m.parent.Deliveries() }

// Ack implements core.Message: it ends the record.
func (m *batchedMessage) Ack(context.Context) error {
	m.batch.endRecord(true)
	return nil
}

// Nak implements core.Message: the record is redelivered with the whole batch.
func (m *batchedMessage) Nak(time.Duration) error {
	m.batch.endRecord(false)
	return nil
}

// InProgress implements core.Message: the batch has its own heartbeat.
func (m *batchedMessage) InProgress() error { return nil }

// requeue publishes a message for the record, with the batch's version and not to be processed before delay has passed. When
// the process stops or the queue does not take it, the record is redelivered with the batch.
func (m *batchedMessage) requeue(ctx context.Context, req core.Request, delay time.Duration) {
	l := m.batch.l
	if l.Stopping(ctx) {
		m.batch.endRecord(false)
		return
	}
	req.Attempts, req.AsOf = Attempts(m)+1, m.Version()
	if delay > 0 {
		req.NotBefore = time.Now().UTC().Add(delay)
	}
	for try := range publishAttempts {
		err := l.requests.PublishUnlessRemovalPending(ctx, req)
		if err == nil {
			m.batch.endRecord(true)
			return
		}
		l.log.Info("publishing a record of a batch as a message of its own", "organization", req.Organization,
			"record_id", req.RecordID, "request_id", req.ID, "err", err)
		if l.Sleep(retry.Delay(try, l.cfg.RetryBase, l.cfg.RetryMax)) != nil {
			break
		}
	}
	m.batch.endRecord(false)
}

// Batched reports whether m is one record of a batch.
func Batched(m core.Message) bool {
	_, batched := m.(*batchedMessage)
	return batched
}
