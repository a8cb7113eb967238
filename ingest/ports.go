package ingest

import (
	"context"
	"time"

	"tutti/internal/core"
)

// BatchPublisher stores many Requests at once.
type BatchPublisher interface {
	// PublishAll stores each Request as core.Publisher does and returns one error for each, in their order; nil when all
	// are stored.
	PublishAll(ctx context.Context, requests []core.Request) []error
}

// DeadLetters stores dead letters.
type DeadLetters interface {
	// Put stores a dead letter durably. There is one for each record, and for each source and document of a message.
	Put(ctx context.Context, l core.DeadLetter) error
	// Get returns one dead letter, with its document; CodeNotFound when there is none.
	Get(ctx context.Context, id string) (core.DeadLetter, error)
	// Delete discards one dead letter; CodeNotFound when there is none.
	Delete(ctx context.Context, id string) error
}

// DeadLetterIndex is an index of the dead letters in memory.
type DeadLetterIndex interface {
	// DeadLetterID returns the id under which Put stores a dead letter.
	DeadLetterID(l core.DeadLetter) string
	// CountReason returns the number of dead letters of a repository and of a reason.
	CountReason(repository, reason string) int
}

// Signatures stores the signatures of notifications for all processes.
type Signatures interface {
	// FirstSeen returns when a key was first stored, the zero time if it was not.
	FirstSeen(ctx context.Context, key string) (time.Time, error)
	// Remember stores a key for a week. A key that is already stored keeps its time.
	Remember(ctx context.Context, key string) error
}

// JobStore stores jobs.
type JobStore interface {
	// Create stores a new job; CodeConflict when the id is taken.
	Create(ctx context.Context, job core.Job) error
	// Update changes a job by compare-and-swap. change may run several times; its error ends the update with nothing
	// written. CodeNotFound when there is no such job.
	Update(ctx context.Context, id string, change func(*core.Job) error) (core.Job, error)
}
