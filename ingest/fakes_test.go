package ingest_test

import (
	"context"
	"sync"

	"tutti/internal/core"
	"tutti/internal/tools/fakes"
)

// queueFake is a Publisher, a JobStore and Cells in memory.
type queueFake struct {
	mu        sync.Mutex
	published []core.Request
	fakes.Jobs
	fakes.Cells

	publish   func(core.Request) error        // before a Request is stored
	create    func(core.Job) error            // before a job is created
	setCell   func(name, jobID string) error  // before a cell is set
	cell      func(name string) error         // before a cell is read
	afterCell func(name string, jobID string) // after a cell was read
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

func (q *queueFake) Create(ctx context.Context, job core.Job) error {
	if q.create != nil {
		if err := q.create(job); err != nil {
			return err
		}
	}
	return q.Jobs.Create(ctx, job)
}

func (q *queueFake) Cell(ctx context.Context, name string) (string, uint64, error) {
	if q.cell != nil {
		if err := q.cell(name); err != nil {
			return "", 0, err
		}
	}
	value, revision, err := q.Cells.Cell(ctx, name)
	if q.afterCell != nil {
		q.afterCell(name, value)
	}
	return value, revision, err
}

func (q *queueFake) SetCell(ctx context.Context, name, jobID string, revision uint64) error {
	if q.setCell != nil {
		if err := q.setCell(name, jobID); err != nil {
			return err
		}
	}
	return q.Cells.SetCell(ctx, name, jobID, revision)
}

func (q *queueFake) setState(id string, state core.JobState) {
	_, _ = q.Update(context.Background(), id, func(job *core.Job) error { job.State = state; return nil })
}

func (q *queueFake) requests() []core.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]core.Request(nil), q.published...)
}
