package ingest

import (
	"context"
	"time"

	"tutti/internal/core"
)

// Publisher stores Requests. Publish returns nil only after the queue's acknowledgement; a queue that is full or cannot
// be reached gives CodeOverloaded or CodeUnavailable.
type Publisher interface {
	Publish(ctx context.Context, r core.Request) error
}

// BatchPublisher stores many Requests at once.
type BatchPublisher interface {
	// PublishAll stores each Request as Publisher.Publish does and returns one error for each, in their order; nil when all
	// are stored.
	PublishAll(ctx context.Context, requests []core.Request) []error
}

// DeadLetters keeps what was given up.
type DeadLetters interface {
	// Put stores a letter and returns when it is safe. One letter is kept for each record, and for each source and
	// document of a message.
	Put(ctx context.Context, l core.DeadLetter) error
	// List returns at most limit letters of a repository and of a reason ("" for any), the last written first, and the
	// cursor of the next ones, "" after the last.
	List(ctx context.Context, repository, reason string, limit int, cursor string) ([]core.DeadLetter, string, error)
	// Get returns one letter, its document included; CodeNotFound when there is none.
	Get(ctx context.Context, id string) (core.DeadLetter, error)
	// Delete discards one letter; CodeNotFound when there is none.
	Delete(ctx context.Context, id string) error
}

// DeadLetterIndex tells of letters what asks no server.
type DeadLetterIndex interface {
	// DeadLetterID returns the id under which Put stores a letter.
	DeadLetterID(l core.DeadLetter) string
	// CountReason returns the number of letters of a repository and of a reason.
	CountReason(repository, reason string) int
}

// Signatures remembers signed notifications for all processes.
type Signatures interface {
	// FirstSeen returns when a key was first remembered, the zero time when it is not.
	FirstSeen(ctx context.Context, key string) (time.Time, error)
	// Remember remembers a key for a week. A key that is remembered already keeps its time.
	Remember(ctx context.Context, key string) error
}

// JobStore keeps jobs.
type JobStore interface {
	// Create stores a new job; CodeConflict when the id is taken.
	Create(ctx context.Context, job core.Job) error
	// Update changes a job by compare-and-set. change may run several times; its error ends the update with nothing
	// written. CodeNotFound when there is no such job.
	Update(ctx context.Context, id string, change func(*core.Job) error) (core.Job, error)
}

// Cells are named compare-and-swap cells that hold one job id each.
type Cells interface {
	// Cell returns the job id in the cell and its revision; "" and 0 when it was never set.
	Cell(ctx context.Context, name string) (jobID string, revision uint64, err error)
	// SetCell puts jobID into the cell; CodeConflict when revision is not the cell's current one.
	SetCell(ctx context.Context, name, jobID string, revision uint64) error
}
