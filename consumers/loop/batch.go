package loop

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// batchesInFlight is the maximum number of batches of a repository in flight. Their records count towards the limit of records.
const batchesInFlight = 16

// publishAttempts is how often publishing a message for a record of a batch is tried before the batch is requeued instead.
const publishAttempts = 3

// batch is a message for several records, in flight.
type batch struct {
	l       *Loop
	message core.Message
	// open counts the records that have not ended; done is closed when the last one ends. failed is set when a record must be
	// redelivered with the batch.
	open   atomic.Int64
	failed atomic.Bool
	done   chan struct{}
}

func newBatch(l *Loop, m core.Message) *batch {
	b := &batch{l: l, message: m, done: make(chan struct{})}
	b.open.Store(int64(len(m.Request().Records)))
	return b
}

// process calls handle for each record of the batch, as if it had a message of its own, and ends the batch when all of them
// have ended. A record that has to be retried gets a message of its own, so that no record waits for another. When the batch
// is redelivered, all of its records get messages of their own: one of them may have crashed the process, and must not affect
// the others.
func (b *batch) process(ctx context.Context, slots *semaphore.Weighted, handle Handler) {
	l, m := b.l, b.message
	defer l.Release(m)
	for _, k := range m.Request().Records {
		one := &batchedMessage{batch: b, request: m.Request().ForRecord(k)}
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

// endRecord ends one record. With done false the batch is redelivered.
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
	request core.Request
}

var _ core.Message = (*batchedMessage)(nil)

// Request implements core.Message.
func (m *batchedMessage) Request() core.Request { return m.request }

// Version implements core.Message: the version of the batch.
func (m *batchedMessage) Version() core.Version { return m.batch.message.Version() }

// Deliveries implements core.Message: the deliveries of the batch.
func (m *batchedMessage) Deliveries() int { return m.batch.message.Deliveries() }

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
		l.cfg.Logger.InfoContext(ctx, "publishing a record of a batch as a message of its own failed", "organization", req.Organization,
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
