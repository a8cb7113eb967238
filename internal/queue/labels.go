package queue

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
)

// cellRepositories names the compare-and-swap cell that stores the repositories configured at any start, at most
// maxRepositories.
const (
	cellRepositories = "repositories"
	maxRepositories  = 1000
)

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

// rememberRepositories adds the configured repositories to those of earlier starts and allows metrics to name all of
// them: a repository that was removed from the configuration may have dead letters.
func (q *Queue) rememberRepositories(ctx context.Context, configured []string) error {
	q.labels.add(configured...)
	for {
		stored, revision, err := q.bucket.Cells.Cell(ctx, cellRepositories)
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
		// Also when nothing changed: a key that is not written for jobsKept expires.
		if err := q.bucket.Cells.SetCell(ctx, cellRepositories, string(encoded), revision); !natsconn.IsConflict(err) {
			return err
		}
	}
}
