package budget

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
)

// Default is the number of bytes of a Budget unless the configuration says otherwise.
const Default = 256 << 20

// Budget is the memory of one process for large bodies. Each share of it has its own first-in, first-out queue, so that
// none can block another, and whoever holds of one may wait for the next one in the order of the fields without a
// deadlock.
type Budget struct {
	// Requests is for bodies of requests that are received, Payloads for what is made of submitted ones.
	Requests, Payloads *Share
	// Records is for records that are fetched, Writes for documents on their way into the index.
	Records, Writes *Share

	size    int64
	collect func()

	mu sync.Mutex
	// held is in use; garbage was, and may still take memory.
	held, garbage int64
}

// New makes a Budget of some bytes, a quarter of which each Share has. collect, runtime.GC when nil, frees the memory of
// what was released: it is called before more than the bytes of the Budget are held and released together.
func New(bytes int64, collect func()) (*Budget, error) {
	if bytes <= 0 {
		return nil, core.NewError(core.CodeInvalid, "the memory for large bodies must be more than nothing")
	}
	if collect == nil {
		collect = runtime.GC
	}
	b := &Budget{size: bytes, collect: collect}
	for _, share := range []**Share{&b.Requests, &b.Payloads, &b.Records, &b.Writes} {
		size := max(bytes/4, 1)
		*share = &Share{of: b, size: size, free: semaphore.NewWeighted(size)}
	}
	return b, nil
}

// Share is a part of a Budget. It is safe for concurrent use.
type Share struct {
	of   *Budget
	size int64
	free *semaphore.Weighted
}

// Acquire blocks until n bytes are free, all of the Share for a larger n, and those that asked before have theirs.
// release must be called once they are no longer used; it may be called again. CodeOverloaded when ctx ends first.
func (s *Share) Acquire(ctx context.Context, n int64) (release func(), err error) {
	taken := min(max(n, 0), s.size)
	if err := s.free.Acquire(ctx, taken); err != nil {
		return nil, core.WrapError(core.CodeOverloaded, "too many large bodies are being worked on", err)
	}
	s.of.hold(max(n, 0))
	return sync.OnceFunc(func() {
		s.of.release(max(n, 0))
		s.free.Release(taken)
	}), nil
}

// hold counts n bytes, after the memory of what was released is freed if it is in the way.
func (b *Budget) hold(n int64) {
	b.mu.Lock()
	b.held += n
	full := b.garbage > 0 && b.held+b.garbage > b.size
	if full {
		b.garbage = 0
	}
	b.mu.Unlock()
	if full {
		b.collect()
	}
}

func (b *Budget) release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
	b.garbage += n
}
