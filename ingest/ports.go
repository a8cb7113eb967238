package ingest

import (
	"context"

	"tutti/internal/core"
)

// Publisher stores Requests. Publish returns nil only after the queue's acknowledgement; a queue that is full or cannot
// be reached gives CodeOverloaded or CodeUnavailable.
type Publisher interface {
	Publish(ctx context.Context, r core.Request) error
}

// JobStore keeps jobs.
type JobStore interface {
	// Create stores a new job; CodeConflict when the id is taken.
	Create(ctx context.Context, job core.Job) error
	// Update changes a job by compare-and-set. change may run several times; its error ends the update with nothing
	// written. CodeNotFound when there is no such job.
	Update(ctx context.Context, id string, change func(*core.Job) error) (core.Job, error)
}

// Slots are named places that hold one job id each, changed by compare-and-set.
type Slots interface {
	// Slot gives the job id in the slot and the slot's revision, "" and 0 when nothing was ever put there.
	Slot(ctx context.Context, name string) (jobID string, revision uint64, err error)
	// SetSlot puts jobID into the slot; CodeConflict when the slot's revision is no longer the given one.
	SetSlot(ctx context.Context, name, jobID string, revision uint64) error
}
