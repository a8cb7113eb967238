package queue

import "sync"

// otherRepository is the label of every repository that was never configured, so that clients cannot create an
// unlimited number of label values.
const otherRepository = "unknown"

// labels holds the repositories that may be named in metrics.
type labels struct {
	mu    sync.RWMutex
	known map[string]struct{}
}

func newLabels() *labels { return &labels{known: make(map[string]struct{})} }

func (l *labels) add(repositories ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range repositories {
		l.known[r] = struct{}{}
	}
}

func (l *labels) labelFor(repository string) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if _, ok := l.known[repository]; ok {
		return repository
	}
	return otherRepository
}
