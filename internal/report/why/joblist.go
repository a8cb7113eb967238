package why

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tutti/internal/base/keylock"
	"tutti/internal/core"
)

// jobList holds the newest jobs of each repository. A call reads what has changed since the last one: a read of all jobs takes many
// times as long as all other parts of a trace. Concurrent callers share a read that began after their calls.
type jobList struct {
	reading  keylock.Locks
	began    time.Time
	revision uint64
	jobs     map[string][]core.Job // by repository, the newest first
}

// get returns the newest jobs of a repository, at most maxJobs, the newest first. A job that was removed since may be among them.
func (l *jobList) get(ctx context.Context, jobs Jobs, repository string) ([]core.Job, error) {
	called := time.Now()
	unlock, err := l.reading.Lock(ctx, "")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if !l.began.After(called) {
		began := time.Now()
		if err := jobs.EachChangedAfter(ctx, l.revision, l.put); err != nil {
			return nil, err
		}
		l.began = began
	}
	return slices.Clone(l.jobs[repository]), nil
}

// put adds a job, or replaces an earlier state of it.
func (l *jobList) put(revision uint64, job core.Job) error {
	l.revision = revision
	if l.jobs == nil {
		l.jobs = make(map[string][]core.Job)
	}
	list := l.jobs[job.Repository]
	at, known := slices.BinarySearchFunc(list, job.ID, func(j core.Job, id string) int { return cmp.Compare(id, j.ID) })
	if known {
		list[at] = job
		return nil
	}
	list = slices.Insert(list, at, job)
	l.jobs[job.Repository] = list[:min(len(list), maxJobs)]
	return nil
}
