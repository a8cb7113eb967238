package bulk

import (
	"context"
	"sync"
	"time"

	"tutti/internal/core"
)

// Writer gathers Writes into batches and sends them. It is safe for many goroutines.
type Writer struct {
	engine Engine
	cfg    Config
	start  time.Time
	// flying is the context of all requests: a batch carries Writes of many callers, so that none of theirs can be used.
	flying context.Context //nolint:containedctx // the owner of the flights is the Writer, which ends them in Close
	cancel context.CancelFunc
	owned  sync.WaitGroup
	wake   chan struct{}
	// closing is closed when Close begins, drained when nothing is left to send, stop when keepAge may end.
	closing, drained, stop chan struct{}

	mu     sync.Mutex
	closed bool
	lanes  map[string]*lane
	// paces holds the pace of each index that was ever written.
	paces map[string]*concurrency
	// onWire, flights and parkedBytes are the sums over all lanes.
	onWire, flights, parkedBytes int
	// grants counts the uses of slots.
	grants uint64
	// batchBytes is Config.BatchBytes, or less once the engine said that a request was too large.
	batchBytes int
	pool       []storage
	// lastUse is when the pool was last added to, alarm when keepAge will look next, both by now.
	lastUse, alarm int64
}

// New makes a Writer on engine. A fault of cfg is core.CodeInvalid. The Writer must be closed.
func New(engine Engine, cfg Config) (*Writer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Writer{
		engine: engine, cfg: cfg, start: cfg.Now(), flying: ctx, cancel: cancel,
		wake: make(chan struct{}, 1), closing: make(chan struct{}), drained: make(chan struct{}), stop: make(chan struct{}),
		lanes: map[string]*lane{}, paces: map[string]*concurrency{}, batchBytes: cfg.BatchBytes, alarm: never,
	}
	w.owned.Go(w.keepAge)
	return w, nil
}

// Add copies wr into the batch of index that fills, and opens a place for its Result in t. It waits while that batch
// is full and cannot be sent yet, and for the memory of a document over Config.BatchBytes; ctx ends the wait. After an error
// (ErrClosed, ErrSealed, core.CodeUnavailable or core.CodeOverloaded when ctx ended) t has no place for wr.
func (w *Writer) Add(ctx context.Context, t *Ticket, index string, wr core.Write) error {
	if len(wr.Document) > w.cfg.MaxDocumentBytes {
		return t.refuse(wr)
	}
	if w.cfg.Memory == nil || len(wr.Document) <= w.cfg.BatchBytes {
		return w.add(ctx, t, index, wr, nil)
	}
	release, err := w.cfg.Memory.AcquireFor(ctx, index, int64(w.cfg.DocumentWeight)*int64(len(wr.Document)))
	if err != nil {
		return err
	}
	if err = w.add(ctx, t, index, wr, release); err != nil {
		release()
	}
	return err
}

// add is Add for a document whose memory was acquired; the batch calls release, if it is not nil, when it has ended.
func (w *Writer) add(ctx context.Context, t *Ticket, index string, wr core.Write, release func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, err := w.room(ctx, index, need(wr))
	if err != nil {
		return err
	}
	slot, ok := t.take(b)
	if !ok {
		return ErrSealed
	}
	if release != nil {
		b.release = release // it has no room for another document
	}
	b.add(w.engine, wr, meta{ticket: t, slot: slot, deadline: w.deadline(wr)}, w.batchBytes)
	if len(b.body) >= w.batchBytes || len(b.items) >= w.cfg.BatchCount {
		b.full, b.due = true, true
		w.schedule()
	}
	return nil
}

// refuse ends a Write whose document is over the limit.
func (t *Ticket) refuse(wr core.Write) error {
	if !t.settle(core.Result{
		Outcome: core.OutcomeRejected, Type: TypeTooLarge, Reason: "the document is larger than the index takes",
		Rejected: core.NewDeadLetterDocument(wr.Document),
	}) {
		return ErrSealed
	}
	return nil
}

// deadline is when wr becomes too old to be sent. A delete has no body that could grow old: it counts from now.
func (w *Writer) deadline(wr core.Write) int64 {
	if wr.Op == core.OpDelete || wr.FetchedAt.IsZero() {
		return w.now() + int64(w.cfg.MaxBodyAge)
	}
	return int64(wr.FetchedAt.Sub(w.start) + w.cfg.MaxBodyAge)
}

// room returns the batch of index that fills, once it has room for size bytes. The Writer is locked, but not while this
// waits.
func (w *Writer) room(ctx context.Context, index string, size int) (*batch, error) {
	for {
		if w.closed {
			return nil, ErrClosed
		}
		l := w.lane(index)
		if l.fill == nil {
			l.fill = w.startBatch(l)
			return l.fill, nil
		}
		if !l.fill.full && (len(l.fill.items) == 0 || len(l.fill.body)+size <= w.batchBytes) {
			return l.fill, nil
		}
		l.fill.full, l.fill.due = true, true
		w.schedule()
		if l.fill == nil {
			continue
		}
		if err := w.waitRoom(ctx, l); err != nil {
			return nil, err
		}
	}
}

// waitRoom waits until the batch that fills has been launched. The Writer is locked, but not while this waits.
func (w *Writer) waitRoom(ctx context.Context, l *lane) error {
	if l.room == nil {
		l.room = make(chan struct{})
	}
	room := l.room
	w.mu.Unlock()
	defer w.mu.Lock()
	select {
	case <-room:
		return nil
	case <-w.closing:
		return ErrClosed
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "waiting for room in a bulk batch", ctx.Err())
	}
}

// MaxBodyAge returns Config.MaxBodyAge.
func (w *Writer) MaxBodyAge() time.Duration { return w.cfg.MaxBodyAge }

// Close sends what is left and waits for it, without sending anything again that the engine is too busy for: that comes
// back as core.OutcomeRetry. When ctx ends first, the requests under way are cancelled, every Write left ends as
// core.OutcomeRetry, and the error is core.CodeUnavailable. No goroutine is left in either case. A second Close waits
// like the first.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.closing)
		for _, l := range w.lanes {
			if l.fill != nil {
				l.fill.due = true
			}
		}
		w.schedule()
		w.checkDrained()
	}
	w.mu.Unlock()
	var err error
	select {
	case <-w.drained:
	case <-ctx.Done():
		w.cancel()
		<-w.drained
		err = core.WrapError(core.CodeUnavailable, "closing the bulk writer before all was written", ctx.Err())
	}
	w.owned.Wait()
	w.cancel()
	return err
}

// checkDrained notes that a closing Writer has nothing left to send. The Writer is locked.
func (w *Writer) checkDrained() {
	if !w.closed || len(w.lanes) > 0 {
		return
	}
	select {
	case <-w.drained:
	default:
		close(w.drained)
		close(w.stop)
	}
}
