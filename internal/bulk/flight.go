package bulk

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"tutti/internal/core"
)

// minBatchBytes is the size below which "too large" no longer makes batches smaller.
const minBatchBytes = 64 << 10

var (
	errTooOld = errors.New("the body is too old to be written")
	errClosed = errors.New("the bulk writer is closing")
	errShort  = errors.New("the index answered with another number of results than asked for")
)

// flight takes one batch to the engine, until each of its items has its Result.
type flight struct {
	w   *Writer
	b   *batch
	out delivery
	// slot: holds one of the Writer's slots. parked: counted in parkedBytes, with size bytes. stopped: no more waiting.
	slot, parked, stopped bool
	size                  int
	// depth counts the splits that the items being sent have behind them.
	depth int
}

// run is the whole flight.
func (f *flight) run() {
	f.send(0, len(f.b.items))
	w, l := f.w, f.b.lane
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.slot {
		f.releaseSlot()
	}
	if f.parked {
		f.countParked(-1)
	} else {
		w.landed(l)
	}
	w.recycle(f.b.storage)
	if f.b.storage = (storage{}); f.b.release != nil {
		f.b.release()
	}
	w.schedule()
	w.leave(l)
}

// send writes the items [from, to), again and again where the engine is too busy for some of them.
func (f *flight) send(from, to int) {
	why := errTooOld
	for attempt := 0; ; attempt++ {
		if to = f.dropOld(from, to, why); from == to {
			return
		}
		if f.stopped {
			f.giveBack(from, to, core.CodeOverloaded, errClosed)
			return
		}
		results, err := f.write(from, to)
		switch code := core.CodeOf(err); code {
		case "":
			to = f.settle(from, to, results)
		case core.CodeOverloaded:
			why = err
		case core.CodeTooLarge, core.CodeInvalid:
			f.split(from, to, code, err)
			return
		case core.CodeIndexBlocked:
			f.giveBack(from, to, core.CodeIndexBlocked, err)
			return
		default:
			f.giveBack(from, to, core.CodeUnavailable, err)
			return
		}
		if from == to {
			return
		}
		f.stopped = !f.pause(from, to, attempt, core.RetryAfterOf(err))
	}
}

// write makes one request and tells the Writer how it went.
func (f *flight) write(from, to int) ([]core.Result, error) {
	w := f.w
	if err := w.flying.Err(); err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "the bulk writer was cut short", err)
	}
	w.mu.Lock()
	epoch := f.b.lane.pace.epoch
	w.mu.Unlock()
	view := f.b.view(from, to, w.start)
	began := time.Now()
	w.cfg.Metrics.begin()
	results, err := w.engine.Write(w.flying, view)
	if err == nil && len(results) != to-from {
		err = core.WrapError(core.CodeUnavailable, "writing a batch", errShort)
	}
	w.cfg.Metrics.end(known(err), time.Since(began), len(view.Payload()))
	f.judge(epoch, results, err)
	return results, err
}

// known returns the code of a whole request's error as the Writer treats it, "" for nil.
func known(err error) core.Code {
	switch code := core.CodeOf(err); code {
	case "", core.CodeOverloaded, core.CodeTooLarge, core.CodeInvalid, core.CodeIndexBlocked:
		return code
	default:
		return core.CodeUnavailable
	}
}

// judge adapts the number of the index' requests at one time to how the last one went.
func (f *flight) judge(epoch int, results []core.Result, err error) {
	busy := core.CodeOf(err) == core.CodeOverloaded || err == nil && slices.ContainsFunc(results, overloaded)
	if !busy && (err != nil || slices.ContainsFunc(results, retried)) {
		return
	}
	w, pace := f.w, f.b.lane.pace
	w.mu.Lock()
	var slower bool
	if busy {
		slower = pace.overload(epoch)
	} else {
		pace.succeed()
	}
	limit := pace.limit
	w.mu.Unlock()
	if slower {
		w.cfg.Logger.Warn("the index is overloaded: fewer bulk requests at a time",
			slog.String("index", f.b.lane.index), slog.Int("limit", limit))
	}
}

func overloaded(r core.Result) bool { return retried(r) && r.Code == core.CodeOverloaded }

func retried(r core.Result) bool { return r.Outcome == core.OutcomeRetry }

// settle hands out the results of the items [from, to) but for those that the engine was too busy for, which it moves
// together at from; they end at the number that it gives.
func (f *flight) settle(from, to int, results []core.Result) int {
	return f.retain(from, to, func(i int) (core.Result, bool) {
		r := results[i-from]
		switch r.Outcome {
		case core.OutcomeRetry:
			if r.Code == core.CodeOverloaded {
				last := r
				f.b.meta[i].last = &last
				return r, true
			}
			if r.Code == "" {
				r.Code = core.CodeUnavailable
			}
		case core.OutcomeRejected:
			r.Rejected = f.keep(i)
		case core.OutcomeIndexed, core.OutcomeRemoved, core.OutcomeStale, core.OutcomeMismatch:
		}
		return r, false
	})
}

// dropOld gives back the items of [from, to) whose bodies are too old and moves the others together at from; they end
// at the number that it gives. why is told where the engine said nothing of an item.
func (f *flight) dropOld(from, to int, why error) int {
	now := f.w.now()
	if from == to || now < f.b.earliest {
		return to
	}
	return f.retain(from, to, func(i int) (core.Result, bool) {
		if f.b.meta[i].deadline > now {
			return core.Result{}, true
		}
		return f.undone(i, core.CodeOverloaded, why), false
	})
}

// giveBack ends the items [from, to) as not done.
func (f *flight) giveBack(from, to int, code core.Code, why error) {
	f.retain(from, to, func(i int) (core.Result, bool) { return f.undone(i, code, why), false })
}

// undone is the Result of an item that is not tried any more: what the engine last said of it, if it is the same.
func (f *flight) undone(i int, code core.Code, why error) core.Result {
	if last := f.b.meta[i].last; last != nil && last.Code == code {
		return *last
	}
	return core.Result{Outcome: core.OutcomeRetry, Code: code, Reason: why.Error()}
}

// split sends the items [from, to), which the engine refused as a whole, in halves. One that it refuses alone is
// rejected.
func (f *flight) split(from, to int, code core.Code, err error) {
	if to-from == 1 {
		r := core.Result{Outcome: core.OutcomeRejected, Type: TypeInvalidRequest, Reason: err.Error()}
		if code == core.CodeTooLarge {
			r.Type = TypeTooLarge
		}
		f.retain(from, to, func(i int) (core.Result, bool) {
			r.Rejected = f.keep(i)
			return r, false
		})
		return
	}
	if code == core.CodeTooLarge {
		f.w.limitBatches((f.b.items[to-1].End - f.b.items[from].Start) / 2)
	}
	f.depth++
	half := from + (to-from)/2
	f.send(from, half)
	f.send(half, to)
	f.depth--
}

// limitBatches makes batches no larger than size from now on: the engine, or a proxy before it, takes no larger ones.
func (w *Writer) limitBatches(size int) {
	size = max(size, minBatchBytes)
	w.mu.Lock()
	smaller := size < w.batchBytes
	if smaller {
		w.batchBytes = size
	}
	w.mu.Unlock()
	if smaller {
		w.cfg.Logger.Warn("the index takes no larger bulk requests: smaller batches", slog.Int("bytes", size))
	}
}

// keep copies what a dead letter keeps of the i-th item, nil for a delete.
func (f *flight) keep(i int) *core.DeadLetterDocument {
	// Hashing a large document takes time, in which nobody must wait for the ticket.
	f.out.flush()
	it := f.b.items[i]
	if it.Op == core.OpDelete {
		return nil
	}
	return core.NewDeadLetterDocument(f.b.body[it.DocStart:it.DocEnd])
}

// retain hands the verdict on each item of [from, to) to its ticket, but moves those to keep together at from, in the
// place of the others. It returns the number at which they end.
func (f *flight) retain(from, to int, verdict func(i int) (r core.Result, keep bool)) int {
	b := f.b
	kept, end := from, b.items[from].Start
	for i := from; i < to; i++ {
		r, keep := verdict(i)
		if !keep {
			f.out.put(b.meta[i], r)
			continue
		}
		if kept != i {
			b.move(i, kept, end)
		}
		end = b.items[kept].End
		kept++
	}
	f.out.flush()
	return kept
}
