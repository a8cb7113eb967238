package bulk

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"tutti/internal/core"
)

// minBatchBytes is the smallest batch size that CodeTooLarge reduces batches to.
const minBatchBytes = 64 << 10

var (
	errTooOld = errors.New("the document is too old to be written")
	errClosed = errors.New("the bulk writer is closing")
	errShort  = errors.New("the index returned a different number of results than items")
)

// sender sends one batch to the engine, until each of its items has its Result.
type sender struct {
	w   *Writer
	b   *batch
	out delivery
	// slot: has one of the Writer's slots. backingOff: counted in backoffBytes, with size bytes. stopped: no more retries.
	slot, backingOff, stopped bool
	size                      int
	// depth is the number of splits above the items being sent.
	depth int
}

// run sends the whole batch.
func (s *sender) run() {
	s.send(0, len(s.b.items))
	w, l := s.w, s.b.state
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.slot {
		s.releaseSlot()
	}
	if s.backingOff {
		s.countBackoff(-1)
	} else {
		w.sendEnded(l)
	}
	w.putBuffers(s.b.buffers)
	if s.b.buffers = (buffers{}); s.b.release != nil {
		s.b.release()
	}
	w.schedule()
	w.removeIfIdle(l)
}

// send writes the items [from, to), retrying those for which the engine is overloaded.
func (s *sender) send(from, to int) {
	why := errTooOld
	for attempt := 0; ; attempt++ {
		if to = s.dropExpired(from, to, why); from == to {
			return
		}
		if s.stopped {
			s.retryLater(from, to, core.CodeOverloaded, errClosed)
			return
		}
		results, err := s.write(from, to)
		switch code := core.CodeOf(err); code {
		case "":
			to = s.deliver(from, to, results)
		case core.CodeOverloaded:
			why = err
		case core.CodeTooLarge, core.CodeInvalid:
			s.split(from, to, code, err)
			return
		case core.CodeIndexBlocked:
			s.retryLater(from, to, core.CodeIndexBlocked, err)
			return
		default:
			s.retryLater(from, to, core.CodeUnavailable, err)
			return
		}
		if from == to {
			return
		}
		s.stopped = !s.backoff(from, to, attempt, core.RetryAfterOf(err))
	}
}

// write sends one request and adapts the concurrency to its outcome.
func (s *sender) write(from, to int) ([]core.Result, error) {
	w := s.w
	if err := w.requestContext.Err(); err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "the bulk writer was closed before the request", err)
	}
	w.mu.Lock()
	epoch := s.b.state.concurrency.epoch
	w.mu.Unlock()
	view := s.b.view(from, to, w.start)
	began := time.Now()
	w.cfg.Metrics.begin()
	ctx, call := s.b.spans.Call(w.requestContext, "bulk write")
	results, err := w.engine.Write(ctx, view)
	if err == nil && len(results) != to-from {
		err = core.WrapError(core.CodeUnavailable, "writing a batch", errShort)
	}
	call.Text("index", view.Index)
	call.Int("documents", int64(to-from))
	call.Int("bytes", int64(len(view.Payload())))
	call.End(err)
	w.cfg.Metrics.end(requestCode(err), time.Since(began), len(view.Payload()))
	s.adjustConcurrency(epoch, results, err)
	return results, err
}

// requestCode returns the code of a whole request's error as the Writer handles it, "" for nil.
func requestCode(err error) core.Code {
	switch code := core.CodeOf(err); code {
	case "", core.CodeOverloaded, core.CodeTooLarge, core.CodeInvalid, core.CodeIndexBlocked:
		return code
	default:
		return core.CodeUnavailable
	}
}

// adjustConcurrency adapts the index' concurrency to the outcome of a request.
func (s *sender) adjustConcurrency(epoch int, results []core.Result, err error) {
	busy := core.CodeOf(err) == core.CodeOverloaded || err == nil && slices.ContainsFunc(results, overloaded)
	if !busy && (err != nil || slices.ContainsFunc(results, retried)) {
		return
	}
	w, limiter := s.w, s.b.state.concurrency
	w.mu.Lock()
	var slower bool
	if busy {
		slower = limiter.overload(epoch)
	} else {
		limiter.succeed()
	}
	limit := limiter.limit
	w.mu.Unlock()
	if slower {
		w.cfg.Logger.Warn("the index is overloaded: reducing concurrent bulk requests",
			slog.String("index", s.b.state.index), slog.Int("limit", limit))
	}
}

func overloaded(r core.Result) bool { return retried(r) && r.Code == core.CodeOverloaded }

func retried(r core.Result) bool { return r.Outcome == core.OutcomeRetry }

// deliver delivers the results of the items [from, to), except of those for which the engine was overloaded: it moves these
// together at from, and returns their end.
func (s *sender) deliver(from, to int, results []core.Result) int {
	return s.deliverOrKeep(from, to, func(i int) (core.Result, bool) {
		r := results[i-from]
		switch r.Outcome {
		case core.OutcomeRetry:
			if r.Code == core.CodeOverloaded {
				last := r
				s.b.meta[i].lastResult = &last
				return r, true
			}
			if r.Code == "" {
				r.Code = core.CodeUnavailable
			}
		case core.OutcomeRejected:
			r.Rejected = s.deadLetterDocument(i)
		case core.OutcomeIndexed, core.OutcomeRemoved, core.OutcomeStale, core.OutcomeMismatch, core.OutcomeExcluded:
		}
		return r, false
	})
}

// dropExpired ends the items of [from, to) whose bodies are too old as retries, moves the others together at from, and returns
// their end. why is the reason for items without a result of the engine.
func (s *sender) dropExpired(from, to int, why error) int {
	now := s.w.now()
	if from == to || now < s.b.earliest {
		return to
	}
	return s.deliverOrKeep(from, to, func(i int) (core.Result, bool) {
		if s.b.meta[i].deadline > now {
			return core.Result{}, true
		}
		return s.retryResult(i, core.CodeOverloaded, why), false
	})
}

// retryLater ends the items [from, to) as retries.
func (s *sender) retryLater(from, to int, code core.Code, why error) {
	s.deliverOrKeep(from, to, func(i int) (core.Result, bool) { return s.retryResult(i, code, why), false })
}

// retryResult returns the Result of an item that is not retried here: the engine's last one if it has the same code.
func (s *sender) retryResult(i int, code core.Code, why error) core.Result {
	if last := s.b.meta[i].lastResult; last != nil && last.Code == code {
		return *last
	}
	return core.Result{Outcome: core.OutcomeRetry, Code: code, Reason: why.Error()}
}

// split sends the items [from, to), which the engine rejected as a whole, in halves. A single item is rejected.
func (s *sender) split(from, to int, code core.Code, err error) {
	if to-from == 1 {
		r := core.Result{Outcome: core.OutcomeRejected, Type: TypeInvalidRequest, Reason: err.Error()}
		if code == core.CodeTooLarge {
			r.Type = TypeTooLarge
		}
		s.deliverOrKeep(from, to, func(i int) (core.Result, bool) {
			r.Rejected = s.deadLetterDocument(i)
			return r, false
		})
		return
	}
	if code == core.CodeTooLarge {
		s.w.limitBatches((s.b.items[to-1].End - s.b.items[from].Start) / 2)
	}
	s.depth++
	half := from + (to-from)/2
	s.send(from, half)
	s.send(half, to)
	s.depth--
}

// limitBatches reduces the batch size to size: the engine, or a proxy before it, accepts no larger requests.
func (w *Writer) limitBatches(size int) {
	size = max(size, minBatchBytes)
	w.mu.Lock()
	smaller := size < w.batchBytes
	if smaller {
		w.batchBytes = size
	}
	w.mu.Unlock()
	if smaller {
		w.cfg.Logger.Warn("the index rejects larger bulk requests: reducing the batch size", slog.Int("bytes", size))
	}
}

// deadLetterDocument returns the copy of the i-th item for a dead letter, nil for a delete.
func (s *sender) deadLetterDocument(i int) *core.DeadLetterDocument {
	// Hashing a large document takes time, during which the ticket must not be locked.
	s.out.flush()
	it := s.b.items[i]
	if it.Op == core.OpDelete {
		return nil
	}
	return core.NewDeadLetterDocument(s.b.body[it.DocStart:it.DocEnd])
}

// deliverOrKeep calls verdict for each item of [from, to), delivers its result or keeps the item, and moves the kept items together
// at from. It returns their end.
func (s *sender) deliverOrKeep(from, to int, verdict func(i int) (r core.Result, keep bool)) int {
	b := s.b
	kept, end := from, b.items[from].Start
	for i := from; i < to; i++ {
		r, keep := verdict(i)
		if !keep {
			s.out.put(b.meta[i], r)
			continue
		}
		if kept != i {
			b.move(i, kept, end)
		}
		end = b.items[kept].End
		kept++
	}
	s.out.flush()
	return kept
}
