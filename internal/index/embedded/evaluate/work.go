package evaluate

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"tutti/internal/core"
	"tutti/internal/index/embedded/evaluate/match"
)

// scratch holds the reusable buffers of one goroutine.
type scratch struct {
	*match.Scratch

	// ranks are the sort ranks of Docs.
	ranks []uint64
	// elements are the rows that a facet counts.
	elements []uint64
	counters []counter
	groups   []uint32
	// gaps are the counts of countScope.gapCounts.
	gaps []uint32
}

func newScratch() *scratch {
	return &scratch{Scratch: match.NewScratch(), ranks: make([]uint64, match.BatchSize)}
}

// task is a part of a search. The tasks of one round are independent.
type task func(ctx context.Context, s *scratch) error

// workers keeps the buffers of one search between rounds.
type workers struct {
	mu   sync.Mutex
	idle []*scratch
}

func (w *workers) get() *scratch {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.idle)
	if n == 0 {
		return newScratch()
	}
	s := w.idle[n-1]
	w.idle = w.idle[:n-1]
	return s
}

func (w *workers) put(s *scratch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = append(w.idle, s)
}

// run runs tasks on all processors and returns the first error. It returns an error when ctx has ended, in which case the results
// of the tasks are incomplete.
func (w *workers) run(ctx context.Context, tasks []task) error {
	var next atomic.Int64
	var firstErr atomic.Pointer[error]
	work := func() {
		s := w.get()
		defer w.put(s)
		for firstErr.Load() == nil && ctx.Err() == nil {
			at := int(next.Add(1)) - 1
			if at >= len(tasks) {
				return
			}
			if err := tasks[at](ctx, s); err != nil {
				firstErr.CompareAndSwap(nil, &err)
			}
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tasks)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	if err := firstErr.Load(); err != nil {
		return *err
	}
	return contextError(ctx)
}

// contextError returns an error when ctx has ended.
func contextError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return core.WrapError(core.CodeUnavailable, "the search was cancelled before it was complete", err)
	}
	return nil
}
