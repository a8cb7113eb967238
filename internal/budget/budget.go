package budget

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"tutti/internal/core"
)

// Default is the default size of a Budget in bytes.
const Default = 256 << 20

// Budget is the memory of one process for large bodies. Shares queue separately, so none blocks another. A caller that needs several
// must acquire them in the order of the fields; then there is no deadlock.
//
// At most the bytes of the Budget are in use, plus one body of each repository, index and known caller, plus the bytes by which a body
// exceeds its caller's limit.
type Budget struct {
	// Requests is for request bodies being received, Payloads for the results of processing submitted ones.
	Requests, Payloads *Share
	// Records is for fetched records, Writes for documents on their way to the index.
	Records, Writes *Share

	size    int64
	collect func()

	mu sync.Mutex
	// held is in use; released is not, but may still occupy memory until the next collect.
	held, released int64
}

// New returns a Budget of some bytes; each Share has a quarter. collect, runtime.GC when nil, frees released memory: it is called before
// held and released bytes together exceed the Budget, once more than a quarter of it was released since the last call.
func New(bytes int64, collect func()) (*Budget, error) {
	if bytes <= 0 {
		return nil, core.NewError(core.CodeInvalid, "the memory for large bodies must be more than 0 bytes")
	}
	if collect == nil {
		collect = runtime.GC
	}
	b := &Budget{size: bytes, collect: collect}
	for _, share := range []**Share{&b.Requests, &b.Payloads, &b.Records, &b.Writes} {
		size := max(bytes/4, 1)
		*share = &Share{budget: b, size: size, held: map[string]int64{}}
	}
	return b, nil
}

// Share is a part of a Budget. It is safe for concurrent use.
type Share struct {
	budget *Budget
	size   int64

	mu   sync.Mutex
	used int64
	// held are the bytes of each account that are acquired and not released.
	held    map[string]int64
	waiting []*waiter
	calls   uint64
}

// waiter is a waiting call of AcquireFor or Acquire.
type waiter struct {
	accounts []core.Account
	// skipsQueue grants the call at once if its last account holds nothing.
	skipsQueue bool
	bytes      int64
	// holds is what the last account held at the last sort; number is the number of the call.
	holds   int64
	number  uint64
	granted chan struct{} // closed once the bytes are the waiter's
}

// AcquireFor blocks until n bytes of the Share are free; an n over the Share's size counts as that size. Of the waiting calls that of
// the holder with the fewest bytes is served first, the oldest among equals. The caller must call release once the bytes are no longer
// used; it may be called again.
// CodeOverloaded when ctx ends first.
//
// A named holder does not wait while it holds nothing of the Share, so that others cannot block it, however long they hold theirs.
// The number of holders must be small.
func (s *Share) AcquireFor(ctx context.Context, holder string, n int64) (release func(), err error) {
	return s.acquire(ctx, &waiter{accounts: []core.Account{{ID: holder, Max: s.size}}, skipsQueue: holder != ""}, n)
}

// Acquire is like AcquireFor for a caller, which holds at most the limits of its Accounts; a larger n counts as the limit. While a
// caller is at the limit of an account, later calls of others are served. A known caller does not wait while it holds nothing.
func (s *Share) Acquire(ctx context.Context, c core.Caller, n int64) (release func(), err error) {
	return s.acquire(ctx, &waiter{accounts: c.Accounts(s.size), skipsQueue: c.Known}, n)
}

func (s *Share) acquire(ctx context.Context, w *waiter, n int64) (release func(), err error) {
	n = max(n, 0)
	w.bytes, w.granted = min(n, w.accounts[len(w.accounts)-1].Max), make(chan struct{})
	s.mu.Lock()
	s.calls++
	w.number = s.calls
	s.waiting = append(s.waiting, w)
	s.grant()
	s.mu.Unlock()
	select {
	case <-w.granted:
	case <-ctx.Done():
		if s.cancel(w) {
			return nil, core.WrapError(core.CodeOverloaded, "too many large bodies are being processed", ctx.Err())
		}
	}
	s.budget.hold(n)
	return sync.OnceFunc(func() {
		s.budget.release(n)
		s.release(w)
	}), nil
}

// grant serves waiting calls, one at a time: each grant changes who holds least. The Share must be locked.
func (s *Share) grant() {
	for i := s.next(); i >= 0; i = s.next() {
		w := s.waiting[i]
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.add(w, w.bytes)
		close(w.granted)
	}
}

// next sorts the waiting calls and returns the index of the one to serve now, -1 if none can be served. The Share must be locked.
func (s *Share) next() int {
	for _, w := range s.waiting {
		w.holds = s.held[w.accounts[len(w.accounts)-1].ID]
	}
	slices.SortFunc(s.waiting, func(a, b *waiter) int {
		return cmp.Or(cmp.Compare(a.holds, b.holds), cmp.Compare(a.number, b.number))
	})
	blocked, full := false, map[string]bool{}
	return slices.IndexFunc(s.waiting, func(w *waiter) bool {
		if w.skipsQueue && w.holds == 0 {
			return true
		}
		for _, a := range w.accounts {
			if full[a.ID] = full[a.ID] || s.held[a.ID]+w.bytes > a.Max; full[a.ID] {
				return false
			}
		}
		blocked = blocked || s.used+w.bytes > s.size
		return !blocked
	})
}

// add adds n bytes to the counts of w. The Share must be locked.
func (s *Share) add(w *waiter, n int64) {
	s.used += n
	for _, a := range w.accounts {
		if s.held[a.ID] += n; s.held[a.ID] == 0 {
			delete(s.held, a.ID)
		}
	}
}

// cancel cancels a waiting call and reports whether nothing was granted.
func (s *Share) cancel(w *waiter) bool {
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

// release releases what was granted to w.
func (s *Share) release(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(w, -w.bytes)
	s.grant()
}

// hold counts n bytes, after collecting released memory when necessary.
func (b *Budget) hold(n int64) {
	b.mu.Lock()
	b.held += n
	full := b.released > b.size/4 && b.held+b.released > b.size
	if full {
		b.released = 0
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
	b.released += n
}
