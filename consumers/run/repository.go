package run

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/consumers/outage"
	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// Config holds the settings and dependencies of a Worker; all but one of Document and Split are required.
type Config struct {
	Repository core.Repository
	Logger     *slog.Logger
	// Document appends the document made of a record to dst.
	Document func(dst []byte, rec core.Record) []byte
	// Split calls each with the documents of a record instead, if it is set.
	Split func(rec core.Record, each func(id string, document []byte) error) error
	// ExcludedOrganizations are those whose records are all excluded; the Fetcher does not list them.
	ExcludedOrganizations []string
	// NonOverlapping is true when the upstream pages by page number, so that pages cannot overlap.
	NonOverlapping bool
	// PageSize is the number of rows of a page, PageAttempts how often a page or a list of organizations is requested, and
	// Concurrency the number of pages that are read at once.
	PageSize, PageAttempts, Concurrency int
	// GiveUpAfter is how long a run waits for a repository that does not answer before it fails.
	GiveUpAfter time.Duration
	// ProgressEvery is the shortest interval between two writes of an organization's progress.
	ProgressEvery time.Duration
	// GroupedFrom is the number of organizations from which a repository's run has groups.
	GroupedFrom int
	// SweepTimeout is how long a sweep waits for the next of its records to end.
	SweepTimeout time.Duration
	// ClockSkew is how far a stored version may lie ahead of now without being a version from the future.
	ClockSkew time.Duration

	Fetcher       *fetch.Fetcher
	Outcomes      *outcome.Outcomes
	Writer        *bulk.Writer
	Requests      Requests
	Jobs          state.Store
	Organizations state.OrganizationRuns
	Groups        state.OrganizationGroups
	Pages         Pages
	IDs           IDPages
	Records       Records
	Cells         loop.Cells
	Index         Index
	// Same reports whether a stored document, as Index.GetAll returns it, is the document of a record.
	Same    func(stored, document []byte) bool
	Rebuild Rebuild
	// NewKindCounter returns a counter of the JSON kinds of documents; nil if they are not counted.
	NewKindCounter func() KindCounter
	// KindsCell names the cell that has what the last run of the whole repository counted.
	KindsCell string
	// Letters are the dead letters; required with NewKindCounter.
	Letters Letters
	// FillCell names the cell that becomes FillDone before the end of a job that has filled the index.
	FillCell string
}

// FillDone is the value of Config.FillCell once the index was filled.
const FillDone = "done"

// repository is what the workers of one repository's runs share.
type repository struct {
	Config
	log      *slog.Logger
	loop     *loop.Loop
	jobs     *state.Jobs
	progress *state.Progress
	outage   *outage.Outage
	calls    *outage.Calls
	counters sync.Pool // of KindCounter
}

// indexOf returns the alias that the pages of job write to.
func (r *repository) indexOf(job core.Job) string {
	if job.Rebuild {
		return core.NextAlias(r.Repository.IndexName)
	}
	return r.Repository.IndexName
}

// compares reports whether the pages of job write only what differs. Documents of files have no list that they can be compared with.
func (r *repository) compares(job core.Job) bool { return job.Difference && r.Split == nil }

// versionOf returns the version with which a page of job writes: that of the run's beginning. So a removal that was requested since then
// wins over all pages, and a document that another Request has written since then, which is not older than the run, stays.
func versionOf(job core.Job, m core.Message) core.Version {
	return min(cmp.Or(job.StartVersion, m.Version()), m.Version())
}

// forgetPages removes the stored ids of the pages of an organization's list, once it has ended. What cannot be removed now is
// removed with the job.
func (r *repository) forgetPages(ctx context.Context, job core.Job, run core.OrganizationRun) {
	if job.Scope == core.ScopeRepository && (r.compares(job) || run.Invalid) { // the sweep at the job's end reads them
		return
	}
	state.ForgetPages(ctx, r.Pages, r.log, job.ID, run.Organization)
}
