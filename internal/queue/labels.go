package queue

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"tutti/internal/core"
)

// cellRepositories names the compare-and-swap cell of the repositories that were configured at any start, of which
// maxRepositories are kept.
const (
	cellRepositories = "repositories"
	maxRepositories  = 1000
)

// otherRepository is the label of every repository that was never configured, so that what comes in from outside cannot
// make label values without bound.
const otherRepository = "unknown"

// labels knows which repositories may be named in metrics.
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

// rememberRepositories adds the configured repositories to those of earlier starts, and lets metrics name all of them: a
// repository that was removed from the configuration may have dead letters.
func (q *Queue) rememberRepositories(ctx context.Context, configured []string) error {
	q.labels.add(configured...)
	for {
		stored, revision, err := q.jobs.Cell(ctx, cellRepositories)
		if err != nil {
			return err
		}
		var earlier []string
		if stored != "" {
			if err := json.Unmarshal([]byte(stored), &earlier); err != nil {
				return core.WrapError(core.CodeInternal, "decoding the repositories of earlier starts", err)
			}
		}
		q.labels.add(earlier...)
		all := slices.Clone(configured)
		for _, code := range earlier {
			if !slices.Contains(all, code) {
				all = append(all, code)
			}
		}
		encoded, err := json.Marshal(all[:min(len(all), max(maxRepositories, len(configured)))])
		if err != nil {
			return core.WrapError(core.CodeInternal, "encoding the repositories", err)
		}
		// Also when nothing changed: what is not written for as long as jobs are kept is removed.
		if err := q.jobs.SetCell(ctx, cellRepositories, string(encoded), revision); !isConflict(err) {
			return err
		}
	}
}
