package run

import (
	"context"

	"tutti/consumers/counts"
	"tutti/consumers/page"
	"tutti/consumers/sweep"
	"tutti/internal/core"
)

// Requests publishes Requests and reports which are still in the queue.
type Requests interface {
	core.Publisher
	counts.Requests
}

// Pages stores the ids of the rows of list pages, and of the records that the pages requested one by one.
type Pages interface {
	page.Notes
	sweep.Notes
	// RequestedIDs returns the ids that were stored for pages, a map of page numbers to epochs; each id once.
	RequestedIDs(ctx context.Context, jobID, organization string, pages map[int]int) ([]string, error)
}

// Rebuild fills another index and makes it the repository's. All methods may be called again, also after a crash.
type Rebuild interface {
	// Begin creates the index that a job fills. CodeConflict when a rebuild is not possible, such as after the index was deleted. It calls
	// counts before, unless that is done, and returns its error.
	Begin(ctx context.Context, jobID string, counts Counts) error
	// Check returns CodeConflict when that index was deleted or takes no writes.
	Check(ctx context.Context, jobID string) error
	// Finish makes it the repository's index.
	Finish(ctx context.Context, jobID string) error
	// Discard deletes it, or reports that another consumer has made it the repository's index, or had begun to: that is completed. CodeConflict
	// when it is kept, because others read it.
	Discard(ctx context.Context, jobID string) (moved bool, err error)
	// DiscardEnded deletes it if its job has ended.
	DiscardEnded(ctx context.Context, ended func(ctx context.Context, jobID string) (bool, error)) error
}

// Counts returns the JSON kinds of all records of a repository; core.OverflownKinds if they are not known. They may have some of records that
// have changed since, unless uncertain returns a path for them.
type Counts = func(ctx context.Context, uncertain counts.Uncertain) (core.Kinds, error)

// Index is the consumers' read access to the index; writes go through the bulk writer.
type Index interface {
	counts.Index
	sweep.Index
	// Checkpoint returns a checkpoint of everything written to the alias so far, "" when the index has none, and
	// core.CheckpointNone when nothing was written.
	Checkpoint(ctx context.Context, alias string) (string, error)
}
