package sweep

import (
	"context"

	"tutti/internal/core"
)

// Organizations stores the runs of the organizations of jobs.
type Organizations interface {
	UpdateOrganization(ctx context.Context, jobID, organization string, change func(*core.OrganizationRun) error) (core.OrganizationRun, error)
	Organizations(ctx context.Context, jobID string) ([]core.OrganizationRun, error)
}

// Requests reports which Requests are still in the queue.
type Requests interface {
	// PendingRecords returns the ids of records with a Request in the queue, of one organization or, when organization is
	// empty, of all, and the organization of each, one of them if there are several.
	PendingRecords(ctx context.Context, repository, organization string) (map[string]string, error)
}

// Notes are what the pages of a job's lists showed, and what its sweep is about to remove.
type Notes interface {
	// NotedIDs and NotedInvalid return the distinct ids, as sorted hashes, of the rows of the pages up to and including last, and those of
	// records that are not to be indexed. reading counts how often the list was restarted.
	NotedIDs(ctx context.Context, jobID, organization string, reading, last int) ([]uint64, error)
	NotedInvalid(ctx context.Context, jobID, organization string, reading, last int) ([]uint64, error)
	// NoteSwept stores ids of documents that a step is about to remove, beside those of earlier calls.
	NoteSwept(ctx context.Context, jobID, organization string, step int, ids []string) error
	// Swept returns them by organization, each id once; organization is empty for all.
	Swept(ctx context.Context, jobID, organization string, step int) (map[string][]string, error)
}

// Index reads and counts documents, and finds those that a run did not see.
type Index interface {
	Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error)
	Count(ctx context.Context, alias string, scope core.IndexScope) (int64, error)
	Refresh(ctx context.Context, alias string) error
	// Scan calls each for the documents of scope whose version is below the given one; 0 means all. With scope.WrittenBy it may omit
	// documents written after that checkpoint.
	Scan(ctx context.Context, alias string, scope core.IndexScope, below core.Version, each func(id string, v core.Version) error) error
}
