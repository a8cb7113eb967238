package run

import (
	"context"

	"tutti/consumers/sweep"
	"tutti/internal/core"
)

// Requests publishes Requests and reports which are still in the queue.
type Requests interface {
	Publish(ctx context.Context, r core.Request) error
	// PublishUnlessRemovalPending publishes r unless the pending Request of the same record stands (core.Request.MergeWithPending),
	// which is success too.
	PublishUnlessRemovalPending(ctx context.Context, r core.Request) error
	// Idle reports whether no Request of a repository for a record or a page, or only of the given classes, is pending or in flight in any
	// process.
	Idle(ctx context.Context, repository string, classes ...core.Class) (bool, error)
	// Newest returns a version that no stored Request exceeds, and that any later one does.
	Newest(ctx context.Context) (core.Version, error)
	// PendingRecords returns the ids of records with a Request in the queue, of one organization or, when organization is
	// empty, of all, and the organization of each, one of them if there are several.
	PendingRecords(ctx context.Context, repository, organization string) (map[string]string, error)
}

// Pages stores the ids of the rows of list pages, and of the records that the pages requested one by one.
type Pages interface {
	PageIDs
	InvalidIDs
	LateRecords
	sweep.Notes
	// ForgetPages removes what is stored of an organization's list, or of every list of the job when organization is empty.
	ForgetPages(ctx context.Context, jobID, organization string) error
}

// InvalidIDs stores the ids of the records that list pages showed as not to be indexed, as hashes. reading counts how often the list was
// restarted.
type InvalidIDs interface {
	// NoteInvalid replaces what is stored of a page.
	NoteInvalid(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) error
	// NotedInvalid returns the distinct ids of the pages up to and including last, sorted.
	NotedInvalid(ctx context.Context, jobID, organization string, reading, last int) ([]uint64, error)
}

// LateRecords stores the ids of records that pages requested one by one, under the epoch of each page.
type LateRecords interface {
	NoteRequestedIDs(ctx context.Context, jobID, organization string, page, epoch int, ids []string) error
	// RequestedIDs returns the ids that were stored for pages, a map of page numbers to epochs; each id once.
	RequestedIDs(ctx context.Context, jobID, organization string, pages map[int]int) ([]string, error)
}

// PageIDs stores the ids of the rows of list pages, as hashes. reading counts how often the list was restarted.
type PageIDs interface {
	NotePage(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) error
	// IDsOnEarlierPages returns those of ids that a page below the given one holds.
	IDsOnEarlierPages(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) (map[uint64]struct{}, error)
	// NotedIDs returns the distinct ids of the pages up to and including last, sorted.
	NotedIDs(ctx context.Context, jobID, organization string, reading, last int) ([]uint64, error)
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
type Counts = func(ctx context.Context, uncertain Uncertain) (core.Kinds, error)

// Uncertain returns a path whose type may be another one if the kinds of so many records were not in counts, "" if there is none.
type Uncertain = func(counts core.Kinds, gone int64) (path string)

// KindCounter counts the JSON kinds of the documents of records.
type KindCounter interface {
	// Record begins a record, whose documents follow.
	Record()
	Add(document []byte)
	// AddShaped is Record and Add for the only document of a record with a core.Record.Shape.
	AddShaped(document []byte, shape uint64)
	// Take returns the kinds since the last call, as those of a number of records, and begins anew.
	Take(records int64) core.Kinds
}

// Letters lists the dead letters of a repository.
type Letters interface {
	List(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error)
}

// Index is the consumers' read access to the index; writes go through the bulk writer.
type Index interface {
	Documents
	Scans
}

// Documents reads and counts documents.
type Documents interface {
	Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error)
	GetAll(ctx context.Context, alias string, ids []string, each func(i int, doc core.StoredDocument, found bool)) error
	Count(ctx context.Context, alias string, scope core.IndexScope) (int64, error)
	Refresh(ctx context.Context, alias string) error
}

// Scans finds the documents that a run did not see.
type Scans interface {
	// Checkpoint returns a checkpoint of everything written to the alias so far, "" when the index has none, and
	// core.CheckpointNone when nothing was written.
	Checkpoint(ctx context.Context, alias string) (string, error)
	// Scan calls each for the documents of scope whose version is below the given one; 0 means all. With
	// scope.WrittenBy it may omit documents written after that checkpoint.
	Scan(ctx context.Context, alias string, scope core.IndexScope, below core.Version, each func(id string, v core.Version) error) error
}
