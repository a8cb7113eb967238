// Package why says what is known of one record between its repository and the index, and why it is not in the index.
package why

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/internal/base/cache"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/report/recordtrace"
)

// Upstream fetches records.
type Upstream interface {
	Record(ctx context.Context, organization, id string) (core.Record, error)
}

// Index reads documents.
type Index interface {
	// GetAll calls each for every id with its document, if the index has it.
	GetAll(ctx context.Context, alias string, ids []string, each func(i int, doc core.StoredDocument, found bool)) error
	Scan(ctx context.Context, alias string, scope core.IndexScope, below core.Version, each func(id string, v core.Version) error) error
}

// Queue reads pending Requests.
type Queue interface {
	// PendingRecord returns the pending Request of a record, and how many batches of its repository are pending.
	PendingRecord(ctx context.Context, repository, organization, id string) (core.PendingRecord, error)
}

// Jobs reads jobs.
type Jobs interface {
	// EachChangedAfter calls each for every job that changed after a revision, in the order of their last changes.
	EachChangedAfter(ctx context.Context, after uint64, each func(revision uint64, job core.Job) error) error
	// Organization returns one organization of a job, CodeNotFound if the job has not begun it.
	Organization(ctx context.Context, jobID, organization string) (core.OrganizationRun, error)
}

// Lists reads lists of ids.
type Lists interface {
	// Find returns an id of an organization's part of a job's list with its outcome, CodeNotFound if the list does not have it.
	Find(ctx context.Context, jobID, organization, id string) (idlist.ID, error)
}

// DeadLetters reads dead letters.
type DeadLetters interface {
	// Find returns the dead letter of a record, CodeNotFound when there is none.
	Find(ctx context.Context, repository, organization, id string) (core.DeadLetter, error)
	// FindRecords returns dead letters of records with an id, of all repositories and organizations.
	FindRecords(ctx context.Context, id string) ([]core.DeadLetter, error)
}

// Repository is one configured repository. One of Document and Split is set, as for the consumers.
type Repository struct {
	core.Repository
	Upstream Upstream
	// States are the states that are indexed, nil if the type of repository has none.
	States   []string
	Document func(dst []byte, rec core.Record) []byte
	Split    func(rec core.Record, each func(id string, document []byte) error) error
	// Organization returns the organization of a record, CodeNotFound if there is none; nil if the repository cannot find records by
	// their ids alone.
	Organization func(ctx context.Context, id string) (string, error)
	// Holder returns the id of the record that contains a part, "" if that is not known; nil if no record contains others.
	Holder func(ctx context.Context, organization string, part core.Part) (id string, isPart bool, err error)
	// Shared is the repository's view of an index that it shares with others, nil if it shares none.
	Shared Shared
}

// Shared reads a repository's part of documents.
type Shared interface {
	Index
	// Same reports whether what GetAll returned is the repository's part of a document.
	Same(stored, document []byte) bool
}

// Config holds the dependencies of a Tracer; all but Timeout are required.
type Config struct {
	Index       Index
	Queue       Queue
	Jobs        Jobs
	Lists       Lists
	DeadLetters DeadLetters
	// Paused lists the paused repositories.
	Paused func() []core.Pause
	// Timeout bounds each part, 2 s by default: one that takes longer is unknown.
	Timeout time.Duration
}

const (
	defaultTimeout = 2 * time.Second
	// maxDocuments is how many documents of a record are listed.
	maxDocuments = 100
	// maxJobs is how many of the newest jobs of a repository are searched for those that concern a record.
	maxJobs = 200
	// maxEndedJobs is how many times what a job did with an organization, or with an id of a list, is remembered.
	maxEndedJobs = 10_000
	// maxCalls bounds the concurrent calls to the queue of one part of a trace.
	maxCalls = 16
)

// Tracer collects RecordTraces. It is safe for concurrent use.
type Tracer struct {
	repositories map[string]Repository
	newestJobs   jobList
	endedJobs    *cache.LRU[endedKey, *recordtrace.Job]
	cfg          Config
}

// New returns a Tracer.
func New(repositories []Repository, cfg Config) *Tracer {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	t := &Tracer{repositories: make(map[string]Repository, len(repositories)), cfg: cfg, endedJobs: cache.NewLRU[endedKey, *recordtrace.Job](maxEndedJobs)}
	for _, r := range repositories {
		t.repositories[r.Code] = r
	}
	return t
}

// Trace returns what is known of a record. A part that fails or takes too long has its own error and does not affect the others.
// With restricted, for a caller that may only read this organization, records and documents of other organizations count as absent,
// and the jobs of the whole repository have no id. CodeNotFound for an unknown repository.
func (t *Tracer) Trace(ctx context.Context, record core.RecordRef, restricted bool) (recordtrace.Trace, error) {
	repo, ok := t.repositories[record.Repository()]
	if !ok {
		return recordtrace.Trace{}, core.RepositoryNotConfigured(record.Repository())
	}
	trace := recordtrace.Trace{Repository: repo.Code, Organization: record.Organization(), ID: record.ID()}
	trace.Index.Alias, trace.Upstream.IndexedStates = repo.IndexName, repo.States
	c := &collection{
		Tracer: t, repository: repo, restricted: restricted, trace: &trace,
		expected: map[string]body{}, stored: map[string]storedDocument{},
	}
	c.collect(ctx)
	trace.Next = Next(trace)
	return trace, nil
}

// collection is one call of Trace. Each part writes only its own members until all that run at the same time have ended.
type collection struct {
	*Tracer
	repository Repository
	restricted bool
	trace      *recordtrace.Trace
	// expected are the documents that the record becomes, in the order of ids, as far as they are listed; known reports whether they
	// could be made.
	expected map[string]body
	ids      []string
	known    bool
	// storedIDs are those of the stored documents of a record with several, stored the documents that the index returned.
	storedIDs []string
	stored    map[string]storedDocument
	// kept is the size of all documents that were to be kept.
	kept atomic.Int64
}

// collect reads all parts at the same time, except the documents and dead letters of a record with several documents: their ids are
// known only after the record, and the stored ones, were read.
func (c *collection) collect(ctx context.Context) {
	index, letters := &c.trace.Index.Part, &c.trace.DeadLetters.Part
	c.trace.Index.Documents, c.trace.DeadLetters.Letters = []recordtrace.Document{}, []recordtrace.DeadLetter{}
	var first, second sync.WaitGroup
	first.Go(func() { c.read(ctx, &c.trace.Upstream.Part, c.upstream) })
	first.Go(func() { c.read(ctx, &c.trace.Queue.Part, c.queue) })
	first.Go(func() { c.read(ctx, &c.trace.Jobs.Part, c.jobs) })
	ids := []string{c.trace.ID}
	if c.repository.Split != nil {
		first.Go(func() { c.read(ctx, index, c.listStored) })
		first.Wait()
		ids = c.listed()
	}
	second.Go(func() { c.read(ctx, index, func(ctx context.Context) error { return c.documentsOf(ctx, ids) }) })
	second.Go(func() { c.read(ctx, letters, func(ctx context.Context) error { return c.deadLetters(ctx, ids) }) })
	first.Wait()
	second.Wait()
	if index.Status == "" {
		c.compare(c.listed())
	}
}

// read calls one part with its own timeout, unless an earlier call for it failed.
func (c *collection) read(ctx context.Context, p *recordtrace.Part, part func(context.Context) error) {
	if p.Status != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	start := time.Now()
	err := part(ctx)
	p.TookMillis += float64(time.Since(start).Microseconds()) / 1000
	switch {
	case err == nil:
	case ctx.Err() != nil:
		p.Status, p.Error = recordtrace.StatusUnknown, fmt.Sprintf("no answer within %s", c.cfg.Timeout)
	default:
		p.Status, p.Error = recordtrace.StatusError, core.DisplayOf(err)
	}
}

// upstream fetches the record and makes its documents.
func (c *collection) upstream(ctx context.Context) error {
	u := &c.trace.Upstream
	rec, err := c.repository.Upstream.Record(ctx, c.trace.Organization, c.trace.ID)
	if rec.Release != nil {
		defer rec.Release()
	}
	switch {
	case errors.Is(err, core.ErrOtherOrganization), err == nil && rec.Organization != c.trace.Organization:
		u.Status = c.other()
		c.known = true
		return nil
	case core.CodeOf(err) == core.CodeAbsent:
		u.Status = recordtrace.StatusAbsent
		c.known = true
		return nil
	case err != nil:
		return err
	case rec.ID != c.trace.ID:
		return core.NewError(core.CodeUpstream, "the repository returned another record than the requested one")
	}
	u.State = rec.State
	if rec.TooLarge != nil {
		u.Status, u.Bytes, u.SHA256 = recordtrace.StatusTooLarge, rec.TooLarge.Size, rec.TooLarge.SHA256
	} else {
		u.Status, u.Bytes, u.SHA256 = recordtrace.StatusFound, len(rec.Body), hashOf(rec.Body)
	}
	if !rec.Indexable {
		u.Status, u.ExcludedBy, u.Reason = recordtrace.StatusExcluded, rec.Excluded, rec.Reason
		c.known = true
		if rec.Part != nil && c.repository.Holder != nil {
			if id, isPart, err := c.repository.Holder(ctx, rec.Organization, *rec.Part); err == nil && isPart {
				u.PartOf = id
			}
		}
	}
	if u.Status == recordtrace.StatusFound {
		c.known = c.makeDocuments(rec) == nil
	}
	return nil
}

// other returns the status of a record of another organization.
func (c *collection) other() string {
	if c.restricted {
		return recordtrace.StatusAbsent
	}
	return recordtrace.StatusOther
}

// makeDocuments makes the documents of a record as the consumers do.
func (c *collection) makeDocuments(rec core.Record) error {
	add := func(id string, document []byte) error {
		if len(c.ids) < maxDocuments {
			c.expected[id] = c.keep(document)
		}
		c.ids = append(c.ids, id)
		return nil
	}
	if c.repository.Split != nil {
		return c.repository.Split(rec, add)
	}
	return add(rec.ID, c.repository.Document(nil, rec))
}

// queue reads what is pending.
func (c *collection) queue(ctx context.Context) error {
	q := &c.trace.Queue
	for _, p := range c.cfg.Paused() {
		if p.Repository == c.repository.Code {
			q.Paused = p.Reason
		}
	}
	pending, err := c.cfg.Queue.PendingRecord(ctx, c.repository.Code, c.trace.Organization, c.trace.ID)
	if err != nil {
		return err
	}
	q.Status, q.Batches = recordtrace.StatusNone, pending.Batches
	if r := pending.Request; r != nil {
		q.Status = recordtrace.StatusPending
		q.Request = &recordtrace.Request{Kind: r.Kind, Cause: r.Cause, Attempts: r.Attempts, ReceivedAt: r.ReceivedAt, NotBefore: r.NotBefore}
	}
	return nil
}

// deadLetters reads the dead letters of the record and of its documents.
func (c *collection) deadLetters(ctx context.Context, ids []string) error {
	d := &c.trace.DeadLetters
	if !slices.Contains(ids, c.trace.ID) {
		ids = append([]string{c.trace.ID}, ids...)
	}
	letters := make([]*recordtrace.DeadLetter, len(ids))
	var calls errgroup.Group
	calls.SetLimit(maxCalls)
	for i, id := range ids {
		calls.Go(func() error {
			l, err := c.cfg.DeadLetters.Find(ctx, c.repository.Code, c.trace.Organization, id)
			switch {
			case core.CodeOf(err) == core.CodeNotFound:
				return nil
			case err != nil:
				return err
			case c.restricted && l.Request != nil && l.Request.Organization != c.trace.Organization:
				return nil
			}
			letters[i] = &recordtrace.DeadLetter{
				ID: l.ID, RecordID: l.RecordID, Reason: l.Reason, Hint: l.Hint, EngineType: l.EngineType, Attempts: l.Attempts, LastAt: l.LastAt,
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	for _, l := range letters {
		if l != nil {
			d.Letters = append(d.Letters, *l)
		}
	}
	d.Status = recordtrace.StatusNone
	if len(d.Letters) > 0 {
		d.Status = recordtrace.StatusPresent
	}
	return nil
}
