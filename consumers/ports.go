package consumers

import (
	"context"

	"tutti/consumers/counts"
	"tutti/consumers/fetch"
	"tutti/consumers/ids"
	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/consumers/retry"
	"tutti/consumers/run"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// The interfaces that the sub-packages declare, for the packages that implement them.
type (
	// Upstream is the server of a repository.
	Upstream = core.Upstream
	// Holders finds the records that contain others.
	Holders = fetch.Holders
	// Types makes what a repository declares about the types of fields known to the index.
	Types = fetch.Types
	// Source is one durable consumer.
	Source = loop.Source
	// DeadLetters stores dead letters.
	DeadLetters = outcome.DeadLetters
	// Jobs stores jobs.
	Jobs = core.Jobs
	// OrganizationRuns stores the runs of the organizations of jobs.
	OrganizationRuns = state.OrganizationRuns
	// OrganizationGroups stores the runs of organizations in groups, for jobs that have many.
	OrganizationGroups = state.OrganizationGroups
	// Pages stores the ids of the rows of list pages, and of the records that the pages requested one by one.
	Pages = run.Pages
	// IDPages stores the pages of ids of jobs.
	IDPages = ids.Pages
	// Cells are named compare-and-swap cells.
	Cells = core.Cells
	// Rebuild fills another index and makes it the repository's.
	Rebuild = run.Rebuild
	// Counts returns the JSON kinds of all records.
	Counts = run.Counts
	// Uncertain returns a path whose type a number of changed records may change.
	Uncertain = counts.Uncertain
	// KindCounter counts the JSON kinds of the documents of records.
	KindCounter = counts.Counter
	// Letters lists dead letters.
	Letters = counts.Letters
	// Index is the consumers' read access to the index; writes go through the bulk writer.
	Index = run.Index
	// DeadLetterPages reads dead letters in pages.
	DeadLetterPages = retry.Letters
	// Retrier publishes the Requests of dead letters again.
	Retrier = retry.Retrier
	// Room reports whether the queue has room.
	Room = retry.Room
	// Metrics counts fetched records, outcomes and times to index.
	Metrics = outcome.Metrics
)

// NewMetrics returns the metrics, registered with a registerer.
var NewMetrics = outcome.NewMetrics

// SharedIndex is a repository's view of an index that it shares with others.
type SharedIndex interface {
	Index
	// Same reports whether what GetAll returned is the repository's part of the document of a record.
	Same(stored, document []byte) bool
	// State returns the state of a document, that of all repositories.
	State(ctx context.Context, alias, id string) (core.SharedState, error)
	// InConflict reports whether the record of what GetAll returned is in conflict.
	InConflict(stored []byte) bool
}

// Requests publishes Requests and reports which are still in the queue.
type Requests interface {
	loop.Requests
	run.Requests
}

// Probe checks and prepares a repository's index.
type Probe interface {
	// Prepare creates the index and its alias where they are missing. It is called before the first write, and after the
	// index was missing or replaced. identity is that of the index that was last prepared, "" for none: while that index
	// exists without its alias, Prepare creates no other.
	Prepare(ctx context.Context, identity string) error
	// Check returns nil when the alias takes writes. Its error may be shown to users, and is core.ErrIndexMissing when
	// neither the alias nor its index exists.
	Check(ctx context.Context) error
	// Identity returns the unique identifier of the index: another index that is later created under the same name has another
	// one. "" if the engine has none.
	Identity(ctx context.Context) (string, error)
}
