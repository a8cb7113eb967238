package run

import (
	"tutti/consumers/counts"
	"tutti/consumers/fetch"
	"tutti/consumers/ids"
	"tutti/consumers/loop"
	"tutti/consumers/outage"
	"tutti/consumers/page"
	"tutti/consumers/state"
	"tutti/consumers/sweep"
	"tutti/internal/core"
)

// Worker processes the runs and pages of one repository.
type Worker struct {
	loop     *loop.Loop
	outage   *outage.Outage
	progress *state.Progress
	starter  *starter
	pages    *page.Worker
}

// New returns a Worker for the messages that l pulls.
func New(l *loop.Loop, cfg Config) *Worker {
	cfg.PageSize = max(2, cfg.PageSize) // pages overlap by one row
	sizes := fetch.Sizes{Largest: cfg.PageSize, NonOverlapping: cfg.NonOverlapping}
	jobs := state.New(state.Config{IndexName: cfg.Repository.IndexName, Loop: l, Store: cfg.Jobs, Groups: cfg.Groups, Cells: cfg.Cells})
	progress := state.NewProgress(cfg.Organizations, cfg.ProgressEvery)
	drift := state.DriftNotes{Repository: cfg.Repository.Code, Logger: cfg.Logger, Cells: cfg.Cells}
	down := outage.New(l, jobs, cfg.Logger, cfg.GiveUpAfter)
	calls := outage.NewCalls(down, outage.Config{
		Loop: l, Jobs: jobs, Fetcher: cfg.Fetcher, Attempts: cfg.PageAttempts, GiveUpAfter: cfg.GiveUpAfter,
	})
	kinds := counts.New(counts.Config{
		Repository: cfg.Repository, Logger: cfg.Logger, Document: cfg.Document, Split: cfg.Split, NewCounter: cfg.NewKindCounter, Cell: cfg.KindsCell,
		Cells: cfg.Cells, Sizes: sizes, Concurrency: cfg.Concurrency, Fetcher: cfg.Fetcher, Calls: calls, Jobs: jobs, Drift: drift,
		Organizations: cfg.Organizations, Groups: cfg.Groups, Requests: cfg.Requests, Letters: cfg.Letters, Index: cfg.Index,
	})
	sweeper := sweep.New(sweep.Config{
		Repository: cfg.Repository, Logger: cfg.Logger, Loop: l, Jobs: jobs, Calls: calls, Fetcher: cfg.Fetcher, Outcomes: cfg.Outcomes, Writer: cfg.Writer,
		Organizations: cfg.Organizations, Requests: cfg.Requests, Notes: cfg.Pages, Index: cfg.Index, Document: cfg.Document, Split: cfg.Split,
		ExcludedOrganizations: cfg.ExcludedOrganizations, ClockSkew: cfg.ClockSkew, Timeout: cfg.SweepTimeout, Attempts: cfg.PageAttempts,
	})
	ender := &jobEnd{cfg: &cfg, loop: l, jobs: jobs, kinds: kinds, drift: drift, sweeper: sweeper}
	lists := ids.New(ids.Config{
		Repository: cfg.Repository.Code, Logger: cfg.Logger, Loop: l, Jobs: jobs, Progress: progress, Calls: calls, Outcomes: cfg.Outcomes,
		Organizations: cfg.Organizations, Pages: cfg.IDs, Records: cfg.Records, Requests: cfg.Requests, Attempts: cfg.PageAttempts, EndJob: ender.endIfComplete,
	})
	end := &organizationEnd{cfg: &cfg, sweeper: sweeper, ender: ender}
	end.pages = page.New(page.Config{
		Repository: cfg.Repository, Logger: cfg.Logger, Document: cfg.Document, Split: cfg.Split, Same: cfg.Same, Sizes: sizes, Attempts: cfg.PageAttempts,
		Concurrency: cfg.Concurrency, ProgressEvery: cfg.ProgressEvery, Loop: l, Jobs: jobs, Progress: progress, Outage: down, Calls: calls,
		Fetcher: cfg.Fetcher, Outcomes: cfg.Outcomes, Writer: cfg.Writer, Pace: cfg.Pace, Kinds: kinds, IDs: lists, Organizations: cfg.Organizations, Groups: cfg.Groups,
		Notes: cfg.Pages, Requests: cfg.Requests, Index: cfg.Index, Rebuild: cfg.Rebuild, EndList: end.finish, EndJob: ender.endIfComplete,
	})
	return &Worker{
		loop: l, outage: down, progress: progress, pages: end.pages,
		starter: &starter{cfg: &cfg, loop: l, jobs: jobs, calls: calls, kinds: kinds, pages: end.pages, ids: lists, ender: ender},
	}
}

// PullRuns pulls runs from src until the process stops.
func (w *Worker) PullRuns(src loop.Source) {
	w.loop.Pull(core.ClassRuns, src, runsInFlight, w.starter.handle)
}

// PullPages pulls pages from src until the process stops.
func (w *Worker) PullPages(src loop.Source) { w.pages.Pull(src) }

// PauseReason returns why runs wait for the repository, safe to display, "" when none does.
func (w *Worker) PauseReason() string { return w.outage.Reason() }

// InFlight counts the pages in flight.
func (w *Worker) InFlight() int { return w.pages.InFlight() }

// PendingProgress counts the organizations whose progress is held in memory.
func (w *Worker) PendingProgress() int { return w.progress.Pending() }
