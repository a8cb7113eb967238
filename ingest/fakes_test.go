package ingest_test

import (
	"context"
	"sync"

	"tutti/internal/core"
)

// queueFake is a Publisher, a JobStore and Slots in memory.
type queueFake struct {
	mu        sync.Mutex
	published []core.Request
	jobs      map[string]core.Job
	slots     map[string]slotValue

	publish   func(core.Request) error        // before a Request is stored
	create    func(core.Job) error            // before a job is created
	setSlot   func(name, jobID string) error  // before a slot is set
	slot      func(name string) error         // before a slot is read
	afterSlot func(name string, jobID string) // after a slot was read
}

type slotValue struct {
	jobID    string
	revision uint64
}

func newQueueFake() *queueFake {
	return &queueFake{jobs: map[string]core.Job{}, slots: map[string]slotValue{}}
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

func (q *queueFake) Slot(_ context.Context, name string) (string, uint64, error) {
	if q.slot != nil {
		if err := q.slot(name); err != nil {
			return "", 0, err
		}
	}
	q.mu.Lock()
	v := q.slots[name]
	q.mu.Unlock()
	if q.afterSlot != nil {
		q.afterSlot(name, v.jobID)
	}
	return v.jobID, v.revision, nil
}

func (q *queueFake) SetSlot(_ context.Context, name, jobID string, revision uint64) error {
	if q.setSlot != nil {
		if err := q.setSlot(name, jobID); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.slots[name].revision != revision {
		return core.NewError(core.CodeConflict, "the slot moved")
	}
	q.slots[name] = slotValue{jobID: jobID, revision: revision + 1}
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
