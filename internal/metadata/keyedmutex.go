package metadata

import (
	"context"
	"sync"

	"tutti/internal/core"
)

// keyedMutex serializes the rewrites of one analysis in this process, so that they do not have to be repeated because of each
// other.
type keyedMutex struct {
	mu    sync.Mutex
	locks map[string]*keyLock
}

// keyLock is the lock of one analysis.
type keyLock struct {
	free  chan struct{} // holds a token while unlocked
	users int
}

func newKeyedMutex() *keyedMutex { return &keyedMutex{locks: map[string]*keyLock{}} }

// lock blocks until the analysis is locked or ctx ends. The caller must call unlock.
func (t *keyedMutex) lock(ctx context.Context, id string) (unlock func(), err error) {
	t.mu.Lock()
	own := t.locks[id]
	if own == nil {
		own = &keyLock{free: make(chan struct{}, 1)}
		own.free <- struct{}{}
		t.locks[id] = own
	}
	own.users++
	t.mu.Unlock()
	select {
	case <-own.free:
		return func() {
			own.free <- struct{}{}
			t.release(id, own)
		}, nil
	case <-ctx.Done():
		t.release(id, own)
		return nil, core.WrapError(core.CodeUnavailable, "waiting for another change of the analysis", ctx.Err())
	}
}

func (t *keyedMutex) release(id string, own *keyLock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.locks, id)
	}
}
