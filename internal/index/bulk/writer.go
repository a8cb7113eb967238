package bulk

import (
	"context"
	"strconv"
	"sync"
	"time"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

// maxDepth is how many levels deep a document may be nested. A node of Elasticsearch 7 or OpenSearch 2 ends with a StackOverflowError at
// some thousand levels, one of OpenSearch 3 at 1,100 in a free-form object, and would again for each new attempt.
const maxDepth = 400

// Writer collects Writes in batches and sends them. It is safe for concurrent use.
type Writer struct {
	engine Engine
	cfg    Config
	start  time.Time
	// requestContext is the context of all requests: a batch has Writes of several callers, so it cannot use theirs.
	requestContext context.Context //nolint:containedctx // the Writer owns the requests, and ends them in Close
	cancel         context.CancelFunc
	owned          sync.WaitGroup
	wake           chan struct{}
	// closing is closed when Close starts, drained when nothing is left to send, stop when flushLoop may end.
	closing, drained, stop chan struct{}

	mu      sync.Mutex
	closed  bool
	indexes map[string]*indexState
	// concurrency has the limit of each index that was ever written.
	concurrency map[string]*concurrency
	// slots, active and backoffBytes are the sums over all indexes.
	slots, active, backoffBytes int
	// grants counts the uses of slots.
	grants uint64
	// batchBytes is Config.BatchBytes, or less after the engine has reported that a request was too large.
	batchBytes int
	pool       []buffers
	// lastUse is when the pool was last added to, alarm when flushLoop will check next, both by now.
	lastUse, alarm int64
}

// New returns a Writer for engine. An invalid cfg is core.CodeInvalid. The Writer must be closed.
func New(engine Engine, cfg Config) (*Writer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Writer{
		engine: engine, cfg: cfg, start: cfg.Now(), requestContext: ctx, cancel: cancel,
		wake: make(chan struct{}, 1), closing: make(chan struct{}), drained: make(chan struct{}), stop: make(chan struct{}),
		indexes: map[string]*indexState{}, concurrency: map[string]*concurrency{}, batchBytes: cfg.BatchBytes, alarm: noAlarm,
	}
	w.owned.Go(w.flushLoop)
	return w, nil
}

// Add copies wr into the filling batch of index, and adds an entry for its Result to t. It blocks while that batch is full and
// cannot be sent yet, and for the memory of a document larger than Config.BatchBytes, until ctx ends. After an error (ErrClosed,
// ErrSealed, core.CodeUnavailable or core.CodeOverloaded when ctx ended) t has no entry for wr.
func (w *Writer) Add(ctx context.Context, t *Ticket, index string, wr core.Write) error {
	if len(wr.Document) > w.cfg.MaxDocumentBytes {
		return t.reject(wr, core.Result{Type: TypeTooLarge, Reason: "the document is larger than the index accepts"})
	}
	if jsontext.TooDeep(wr.Document, maxDepth) {
		return t.reject(wr, core.Result{
			Type: TypeTooDeep, Reason: "the document is nested more than " + strconv.Itoa(maxDepth) + " levels deep",
			Hint: "nest the record less deeply, then retry",
		})
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

// add is Add for a document whose memory was acquired; when its batch has ended, it calls release unless that is nil.
func (w *Writer) add(ctx context.Context, t *Ticket, index string, wr core.Write, release func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, err := w.batchFor(ctx, index, estimateSize(wr))
	if err != nil {
		return err
	}
	slot, ok := t.addSlot(b)
	if !ok {
		return ErrSealed
	}
	if release != nil {
		b.release = release // the batch is too full for another document
	}
	b.spans.Add(ctx)
	b.add(w.engine, wr, itemState{ticket: t, slot: slot, deadline: w.deadline(wr)}, w.batchBytes)
	if len(b.body) >= w.batchBytes || len(b.items) >= w.cfg.BatchCount || len(b.body) >= SmallBatchBytes && w.cfg.Small != nil && w.cfg.Small() {
		b.full, b.due = true, true
		w.schedule()
	}
	return nil
}

// reject ends a Write whose document exceeds a limit.
func (t *Ticket) reject(wr core.Write, r core.Result) error {
	r.Outcome, r.Rejected = core.OutcomeRejected, core.NewDeadLetterDocument(wr.Document)
	if !t.addResult(r) {
		return ErrSealed
	}
	return nil
}

// deadline returns when wr becomes too old to be sent. A delete has no body: it counts from now.
func (w *Writer) deadline(wr core.Write) int64 {
	if wr.Op == core.OpDelete || wr.FetchedAt.IsZero() {
		return w.now() + int64(w.cfg.MaxBodyAge)
	}
	return int64(wr.FetchedAt.Sub(w.start) + w.cfg.MaxBodyAge)
}

// batchFor returns the filling batch of index once size bytes fit in it. It is called with the Writer locked, and unlocks it while
// waiting.
func (w *Writer) batchFor(ctx context.Context, index string, size int) (*batch, error) {
	for {
		if w.closed {
			return nil, ErrClosed
		}
		l := w.indexState(index)
		if l.filling == nil {
			l.filling = w.startBatch(l)
			return l.filling, nil
		}
		if !l.filling.full && (len(l.filling.items) == 0 || len(l.filling.body)+size <= w.batchBytes) {
			return l.filling, nil
		}
		l.filling.full, l.filling.due = true, true
		w.schedule()
		if l.filling == nil {
			continue
		}
		if err := w.waitLaunched(ctx, l); err != nil {
			return nil, err
		}
	}
}

// waitLaunched waits until the filling batch is being sent. It is called with the Writer locked, and unlocks it while waiting.
func (w *Writer) waitLaunched(ctx context.Context, l *indexState) error {
	if l.launched == nil {
		l.launched = make(chan struct{})
	}
	room := l.launched
	w.mu.Unlock()
	defer w.mu.Lock()
	select {
	case <-room:
		return nil
	case <-w.closing:
		return ErrClosed
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "waiting for space in a bulk batch", ctx.Err())
	}
}

// MaxBodyAge returns Config.MaxBodyAge.
func (w *Writer) MaxBodyAge() time.Duration { return w.cfg.MaxBodyAge }

// Close sends the remaining Writes and waits for them. It does not retry when the engine is overloaded: such Writes end as
// core.OutcomeRetry. When ctx ends first, the requests in flight are cancelled, every remaining Write ends as core.OutcomeRetry,
// and the error is core.CodeUnavailable. No goroutine remains in either case. Further calls wait like the first.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.closing)
		for _, l := range w.indexes {
			if l.filling != nil {
				l.filling.due = true
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

// checkDrained records that a closing Writer has nothing left to send. The Writer is locked.
func (w *Writer) checkDrained() {
	if !w.closed || len(w.indexes) > 0 {
		return
	}
	select {
	case <-w.drained:
	default:
		close(w.drained)
		close(w.stop)
	}
}
