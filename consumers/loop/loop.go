package loop

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
	"tutti/internal/retry"
)

// Source is one durable consumer. Fetch returns at most max messages as soon as one is available, and none after wait.
type Source interface {
	Fetch(ctx context.Context, max, maxBytes int, wait time.Duration) ([]core.Message, error)
}

// Requests publishes the Requests of messages again.
type Requests interface {
	// PublishUnlessRemovalPending publishes r unless the pending Request of the same record stands (core.Request.MergeWithPending),
	// which is success too.
	PublishUnlessRemovalPending(ctx context.Context, r core.Request) error
	// Republish publishes r, which is m's Request with or without changes, on its subject again with m's attempts and version,
	// not to be processed before after has passed, unless a newer Request is pending.
	Republish(ctx context.Context, m core.Message, r core.Request, after time.Duration) error
}

// Cells are named compare-and-set cells.
type Cells interface {
	Cell(ctx context.Context, name string) (value string, revision uint64, err error)
	SetCell(ctx context.Context, name, value string, revision uint64) error
}

// Config holds the settings of a Loop; all are required.
type Config struct {
	// Repository is the code of the repository.
	Repository string
	Logger     *slog.Logger
	// AckWait is the consumers' ack wait.
	AckWait time.Duration
	// MaxDeliver is the number of deliveries after which the queue drops a message.
	MaxDeliver int
	// RetryBase and RetryMax bound the backoff between attempts.
	RetryBase, RetryMax time.Duration
}

// Loop pulls the messages of one repository.
type Loop struct {
	*Process
	Pause    *Pause
	cfg      Config
	log      *slog.Logger
	requests Requests
	cells    Cells
}

// New returns a Loop that is paused until the first check of the index.
func New(p *Process, requests Requests, cells Cells, cfg Config) *Loop {
	return &Loop{
		Process: p, Pause: newPause(cfg.Logger, "the first check of the index has not ended"),
		cfg: cfg, log: cfg.Logger, requests: requests, cells: cells,
	}
}

// Handler processes a message in flight: it ends it, and calls Release. It may call free to free its slot earlier.
type Handler func(ctx context.Context, m core.Message, free func())

// Bounds of one pull.
const (
	fetchWait  = 5 * time.Second
	fetchBytes = 1 << 20
)

// Pull fetches messages from src and starts handle for each, at most limit at a time, and none while the repository is
// paused, until the process stops.
func (l *Loop) Pull(class core.Class, src Source, limit int, handle Handler) {
	ctx := l.draining
	w := newWorker(l, limit, handle)
	for try := 0; ; {
		if l.AwaitIndex() != nil || w.slots.Acquire(ctx, 1) != nil {
			return
		}
		n := 1
		for n < limit && w.slots.TryAcquire(1) {
			n++
		}
		messages, err := l.fetch(ctx, src, n)
		w.slots.Release(int64(n - len(messages)))
		for _, m := range messages {
			w.take(ctx, m)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			try = 0
			continue
		}
		l.log.Warn("fetching requests", "class", string(class), "err", err)
		if l.Sleep(retry.Delay(try, l.cfg.RetryBase, 5*time.Second)) != nil {
			return
		}
		try++
	}
}

// PullQuarantined is Pull with a quarantine: after a crash, messages that may have caused it are processed alone.
func (l *Loop) PullQuarantined(class core.Class, src Source, limit int, handle Handler) {
	l.Pull(class, src, limit, newQuarantine(l, class).quarantineSuspects(handle))
}

// PullBatches pulls messages for several records from src like Pull, and calls handle with a message for each record, at most
// limit at a time.
func (l *Loop) PullBatches(src Source, limit int, handle Handler) {
	slots := semaphore.NewWeighted(int64(limit))
	l.Pull(core.ClassBatches, src, batchesInFlight, func(ctx context.Context, m core.Message, _ func()) {
		newBatch(l, m).process(ctx, slots, handle)
	})
}

// fetch fetches at most n messages, and stops waiting when the index stops taking writes.
func (l *Loop) fetch(ctx context.Context, src Source, n int) ([]core.Message, error) {
	ctx, cancel := l.Pause.whileRunning(ctx)
	defer cancel()
	messages, err := src.Fetch(ctx, n, fetchBytes, fetchWait)
	if err != nil && ctx.Err() != nil {
		err = nil
	}
	return messages, err
}

// AwaitIndex returns nil once the repository is not paused, and an error when the process stops before.
func (l *Loop) AwaitIndex() error { return l.Pause.wait(l.draining) }
