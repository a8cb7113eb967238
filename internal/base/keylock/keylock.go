// Package keylock provides locks by key.
package keylock

import (
	"context"
	"sync"
)

// Locks has a lock for each key, which takes memory only while it is held or waited for. The zero value is ready; it must not be
// copied after first use. It is safe for concurrent use.
type Locks struct {
	// Holders is how many may hold a key's lock at once. Default 1.
	Holders int

	mu    sync.Mutex
	byKey map[string]*lock
}

type lock struct {
	// held is a semaphore.
	held chan struct{}
	// users counts the holders and the waiting callers.
	users int
}

// Lock waits until the caller holds the key's lock, or ctx ends, and returns ctx's error then. The caller must call unlock once.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	own := l.byKey[key]
	if own == nil {
		if l.byKey == nil {
			l.byKey = map[string]*lock{}
		}
		own = &lock{held: make(chan struct{}, max(1, l.Holders))}
		l.byKey[key] = own
	}
	own.users++
	l.mu.Unlock()
	select {
	case own.held <- struct{}{}:
		return func() {
			<-own.held
			l.leave(key, own)
		}, nil
	case <-ctx.Done():
		l.leave(key, own)
		return nil, ctx.Err()
	}
}

// Len returns the number of keys whose locks are held or waited for.
func (l *Locks) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byKey)
}

func (l *Locks) leave(key string, own *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(l.byKey, key)
	}
}
