package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// maxWaiting is how many ended spans may wait to be sent; further ones are dropped.
	maxWaiting = 4096
	// batchSize is how many spans one request has, sendEvery how long they wait for others, and sendTimeout how long a request may take.
	batchSize   = 512
	sendEvery   = 2 * time.Second
	sendTimeout = 10 * time.Second
	// stopTimeout bounds the last requests when the process stops.
	stopTimeout = 3 * time.Second
	// logEvery is the shortest time between two log lines about failed requests.
	logEvery = time.Minute
)

// batches sends ended spans in batches, one at a time. Unlike the SDK's own processor it counts what it drops, ends its request in flight
// when the time for a stop is over, and writes failures to the program's log.
type batches struct {
	cfg Config
	out *otlptrace.Exporter
	// requests is the context of all requests, full wakes the sender early, stopping is closed by Shutdown, and done by the sender.
	requests       context.Context //nolint:containedctx // batches own the requests, and end them in Shutdown
	cancel         context.CancelFunc
	full           chan struct{}
	stopping, done chan struct{}
	// logged is when a failure was last logged, by the sender.
	logged time.Time

	mu      sync.Mutex
	waiting []sdk.ReadOnlySpan
	stopped bool
}

var _ sdk.SpanProcessor = (*batches)(nil)

// newBatches returns batches, which must be shut down.
func newBatches(cfg Config, c *client) *batches {
	b := &batches{
		cfg: cfg, out: otlptrace.NewUnstarted(c), full: make(chan struct{}, 1), stopping: make(chan struct{}), done: make(chan struct{}),
	}
	b.requests, b.cancel = context.WithCancel(context.Background())
	go b.run()
	return b
}

// OnStart implements sdk.SpanProcessor.
func (b *batches) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor. It does not block.
func (b *batches) OnEnd(s sdk.ReadOnlySpan) {
	b.mu.Lock()
	taken := !b.stopped && len(b.waiting) < maxWaiting
	if taken {
		b.waiting = append(b.waiting, s)
	}
	isFull := len(b.waiting) >= batchSize
	b.mu.Unlock()
	if !taken {
		b.cfg.Metrics.count(resultDropped, 1)
	}
	if isFull {
		b.wake()
	}
}

func (b *batches) wake() {
	select {
	case b.full <- struct{}{}:
	default:
	}
}

// ForceFlush implements sdk.SpanProcessor: it has the waiting spans sent now, and does not wait for that.
func (b *batches) ForceFlush(context.Context) error {
	b.wake()
	return nil
}

// Shutdown implements sdk.SpanProcessor: it sends the waiting spans until ctx ends, and drops the rest, which is no error.
func (b *batches) Shutdown(ctx context.Context) error {
	b.mu.Lock()
	again := b.stopped
	b.stopped = true
	b.mu.Unlock()
	if !again {
		close(b.stopping)
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		b.cancel()
		<-b.done
	}
	b.cancel()
	return nil
}

// run sends batches until Shutdown.
func (b *batches) run() {
	defer close(b.done)
	ticker := time.NewTicker(sendEvery)
	defer ticker.Stop()
	client := b.out
	_ = client.Start(b.requests) // it has nothing to do, and cannot fail
	for {
		select {
		case <-ticker.C:
		case <-b.full:
		case <-b.stopping:
			b.sendWaiting()
			_ = client.Shutdown(b.requests) // it closes idle connections
			return
		}
		b.sendWaiting()
	}
}

// sendWaiting sends what waits.
func (b *batches) sendWaiting() {
	for batch := b.take(); len(batch) > 0; batch = b.take() {
		if b.requests.Err() != nil { // the time to stop is over
			b.cfg.Metrics.count(resultDropped, len(batch))
			continue
		}
		b.send(batch)
	}
}

func (b *batches) take() []sdk.ReadOnlySpan {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), batchSize)
	batch := b.waiting[:n:n]
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
	}
	return batch
}

func (b *batches) send(batch []sdk.ReadOnlySpan) {
	ctx, cancel := context.WithTimeout(b.requests, sendTimeout)
	defer cancel()
	err := b.out.ExportSpans(ctx, batch)
	if err == nil {
		b.cfg.Metrics.count(resultSent, len(batch))
		return
	}
	b.cfg.Metrics.count(resultFailed, len(batch))
	if now := time.Now(); b.logged.IsZero() || now.Sub(b.logged) >= logEvery {
		b.logged = now
		b.cfg.Logger.Warn("traces could not be sent", "spans", len(batch), "err", err)
	}
}
