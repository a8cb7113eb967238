package evaluate

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/core"
)

// batchSize is how many documents are looked at between two questions whether the work is still wanted.
const batchSize = 4096

// scratch is the memory that one goroutine works in, task after task.
type scratch struct {
	// docs holds a batch of documents or rows, ranks what a batch of documents is ordered by.
	docs, out []uint32
	ranks     []uint64
	// rows and lifted are sets as words, each for as long as one call that does not call for other sets.
	rows, lifted []uint64
	// elements are the rows that count in a facet.
	elements []uint64
	counters []counter
	groups   []uint32
	// gaps are those of documents from one piece of a column to the next.
	gaps []uint32
}

func newScratch() *scratch {
	return &scratch{docs: make([]uint32, batchSize), out: make([]uint32, batchSize), ranks: make([]uint64, batchSize)}
}

// zeroed returns n zeroes, in the memory of s when that is enough.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// denseWords writes bits into a cleared set of n rows.
func denseWords(into []uint64, bits *roaring.Bitmap, n int) []uint64 {
	into = zeroed(into, (n+63)/64)
	bits.WriteDenseTo(into)
	return into
}

// task is a part of a search. Tasks of one round do not need each other.
type task func(ctx context.Context, s *scratch) error

// workers keeps the memory of one search between its rounds.
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

// run does tasks on as many processors as there are, and returns the first error. When ctx has ended nothing that tasks left
// behind is whole, and it is an error.
func (w *workers) run(ctx context.Context, tasks []task) error {
	var next atomic.Int64
	var fault atomic.Pointer[error]
	work := func() {
		s := w.get()
		defer w.put(s)
		for fault.Load() == nil && ctx.Err() == nil {
			at := int(next.Add(1)) - 1
			if at >= len(tasks) {
				return
			}
			if err := tasks[at](ctx, s); err != nil {
				fault.CompareAndSwap(nil, &err)
			}
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tasks)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	if err := fault.Load(); err != nil {
		return *err
	}
	return contextError(ctx)
}

// contextError returns an error when ctx has ended.
func contextError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return core.WrapError(core.CodeUnavailable, "the search was ended before it had an answer", err)
	}
	return nil
}

// batches returns what is in bits in order, some at a time, until ctx has ended.
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
