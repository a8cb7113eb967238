package ingest

import (
	"context"
	"sync"
)

// keyedLock is a mutex per key that exists only while somebody holds or awaits it.
type keyedLock struct {
	mu    sync.Mutex
	byKey map[string]*lockEntry
}

type lockEntry struct {
	// held has room for one token: whoever put it there holds the lock.
	held chan struct{}
	// users counts the holder and everybody waiting.
	users int
}

// lock waits for the key's mutex or the end of ctx. The returned function returns it back.
func (l *keyedLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	if l.byKey == nil {
		l.byKey = make(map[string]*lockEntry)
	}
	e := l.byKey[key]
	if e == nil {
		e = &lockEntry{held: make(chan struct{}, 1)}
		l.byKey[key] = e
	}
	e.users++
	l.mu.Unlock()

	select {
	case e.held <- struct{}{}:
		return func() {
			<-e.held
			l.leave(key, e)
		}, nil
	case <-ctx.Done():
		l.leave(key, e)
		return nil, ctx.Err()
	}
}

func (l *keyedLock) leave(key string, e *lockEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.users--
	if e.users == 0 {
		delete(l.byKey, key)
	}
}
