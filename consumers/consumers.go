package consumers

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/consumers/record"
	"tutti/consumers/retry"
	"tutti/consumers/run"
	"tutti/consumers/state"
	"tutti/internal/base/equality"
	"tutti/internal/base/span"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
	"tutti/internal/index/pace"
)

// Repository is one configured repository with its dependencies.
type Repository struct {
	core.Repository
	Upstream Upstream
	// Document appends the document made of a record to dst. It is nil if Split is set, which calls each with the documents of a
	// record and their ids: a document is valid until each returns. Split returns CodeInvalid, before any call of each, for a
	// record that cannot be documents. Its documents have the id of their record in the field Fields.ID.
	Document func(dst []byte, rec core.Record) []byte
	Split    func(rec core.Record, each func(id string, document []byte) error) error
	Probe    Probe
	// ExcludedOrganizations are those whose records an exclusion rule excludes. Upstream must not list them, and must return their
	// records with core.Record.Excluded.
	ExcludedOrganizations []string
	// RunAgain queues a run of the whole repository, for an index that was lost. A run that is already queued suffices.
	RunAgain func(ctx context.Context) error
	// Holders finds the records that contain others, and RunDifference queues a run of the difference of an organization of which it does
	// not find one; both are nil for repositories whose records never contain others.
	Holders       Holders
	RunDifference func(ctx context.Context, organization string, cause core.Cause, requestID string) error
	// Types makes what the repository declares about the types of fields known to the index; nil for one that declares nothing.
	Types Types
	// Records, Batches, Pages and Runs are the repository's durable consumers.
	Records, Batches, Pages, Runs Source
	// NonOverlapping is true when the upstream pages by page number, so that each page begins at a multiple of its size: a
	// page cannot repeat the last row of the page before to show that no row moved between them.
	NonOverlapping bool
	// PageSize is the number of rows of a page, 500 by default; pages become smaller while one takes longer than the maximum
	// age of a body.
	PageSize int
	// Concurrency bounds the calls to the upstream in flight, for records and for pages separately, 4 by default.
	Concurrency int
	// MappingFile is the mapping file of the index, "" for none; for hints.
	MappingFile string
	// Rebuild fills another index for a rebuild.
	Rebuild Rebuild
	// Shared is the repository's view of an index that it shares with others, nil if it shares none.
	Shared SharedIndex
	// Letters lists its dead letters; required with Shared and with NewKindCounter.
	Letters Letters
	// NewKindCounter returns a counter of the JSON kinds of documents, for rebuilds; nil for an index that is never rebuilt.
	NewKindCounter func() KindCounter
	// Form is the form of the documents; what was counted in another form does not matter.
	Form string
	// GiveUpAfter is how long a run is paused because the repository does not answer before the run fails, 1 hour by default.
	GiveUpAfter time.Duration
}

// Retries are the dependencies of the jobs that retry dead letters.
type Retries struct {
	// Source is their durable consumer, one for all repositories.
	Source  Source
	Letters DeadLetterPages
	Retrier Retrier
	Room    Room
}

// Deps are the dependencies that all repositories share; all are required but Retries, without which no process retries dead letters, and Pace.
type Deps struct {
	Requests      Requests
	DeadLetters   DeadLetters
	Jobs          Jobs
	Organizations OrganizationRuns
	Groups        OrganizationGroups
	Pages         Pages
	IDs           IDPages
	Cells         Cells
	Index         Index
	Writer        *bulk.Writer
	Pace          *pace.Pace // optional
	Retries       Retries
}

func (d Deps) complete() bool {
	return d.Requests != nil && d.DeadLetters != nil && d.Jobs != nil && d.Organizations != nil && d.Groups != nil && d.Pages != nil && d.IDs != nil &&
		d.Cells != nil && d.Index != nil && d.Writer != nil
}

// Config holds the optional settings; its zero value is the default.
type Config struct {
	Logger  *slog.Logger
	Metrics *Metrics
	// Tracer starts the spans of Requests; nil for none.
	Tracer *span.Tracer
	// AckWait is the consumers' ack wait, 30 s by default. A heartbeat reports messages in flight as in progress every third
	// of it.
	AckWait time.Duration
	// MaxDeliver is the number of deliveries after which the queue drops a message, 20 by default. A message is republished
	// after half of them, so that only a message that ends the process each time reaches the limit.
	MaxDeliver int
	// RecordsInFlight bounds the record messages of a repository in flight, 256 by default.
	RecordsInFlight int
	// MaxRecordBytes is the largest size of a record that the upstreams return, 32 MiB by default; dead letters name it.
	MaxRecordBytes int
	// PageAttempts is how often a page or a list of organizations is requested before the job is paused
	// or fails, 5 by default.
	PageAttempts int
	// RetryBase and RetryMax bound the backoff between attempts, 200 ms and 60 s by default.
	RetryBase, RetryMax time.Duration
	// ProgressEvery is the shortest interval between two writes of an organization's progress, 250 ms by default.
	ProgressEvery time.Duration
	// GroupedFrom is the number of organizations from which a repository's run processes and stores them in groups, 32 by default.
	GroupedFrom int
	// SweepTimeout is how long a sweep waits for the next of its records to end before its job ends partial, 1 minute by
	// default. The requests of the remaining records stay in the queue.
	SweepTimeout time.Duration
	// ClockSkew is how far a stored version may lie ahead of the message and of now before that raises the clock alarm, 5 s
	// by default: a clock was set back.
	ClockSkew time.Duration
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.AckWait = cmp.Or(c.AckWait, 30*time.Second)
	c.MaxDeliver = cmp.Or(c.MaxDeliver, 20)
	c.RecordsInFlight = cmp.Or(c.RecordsInFlight, 256)
	c.MaxRecordBytes = cmp.Or(c.MaxRecordBytes, core.DefaultMaxRecordBytes)
	c.PageAttempts = cmp.Or(c.PageAttempts, 5)
	c.RetryBase = cmp.Or(c.RetryBase, 200*time.Millisecond)
	c.RetryMax = cmp.Or(c.RetryMax, time.Minute)
	c.ProgressEvery = cmp.Or(c.ProgressEvery, 250*time.Millisecond)
	c.GroupedFrom = cmp.Or(c.GroupedFrom, 32)
	c.SweepTimeout = cmp.Or(c.SweepTimeout, time.Minute)
	c.ClockSkew = cmp.Or(c.ClockSkew, 5*time.Second)
	return c
}

// Consumers processes the Requests of all repositories until it is stopped.
type Consumers struct {
	process *loop.Process
	repos   []*repository
	admin   state.Admin
	// retries is nil without Deps.Retries.
	retries func()
}

// repository is the processing of one repository's Requests.
type repository struct {
	Repository
	loop     *loop.Loop
	outcomes *outcome.Outcomes
	records  *record.Worker
	runs     *run.Worker
	watch    *indexWatch
	log      *slog.Logger
	limit    int // records in flight
}

// New validates its arguments and returns the consumers; Start runs them.
func New(repositories []Repository, deps Deps, cfg Config) (*Consumers, error) {
	if !deps.complete() {
		return nil, core.NewError(core.CodeInternal, "making consumers: a dependency is missing")
	}
	cfg = cfg.withDefaults()
	c := &Consumers{
		process: loop.NewProcess(cfg.AckWait),
		admin: state.Admin{
			Jobs: deps.Jobs, Groups: deps.Groups, Pages: deps.Pages,
			Loggers: make(map[string]*slog.Logger, len(repositories)),
		},
	}
	for _, r := range repositories {
		if r.Upstream == nil || (r.Document == nil) == (r.Split == nil) || r.Probe == nil || r.Rebuild == nil || r.RunAgain == nil || r.Records == nil || r.Batches == nil || r.Pages == nil || r.Runs == nil ||
			(r.Holders == nil) != (r.RunDifference == nil) || (r.Shared != nil || r.NewKindCounter != nil) && r.Letters == nil {
			return nil, core.NewError(core.CodeInternal, fmt.Sprintf("making consumers: repository %s lacks a dependency", r.Code))
		}
		if c.admin.Loggers[r.Code] != nil {
			return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("repository %s is configured twice", r.Code))
		}
		log := cfg.Logger.With("repository", r.Code)
		c.admin.Loggers[r.Code] = log
		c.repos = append(c.repos, newRepository(c.process, r, deps, cfg, log))
	}
	if deps.Retries.Source != nil {
		worker := retry.New(newLoop(c.process, "", deps, cfg, cfg.Logger), retry.Config{
			Logger: cfg.Logger, Letters: deps.Retries.Letters, Retrier: deps.Retries.Retrier, Jobs: deps.Jobs, Room: deps.Retries.Room,
		})
		c.retries = func() { worker.Pull(deps.Retries.Source) }
	}
	return c, nil
}

func newLoop(p *loop.Process, repository string, deps Deps, cfg Config, log *slog.Logger) *loop.Loop {
	return loop.New(p, deps.Requests, deps.Cells, loop.Config{
		Repository: repository, Logger: log, Tracer: cfg.Tracer, AckWait: cfg.AckWait, MaxDeliver: cfg.MaxDeliver, RetryBase: cfg.RetryBase, RetryMax: cfg.RetryMax,
	})
}

func newRepository(p *loop.Process, r Repository, deps Deps, cfg Config, log *slog.Logger) *repository {
	r.PageSize = cmp.Or(r.PageSize, 500)
	r.Concurrency = cmp.Or(r.Concurrency, 4)
	r.GiveUpAfter = cmp.Or(r.GiveUpAfter, time.Hour)
	documents, same := deps.Index, equality.New(r.Fields.Unordered).Equal
	var shared *outcome.Shared
	if r.Shared != nil {
		documents, same = r.Shared, r.Shared.Same
		shared = &outcome.Shared{
			State: r.Shared.State, InConflict: r.Shared.InConflict, Publish: deps.Requests.PublishUnlessRemovalPending,
		}
	}
	l := newLoop(p, r.Code, deps, cfg, log)
	outcomes := outcome.New(deps.DeadLetters, l.Pause, outcome.Config{
		Repository: r.Repository, MappingFile: r.MappingFile, Logger: log, Metrics: cfg.Metrics, MaxRecordBytes: cfg.MaxRecordBytes, ClockSkew: cfg.ClockSkew,
		Shared: shared,
	})
	fetcher := fetch.New(r.Upstream, fetch.Config{
		Repository: r.Code, Logger: log, Metrics: cfg.Metrics, Concurrency: r.Concurrency, MaxBodyAge: deps.Writer.MaxBodyAge(),
		Holders: r.Holders, Types: r.Types,
	})
	records := record.New(l, record.Config{
		Repository: r.Repository, Logger: log, Document: r.Document, Split: r.Split, Fetcher: fetcher, Outcomes: outcomes, Index: documents,
		Jobs: deps.Jobs, Writer: deps.Writer, Requests: deps.Requests, RunDifference: r.RunDifference,
	})
	return &repository{
		Repository: r, loop: l, outcomes: outcomes, limit: cfg.RecordsInFlight, records: records, log: log,
		runs: run.New(l, run.Config{
			Repository: r.Repository, Logger: log, Document: r.Document, Split: r.Split, NonOverlapping: r.NonOverlapping, PageSize: r.PageSize,
			ExcludedOrganizations: r.ExcludedOrganizations,
			PageAttempts:          cfg.PageAttempts, GiveUpAfter: r.GiveUpAfter, Concurrency: r.Concurrency, ProgressEvery: cfg.ProgressEvery,
			GroupedFrom:  cfg.GroupedFrom,
			SweepTimeout: cfg.SweepTimeout, ClockSkew: cfg.ClockSkew, Fetcher: fetcher, Outcomes: outcomes, Writer: deps.Writer, Pace: deps.Pace,
			Requests: deps.Requests, Jobs: deps.Jobs, Organizations: deps.Organizations, Groups: deps.Groups, Pages: deps.Pages, IDs: deps.IDs, Records: records, Cells: deps.Cells,
			Index: documents, Same: same, Rebuild: r.Rebuild, FillCell: FillCell(r.Code, r.IndexName),
			NewKindCounter: r.NewKindCounter, KindsCell: indexCell("kinds."+r.Form, r.Code, r.IndexName), Letters: r.Letters,
		}),
		watch: &indexWatch{
			Repository: r, loop: l, outcomes: outcomes, log: log, cells: deps.Cells, index: documents, jobs: deps.Jobs,
			cell: IdentityCell(r.Code, r.IndexName),
		},
	}
}

// Start starts the consumers and returns at once. A repository whose index does not respond is paused until it does.
func (c *Consumers) Start() {
	var loops []func()
	for _, r := range c.repos {
		loops = append(loops,
			r.watch.run,
			func() { r.loop.PullQuarantined(core.ClassRecords, r.Records, r.limit, r.records.Process) },
			func() { r.loop.PullBatches(r.Batches, r.limit, r.records.Process) },
			func() { r.runs.PullPages(r.Pages) },
			func() { r.runs.PullRuns(r.Runs) })
		if r.Shared != nil {
			loops = append(loops, r.checkConflicts)
		}
	}
	if c.retries != nil {
		loops = append(loops, c.retries)
	}
	c.process.Start(loops...)
}

// Stop stops pulling, waits for the work in flight until ctx ends, then requeues the rest. Start does nothing afterwards.
func (c *Consumers) Stop(ctx context.Context) error { return c.process.Stop(ctx) }

// Cancel ends a job that is not final: its work in flight completes, no more of it is started, and the Requests of its sweep
// are dropped. It returns CodeConflict for a final job.
func (c *Consumers) Cancel(ctx context.Context, id string) (core.Job, error) {
	return c.admin.Cancel(ctx, id)
}

// EndOrphan ends a job that has no Request left in the queue, because one of them became a dead letter: its unfinished
// organizations have failed. It does nothing to a job that has ended.
func (c *Consumers) EndOrphan(ctx context.Context, id string) error {
	return c.admin.EndOrphan(ctx, id)
}

// Pause describes a repository that processes no Requests, or only those of single records, for now.
type Pause struct {
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
	// Index reports whether the repository waits for its index, Upstream whether its runs wait until the repository answers.
	// Both are false when only the rejections pause it.
	Index    bool `json:"-"`
	Upstream bool `json:"-"`
	// Starting reports whether the index has not been checked yet.
	Starting bool `json:"-"`
}

// Paused lists the paused repositories in the order of the configuration; the reasons may be shown to users.
func (c *Consumers) Paused() []Pause {
	var out []Pause
	for _, r := range c.repos {
		if reason := r.loop.Pause.Reason(); reason != "" {
			pause, why := r.outcomes.RejectionPause()
			out = append(out, Pause{Repository: r.Code, Reason: reason, Index: pause == 0 || reason != why, Starting: reason == loop.NotChecked})
		} else if reason := r.runs.PauseReason(); reason != "" {
			out = append(out, Pause{Repository: r.Code, Reason: reason, Upstream: true})
		}
	}
	return out
}

// ClockAlarm reports whether a document with a version ahead of the clock was found in the last minute.
func (c *Consumers) ClockAlarm() bool {
	return slices.ContainsFunc(c.repos, func(r *repository) bool { return r.outcomes.ClockAlarm() })
}
