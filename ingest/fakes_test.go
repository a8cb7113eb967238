package ingest_test

import (
	"context"
	"sync"

	"tutti/internal/core"
)

// queueFake is a Publisher, a JobStore and Cells in memory.
type queueFake struct {
	mu        sync.Mutex
	published []core.Request
	jobs      map[string]core.Job
	cells     map[string]cellValue

	publish   func(core.Request) error        // before a Request is stored
	create    func(core.Job) error            // before a job is created
	setCell   func(name, jobID string) error  // before a cell is set
	cell      func(name string) error         // before a cell is read
	afterCell func(name string, jobID string) // after a cell was read
}

type cellValue struct {
	jobID    string
	revision uint64
}

func newQueueFake() *queueFake {
	return &queueFake{jobs: map[string]core.Job{}, cells: map[string]cellValue{}}
}

func (q *queueFake) Publish(_ context.Context, r core.Request) error {
	if q.publish != nil {
		if err := q.publish(r); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.published = append(q.published, r)
	return r.Validate()
}

func (q *queueFake) Create(_ context.Context, job core.Job) error {
	if q.create != nil {
		if err := q.create(job); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, taken := q.jobs[job.ID]; taken {
		return core.NewError(core.CodeConflict, "the job exists")
	}
	q.jobs[job.ID] = job
	return nil
}

func (q *queueFake) Update(_ context.Context, id string, change func(*core.Job) error) (core.Job, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	job, ok := q.jobs[id]
	if !ok {
		return core.Job{}, core.NewError(core.CodeNotFound, "no such job")
	}
	if err := change(&job); err != nil {
		return core.Job{}, err
	}
	q.jobs[id] = job
	return job, nil
}

func (q *queueFake) Cell(_ context.Context, name string) (string, uint64, error) {
	if q.cell != nil {
		if err := q.cell(name); err != nil {
			return "", 0, err
		}
	}
	q.mu.Lock()
	v := q.cells[name]
	q.mu.Unlock()
	if q.afterCell != nil {
		q.afterCell(name, v.jobID)
	}
	return v.jobID, v.revision, nil
}

func (q *queueFake) SetCell(_ context.Context, name, jobID string, revision uint64) error {
	if q.setCell != nil {
		if err := q.setCell(name, jobID); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cells[name].revision != revision {
		return core.NewError(core.CodeConflict, "the cell moved")
	}
	q.cells[name] = cellValue{jobID: jobID, revision: revision + 1}
	return nil
}

func (q *queueFake) setState(id string, state core.JobState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	job := q.jobs[id]
	job.State = state
	q.jobs[id] = job
}

func (q *queueFake) requests() []core.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]core.Request(nil), q.published...)
}
