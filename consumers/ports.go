package consumers

import (
	"context"
	"time"

	"tutti/internal/core"
)

// Upstream is a repository's server. Page calls each for every record of the rows [offset, offset+limit) in order; a
// record's body is valid only until each returns. Errors carry the codes of core: CodeAbsent for what the upstream
// itself says is not there, CodeUnavailable and CodeOverloaded for what may succeed later, CodeUpstream for the rest.
type Upstream interface {
	Organizations(ctx context.Context) ([]string, error)
	Page(ctx context.Context, organization string, offset, limit int, each func(core.Record) error) (core.PageInfo, error)
	Record(ctx context.Context, organization, id string) (core.Record, error)
}

// Source is one durable consumer. Fetch returns as soon as a message is there, at most max of them, and none after
// wait.
type Source interface {
	Fetch(ctx context.Context, max, maxBytes int, wait time.Duration) ([]core.Message, error)
}

// Requests publishes Requests and knows which are still in the queue.
type Requests interface {
	Publishing
	Waiting
}

// Publishing stores Requests.
type Publishing interface {
	Publish(ctx context.Context, r core.Request) error
	// Offer publishes r unless the pending Request of the same record stands (core.Request.MergeWithPending), which is success too.
	Offer(ctx context.Context, r core.Request) error
	// Republish puts r, m's Request with or without a change, on its subject again with m's attempts and its version carried over and not to be worked on
	// before after has passed, unless a newer one is there.
	Republish(ctx context.Context, m core.Message, r core.Request, after time.Duration) error
}

// Waiting tells which Requests are still in the queue.
type Waiting interface {
	// Idle reports whether no record or page Request of a repository waits or is in hand of any process.
	Idle(ctx context.Context, repository string) (bool, error)
	// PendingRecords returns the ids of records that still have a Request in the queue: those of an organization, or of all
	// organizations when that is empty.
	PendingRecords(ctx context.Context, repository, organization string) (map[string]struct{}, error)
}

// DeadLetters keeps what was given up. Has is cheap enough to be asked for every document.
type DeadLetters interface {
	Put(ctx context.Context, d core.DeadLetter) error
	Clear(ctx context.Context, repository, organization, id string) error
	Has(repository, organization, id string) bool
	// Find returns the letter of a record as it is stored; CodeNotFound when there is none.
	Find(ctx context.Context, repository, organization, id string) (core.DeadLetter, error)
}

// Jobs keeps jobs; Update is a compare-and-set that is tried again when it lost.
type Jobs interface {
	Create(ctx context.Context, j core.Job) error
	Get(ctx context.Context, id string) (core.Job, error)
	Update(ctx context.Context, id string, change func(*core.Job) error) (core.Job, error)
}

// OrganizationRuns keeps the organizations of jobs.
type OrganizationRuns interface {
	CreateOrganization(ctx context.Context, jobID string, run core.OrganizationRun) (created bool, err error)
	Organization(ctx context.Context, jobID, organization string) (core.OrganizationRun, error)
	UpdateOrganization(ctx context.Context, jobID, organization string, change func(*core.OrganizationRun) error) (core.OrganizationRun, error)
	Organizations(ctx context.Context, jobID string) ([]core.OrganizationRun, error)
}

// Pages notes what the pages of lists held, and which of it they requested one by one.
type Pages interface {
	PageIDs
	LateRecords
	// ForgetPages removes all notes of an organization's list, or of every list of the job when organization is empty.
	ForgetPages(ctx context.Context, jobID, organization string) error
}

// LateRecords notes the ids of records that pages requested one by one, under the epoch of each page.
type LateRecords interface {
	NoteLate(ctx context.Context, jobID, organization string, page, epoch int, ids []string) error
	// LateIDs returns the ids that were noted for pages, a map of page numbers to epochs, each id once.
	LateIDs(ctx context.Context, jobID, organization string, pages map[int]int) ([]string, error)
}

// PageIDs notes the ids of the pages of lists, as hashes. reading counts how often a list was begun anew.
type PageIDs interface {
	NotePage(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) error
	// NotedBefore returns those of ids that a page below the given one holds.
	NotedBefore(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) (map[uint64]struct{}, error)
	// NotedIDs counts the different ids of the pages up to and including last.
	NotedIDs(ctx context.Context, jobID, organization string, reading, last int) (int, error)
}

// Slots are named compare-and-set cells; one per scope names the job that runs there.
type Slots interface {
	Slot(ctx context.Context, name string) (jobID string, revision uint64, err error)
	SetSlot(ctx context.Context, name, jobID string, revision uint64) error
}

// Index is what the consumers read of the index; writes go through the bulk writer.
type Index interface {
	Documents
	Scans
}

// Documents reads single documents and counts them.
type Documents interface {
	Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error)
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

// Probe reports whether a repository's index takes writes now.
type Probe interface {
	// Prepare makes the index and its alias where they are missing. It is called before the first write, and after the
	// index was missing or replaced. identity is that of the index that was last prepared, "" for none: while that one is
	// there without its alias, no other is made.
	Prepare(ctx context.Context, identity string) error
	// Check returns nil when the alias takes writes; its error is displayable, and core.ErrIndexMissing when neither the
	// alias nor an index of it is there.
	Check(ctx context.Context) error
	// Identity returns what no other index has, also none that is made later under the same name; "" where the engine
	// does not say.
	Identity(ctx context.Context) (string, error)
}
