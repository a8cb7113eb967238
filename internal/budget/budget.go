package budget

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"tutti/internal/core"
)

// Default is the number of bytes of a Budget unless the configuration says otherwise.
const Default = 256 << 20

// Budget is the memory of one process for large bodies. Each share of it has its own queue, so that none can block another,
// and whoever holds of one may wait for the next one in the order of the fields without a deadlock.
//
// In use are at most the bytes of the Budget and, beyond those, one body of each repository, index and known caller, and what a
// body takes beyond the most that its caller may hold.
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
// what was released: it is called before more than the bytes of the Budget are held and released together, once more than a
// quarter of them was released since the last call.
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
		*share = &Share{of: b, size: size, held: map[string]int64{}}
	}
	return b, nil
}

// Share is a part of a Budget. It is safe for concurrent use.
type Share struct {
	of   *Budget
	size int64

	mu   sync.Mutex
	used int64
	// held are the bytes of each account that were acquired and not released.
	held    map[string]int64
	waiting []*waiter
}

// waiter is one call of AcquireFor or Acquire that waits.
type waiter struct {
	accounts []core.Account
	// first makes it not wait while the last account holds nothing.
	first   bool
	bytes   int64
	granted chan struct{} // closed once the bytes are the waiter's
}

// AcquireFor blocks until n bytes are free, all of the Share for a larger n, and those that waited before have theirs.
// release must be called once they are no longer used; it may be called again. CodeOverloaded when ctx ends first.
//
// A named holder does not wait while it holds nothing of the Share, so that others cannot block it however long they keep what
// they hold. There must be few holders.
func (s *Share) AcquireFor(ctx context.Context, holder string, n int64) (release func(), err error) {
	return s.acquire(ctx, &waiter{accounts: []core.Account{{ID: holder, Most: s.size}}, first: holder != ""}, n)
}

// Acquire is AcquireFor for a caller, which holds at most what its Accounts may; a larger n counts as that much. While a caller
// holds the most of an account, those that wait behind it are served. A known one does not wait while it holds nothing.
func (s *Share) Acquire(ctx context.Context, c core.Caller, n int64) (release func(), err error) {
	return s.acquire(ctx, &waiter{accounts: c.Accounts(s.size), first: c.Known}, n)
}

func (s *Share) acquire(ctx context.Context, w *waiter, n int64) (release func(), err error) {
	n = max(n, 0)
	w.bytes, w.granted = min(n, w.accounts[len(w.accounts)-1].Most), make(chan struct{})
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.grant()
	s.mu.Unlock()
	select {
	case <-w.granted:
	case <-ctx.Done():
		if s.leave(w) {
			return nil, core.WrapError(core.CodeOverloaded, "too many large bodies are being worked on", ctx.Err())
		}
	}
	s.of.hold(n)
	return sync.OnceFunc(func() {
		s.of.release(n)
		s.free(w)
	}), nil
}

// grant ends the waits that may end. The Share is locked.
func (s *Share) grant() {
	blocked, full := false, map[string]bool{}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool {
		if !w.first || s.held[w.accounts[len(w.accounts)-1].ID] > 0 {
			for _, a := range w.accounts {
				if full[a.ID] = full[a.ID] || s.held[a.ID]+w.bytes > a.Most; full[a.ID] {
					return false
				}
			}
			if blocked = blocked || s.used+w.bytes > s.size; blocked {
				return false
			}
		}
		s.add(w, w.bytes)
		close(w.granted)
		return true
	})
}

// add counts n bytes of w. The Share is locked.
func (s *Share) add(w *waiter, n int64) {
	s.used += n
	for _, a := range w.accounts {
		if s.held[a.ID] += n; s.held[a.ID] == 0 {
			delete(s.held, a.ID)
		}
	}
}

// leave ends a wait and reports whether nothing was granted.
func (s *Share) leave(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, w)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.grant()
	return true
}

// free takes back what was granted to w.
func (s *Share) free(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(w, -w.bytes)
	s.grant()
}

// hold counts n bytes, after the memory of what was released is freed if it is in the way.
func (b *Budget) hold(n int64) {
	b.mu.Lock()
	b.held += n
	full := b.garbage > b.size/4 && b.held+b.garbage > b.size
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
