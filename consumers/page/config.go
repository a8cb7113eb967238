package page

import (
	"context"
	"log/slog"
	"time"

	"tutti/consumers/counts"
	"tutti/consumers/fetch"
	"tutti/consumers/ids"
	"tutti/consumers/loop"
	"tutti/consumers/outage"
	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
	"tutti/internal/index/pace"
)

// Notes stores what pages showed, as hashes of ids, and the ids of the records that they requested one by one. reading counts how often
// the list was restarted.
type Notes interface {
	NotePage(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) error
	// NoteInvalid replaces what is stored of the records that a page showed as not to be indexed.
	NoteInvalid(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) error
	// IDsOnEarlierPages returns those of ids that a page below the given one holds.
	IDsOnEarlierPages(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) (map[uint64]struct{}, error)
	// NoteRequestedIDs stores the ids of records that a page requested one by one, under its epoch.
	NoteRequestedIDs(ctx context.Context, jobID, organization string, page, epoch int, ids []string) error
	state.Pages
}

// Index reads documents.
type Index interface {
	GetAll(ctx context.Context, alias string, ids []string, each func(i int, doc core.StoredDocument, found bool)) error
}

// Rebuild is the index that a job fills.
type Rebuild interface {
	// Check returns CodeConflict when that index was deleted or takes no writes.
	Check(ctx context.Context, jobID string) error
}

// Config holds the settings and dependencies of a Worker; all but one of Document and Split are required.
type Config struct {
	Repository core.Repository
	Logger     *slog.Logger
	// Document appends the document made of a record to dst.
	Document func(dst []byte, rec core.Record) []byte
	// Split calls each with the documents of a record instead, if it is set.
	Split func(rec core.Record, each func(id string, document []byte) error) error
	// Same reports whether a stored document, as Index.GetAll returns it, is the document of a record.
	Same func(stored, document []byte) bool
	// Sizes are the numbers of rows that a page may have, Attempts how often it is requested, and Concurrency the number of pages that are
	// read at once.
	Sizes                 fetch.Sizes
	Attempts, Concurrency int
	// ProgressEvery is the shortest interval between two writes of a group.
	ProgressEvery time.Duration

	Loop          *loop.Loop
	Jobs          *state.Jobs
	Progress      *state.Progress
	Outage        *outage.Outage
	Calls         *outage.Calls
	Fetcher       *fetch.Fetcher
	Outcomes      *outcome.Outcomes
	Writer        *bulk.Writer
	Pace          *pace.Pace // nil for no limit
	Kinds         *counts.Kinds
	IDs           *ids.Worker
	Organizations state.OrganizationRuns
	Groups        state.GroupRuns
	Notes         Notes
	Requests      core.Publisher
	Index         Index
	Rebuild       Rebuild

	// EndList ends an organization whose pages have all ended, and its job if that was the last one.
	EndList func(ctx context.Context, job core.Job, run core.OrganizationRun) error
	// EndJob ends a job if its organizations have all ended.
	EndJob func(ctx context.Context, jobID string) error
}
