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

// Budget limits the memory of one process for large bodies. Each Share has its own queue, so that waiting for one does not block the
// others. To avoid deadlocks, a caller that needs several Shares must acquire them in the order of the fields.
//
// The bytes in use may exceed the Budget by one body for each repository, index and known caller, and by the part of a body that is over
// its caller's limit.
type Budget struct {
	// Requests is for request bodies being received, Payloads for the results of processing submitted ones.
	Requests, Payloads *Share
	// Records is for fetched records, Writes for documents on their way to the index, Reads for those that an index reads,
	// and for the responses that have them.
	Records, Writes, Reads *Share

	size    int64
	collect func()

	mu sync.Mutex
	// held are the bytes in use, released those released since the last collect, which may still occupy memory.
	held, released int64
}

// New returns a Budget of bytes, a fifth of them for each Share. collect frees released memory, runtime.GC when nil. It is called when
// the held and released bytes together exceed the Budget and more than a quarter of the Budget was released since the last call.
func New(bytes int64, collect func()) (*Budget, error) {
	if bytes <= 0 {
		return nil, core.NewError(core.CodeInvalid, "the memory for large bodies must be more than 0 bytes")
	}
	if collect == nil {
		collect = runtime.GC
	}
	b := &Budget{size: bytes, collect: collect}
	shares := []**Share{&b.Requests, &b.Payloads, &b.Records, &b.Writes, &b.Reads}
	for _, share := range shares {
		size := max(bytes/int64(len(shares)), 1)
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
	// holds is what the last account held at the last sort; number is the position of the call in the order of arrival.
	holds   int64
	number  uint64
	granted chan struct{} // closed once the bytes are the waiter's
}

// AcquireFor blocks until n bytes of the Share are free, and returns CodeOverloaded when ctx ends first. An n over the Share's size
// counts as that size. Among waiting calls, the holder with the fewest bytes is served first, then the oldest call. The caller must call
// release when it no longer uses the bytes; later calls of release have no effect.
//
// A named holder that holds nothing of the Share does not wait, so that others cannot block it. There must be few holders, because each
// of them can exceed the Share by one body.
func (s *Share) AcquireFor(ctx context.Context, holder string, n int64) (release func(), err error) {
	return s.acquire(ctx, &waiter{accounts: []core.Account{{ID: holder, Max: s.size}}, skipsQueue: holder != ""}, n)
}

// Acquire is like AcquireFor for a caller, which can hold at most the limits of its Accounts; an n over the limit of its last Account
// counts as that limit. A caller that waits for the limit of an Account does not block calls of other callers. A known caller that holds
// nothing does not wait.
func (s *Share) Acquire(ctx context.Context, c core.Caller, n int64) (release func(), err error) {
	return s.acquire(ctx, &waiter{accounts: c.Accounts(s.size), skipsQueue: c.Known}, n)
}

// Reserve is like Acquire for a caller that knows only later how many bytes it holds, except that a known caller waits, too. shrink
// reduces what is held to a number of bytes, without blocking; with 0 it releases all.
func (s *Share) Reserve(ctx context.Context, c core.Caller, n int64) (shrink func(to int64), err error) {
	w := &waiter{accounts: c.Accounts(s.size)}
	if err := s.wait(ctx, w, n); err != nil {
		return nil, err
	}
	return func(to int64) {
		if to = max(to, 0); to >= n {
			return
		}
		s.budget.release(n - to)
		n = to
		s.reduce(w, to)
	}, nil
}

func (s *Share) acquire(ctx context.Context, w *waiter, n int64) (release func(), err error) {
	if err := s.wait(ctx, w, n); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		s.budget.release(max(n, 0))
		s.reduce(w, 0)
	}), nil
}

// wait blocks until n bytes are granted to w.
func (s *Share) wait(ctx context.Context, w *waiter, n int64) error {
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
			return core.WrapError(core.CodeOverloaded, "too many large bodies are being processed", ctx.Err())
		}
	}
	s.budget.hold(n)
	return nil
}

// grant serves waiting calls. It sorts them again after each one, because a grant changes the order. The Share must be locked.
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
	// full are the accounts for whose limit an earlier call waits; blocked is true when an earlier call waits for the Share itself.
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

// reduce releases what was granted to w beyond a number of bytes.
func (s *Share) reduce(w *waiter, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to >= w.bytes {
		return
	}
	s.add(w, to-w.bytes)
	w.bytes = to
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
