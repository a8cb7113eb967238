package run

import (
	"log/slog"
	"time"

	"tutti/consumers/counts"
	"tutti/consumers/fetch"
	"tutti/consumers/ids"
	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
	"tutti/internal/index/pace"
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
	Pace          *pace.Pace // nil for no limit
	Requests      Requests
	Jobs          core.Jobs
	Organizations state.OrganizationRuns
	Groups        state.OrganizationGroups
	Pages         Pages
	IDs           ids.Pages
	Records       ids.Records
	Cells         core.Cells
	Index         Index
	// Same reports whether a stored document, as Index.GetAll returns it, is the document of a record.
	Same    func(stored, document []byte) bool
	Rebuild Rebuild
	// NewKindCounter returns a counter of the JSON kinds of documents; nil if they are not counted.
	NewKindCounter func() counts.Counter
	// KindsCell names the cell that has what the last run of the whole repository counted.
	KindsCell string
	// Letters are the dead letters; required with NewKindCounter.
	Letters counts.Letters
	// FillCell names the cell that becomes FillDone before the end of a job that has filled the index.
	FillCell string
}

// FillDone is the value of Config.FillCell once the index was filled.
const FillDone = "done"
