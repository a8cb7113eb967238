package fakes

import (
	"context"
	"sync"

	"tutti/internal/core"
)

// Jobs implements core.Jobs in memory. Its zero value has no job.
type Jobs struct {
	// All are the jobs by their ids.
	All map[string]core.Job
	mu  sync.Mutex
}

// Create implements core.Jobs. CodeConflict if the job exists.
func (j *Jobs) Create(_ context.Context, job core.Job) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, taken := j.All[job.ID]; taken {
		return core.NewError(core.CodeConflict, "the job exists")
	}
	if j.All == nil {
		j.All = map[string]core.Job{}
	}
	j.All[job.ID] = job
	return nil
}

// Get implements core.Jobs.
func (j *Jobs) Get(ctx context.Context, id string) (core.Job, error) {
	return j.Update(ctx, id, func(*core.Job) error { return nil })
}

// Update implements core.Jobs.
func (j *Jobs) Update(_ context.Context, id string, change func(*core.Job) error) (core.Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	job, ok := j.All[id]
	if !ok {
		return core.Job{}, core.NewError(core.CodeNotFound, "no such job")
	}
	if err := change(&job); err != nil {
		return core.Job{}, err
	}
	j.All[id] = job
	return job, nil
}
