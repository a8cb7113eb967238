package ingest

import (
	"context"
	"sync"
)

// keyedMutex is a mutex per key that exists only while somebody holds or awaits it.
type keyedMutex struct {
	mu    sync.Mutex
	byKey map[string]*mutexEntry
}

type mutexEntry struct {
	// held has room for one token: whoever put it there holds the lock.
	held chan struct{}
	// users counts the holder and everybody waiting.
	users int
}

// lock waits for the key's mutex or the end of ctx. The returned function returns it back.
func (l *keyedMutex) lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	if l.byKey == nil {
		l.byKey = make(map[string]*mutexEntry)
	}
	e := l.byKey[key]
	if e == nil {
		e = &mutexEntry{held: make(chan struct{}, 1)}
		l.byKey[key] = e
	}
	e.users++
	l.mu.Unlock()

	select {
	case e.held <- struct{}{}:
		return func() {
			<-e.held
			l.release(key, e)
		}, nil
	case <-ctx.Done():
		l.release(key, e)
		return nil, ctx.Err()
	}
}

func (l *keyedMutex) release(key string, e *mutexEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.users--
	if e.users == 0 {
		delete(l.byKey, key)
	}
}
