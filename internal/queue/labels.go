package queue

import "sync"

// otherRepository is the label of every repository that is not configured, so that what comes in from outside cannot
// make label values without bound.
const otherRepository = "unknown"

// labels knows which repositories may be named in metrics.
type labels struct {
	mu    sync.RWMutex
	known map[string]struct{}
}

func newLabels() *labels { return &labels{known: make(map[string]struct{})} }

func (l *labels) learn(repositories ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range repositories {
		l.known[r] = struct{}{}
	}
}

func (l *labels) of(repository string) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if _, ok := l.known[repository]; ok {
		return repository
	}
	return otherRepository
}
