package counts

import (
	"context"
	"log/slog"
	"sync"

	"tutti/consumers/fetch"
	"tutti/consumers/outage"
	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// Counter counts the JSON kinds of the documents of records.
type Counter interface {
	// Record begins a record, whose documents follow.
	Record()
	Add(document []byte)
	// AddShaped is Record and Add for the only document of a record with a core.Record.Shape.
	AddShaped(document []byte, shape uint64)
	// Take returns the kinds since the last call, as those of a number of records, and begins anew.
	Take(records int64) core.Kinds
}

// Uncertain returns a path whose type may be another one if the kinds of so many records were not in counts, "" if there is none.
type Uncertain = func(counts core.Kinds, gone int64) (path string)

// Requests reports which Requests are in the queue.
type Requests interface {
	// Idle reports whether no Request of a repository for a record or a page, or only of the given classes, is pending or in flight in any
	// process.
	Idle(ctx context.Context, repository string, classes ...core.Class) (bool, error)
	// Newest returns a version that no stored Request exceeds, and that any later one does.
	Newest(ctx context.Context) (core.Version, error)
	// PendingRecords returns the ids of records with a Request in the queue, of one organization or, when organization is
	// empty, of all, and the organization of each, one of them if there are several.
	PendingRecords(ctx context.Context, repository, organization string) (map[string]string, error)
}

// Letters lists the dead letters of a repository.
type Letters interface {
	List(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error)
}

// Index reads documents.
type Index interface {
	GetAll(ctx context.Context, alias string, ids []string, each func(i int, doc core.StoredDocument, found bool)) error
	Refresh(ctx context.Context, alias string) error
	// Scan calls each for the documents of scope whose version is below the given one; 0 means all.
	Scan(ctx context.Context, alias string, scope core.IndexScope, below core.Version, each func(id string, v core.Version) error) error
}

// Organizations changes the runs of the organizations of jobs.
type Organizations interface {
	UpdateOrganization(ctx context.Context, jobID, organization string, change func(*core.OrganizationRun) error) (core.OrganizationRun, error)
}

// Groups sums the organizations of jobs.
type Groups interface {
	// EachSum calls each with the current sum of every group of a job that changed after a revision, and of every organization that
	// is stored by itself.
	EachSum(ctx context.Context, jobID string, after uint64, each func(jobsum.Change) error) error
}

// Config holds the settings and dependencies of Kinds; all but one of Document and Split are required, Letters with NewCounter.
type Config struct {
	Repository core.Repository
	Logger     *slog.Logger
	// Document appends the document made of a record to dst.
	Document func(dst []byte, rec core.Record) []byte
	// Split calls each with the documents of a record instead, if it is set.
	Split func(rec core.Record, each func(id string, document []byte) error) error
	// NewCounter returns a Counter; nil if kinds are not counted.
	NewCounter func() Counter
	// Cell names the cell that has what the last run of the whole repository counted.
	Cell  string
	Cells core.Cells
	// Sizes are those of the pages of all records that are read, Concurrency how many of these are read at once.
	Sizes       fetch.Sizes
	Concurrency int

	Fetcher       *fetch.Fetcher
	Calls         *outage.Calls
	Jobs          *state.Jobs
	Drift         state.DriftNotes
	Organizations Organizations
	Groups        Groups
	Requests      Requests
	Letters       Letters
	Index         Index
}

// Kinds are the counts of the JSON kinds of one repository's records. It is safe for concurrent use.
type Kinds struct {
	cfg      Config
	counters sync.Pool // of Counter
}

// New returns the counts of a repository.
func New(cfg Config) *Kinds { return &Kinds{cfg: cfg} }

// Counted reports whether kinds are counted at all.
func (k *Kinds) Counted() bool { return k.cfg.NewCounter != nil }

// Counter returns a Counter for a page of a job, nil if its kinds are not counted. The caller passes it to Release when it
// has taken the kinds.
func (k *Kinds) Counter(job core.Job) Counter {
	if !job.Kinds || k.cfg.NewCounter == nil {
		return nil
	}
	if c, is := k.counters.Get().(Counter); is {
		return c
	}
	return k.cfg.NewCounter()
}

// Release makes a Counter available for another page.
func (k *Kinds) Release(c Counter) {
	if c != nil {
		c.Take(0) // of a page that was not read to its end
		k.counters.Put(c)
	}
}

// Count counts the documents of a record of an organization, if it has any.
func (k *Kinds) Count(counter Counter, rec core.Record, organization string) {
	if rec.Excluded != nil || !rec.Indexable || rec.TooLarge != nil || rec.Organization != organization {
		return
	}
	if k.cfg.Split == nil {
		counter.AddShaped(k.cfg.Document(nil, rec), rec.Shape)
		return
	}
	counter.Record()
	_ = k.cfg.Split(rec, func(_ string, document []byte) error { // a record that cannot be split has no document
		counter.Add(document)
		return nil
	})
}
