package trace

import (
	"context"
	"time"

	"tutti/internal/core"
	"tutti/internal/keylock"
)

// jobList reads the newest jobs of a repository. Concurrent callers share a read that began after their calls: a read takes the longer,
// the more jobs are stored.
type jobList struct {
	reading keylock.Locks
	began   time.Time
	jobs    []core.Job
}

func (l *jobList) get(ctx context.Context, jobs Jobs, repository string) ([]core.Job, error) {
	called := time.Now()
	unlock, err := l.reading.Lock(ctx, "")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if l.began.After(called) {
		return l.jobs, nil
	}
	began := time.Now()
	newest, _, err := jobs.List(ctx, repository, "", maxJobs, "")
	if err != nil {
		return nil, err
	}
	l.began, l.jobs = began, newest
	return newest, nil
}
