package evaluate

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/core"
)

// batchSize is the number of documents processed between two checks of the context.
const batchSize = 4096

// scratch holds the reusable buffers of one goroutine.
type scratch struct {
	// docs holds a batch of documents or rows, ranks their sort ranks.
	docs, out []uint32
	ranks     []uint64
	// rows and lifted are dense bitmaps, valid within one call that does not evaluate other clauses.
	rows, lifted []uint64
	// elements are the rows that a facet counts.
	elements []uint64
	counters []counter
	groups   []uint32
	// gaps are the counts of countScope.gapCounts.
	gaps []uint32
}

func newScratch() *scratch {
	return &scratch{docs: make([]uint32, batchSize), out: make([]uint32, batchSize), ranks: make([]uint64, batchSize)}
}

// zeroed returns a slice of n zeroes, reusing s if it is large enough.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// denseWords writes bits to a cleared dense bitmap of n rows.
func denseWords(into []uint64, bits *roaring.Bitmap, n int) []uint64 {
	into = zeroed(into, (n+63)/64)
	bits.WriteDenseTo(into)
	return into
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

// batches calls do with the documents of bits in ascending order, a batch at a time, until ctx ends.
func (s *scratch) batches(ctx context.Context, bits *roaring.Bitmap, do func(docs []uint32)) {
	many := bits.ManyIterator()
	for ctx.Err() == nil {
		n := many.NextMany(s.docs)
		if n == 0 {
			return
		}
		do(s.docs[:n])
	}
}
