// Package run processes runs: it expands a repository into organizations and an organization into a chain of pages, writes the
// documents of each page, sweeps the index at the end, and stores the progress and the end of jobs.
//
// It imports internal/core, internal/index/bulk and the packages consumers/loop, fetch, outage, outcome and state.
package run

import (
	"tutti/consumers/loop"
	"tutti/consumers/outage"
	"tutti/consumers/state"
	"tutti/consumers/sweep"
	"tutti/internal/core"
)

// Worker processes the runs and pages of one repository.
type Worker struct {
	runs  *runs
	pages *pages
}

// New returns a Worker for the messages that l pulls.
func New(l *loop.Loop, cfg Config) *Worker {
	cfg.PageSize = max(2, cfg.PageSize) // pages overlap by one row
	jobs := state.New(state.Config{IndexName: cfg.Repository.IndexName, Loop: l, Store: cfg.Jobs, Groups: cfg.Groups, Cells: cfg.Cells})
	down := outage.New(l, cfg.Logger, cfg.GiveUpAfter)
	r := &repository{
		Config: cfg, log: cfg.Logger, loop: l, jobs: jobs, progress: state.NewProgress(cfg.Organizations, cfg.ProgressEvery), outage: down,
		calls: outage.NewCalls(down, outage.Config{
			Loop: l, Jobs: jobs, Fetcher: cfg.Fetcher, Attempts: cfg.PageAttempts, GiveUpAfter: cfg.GiveUpAfter,
		}),
	}
	sweeper := sweep.New(sweep.Config{
		Repository: cfg.Repository, Logger: cfg.Logger, Loop: l, Jobs: jobs, Calls: r.calls, Fetcher: cfg.Fetcher, Outcomes: cfg.Outcomes, Writer: cfg.Writer,
		Organizations: cfg.Organizations, Requests: cfg.Requests, Notes: cfg.Pages, Index: cfg.Index, Document: cfg.Document, Split: cfg.Split,
		ExcludedOrganizations: cfg.ExcludedOrganizations, ClockSkew: cfg.ClockSkew, Timeout: cfg.SweepTimeout, Attempts: cfg.PageAttempts,
	})
	ender := &jobEnd{repository: r, sweeper: sweeper}
	return &Worker{
		runs: &runs{repository: r, ender: ender},
		pages: &pages{
			repository: r, ender: ender,
			end: &organizationEnd{repository: r, sweeper: sweeper, ender: ender},
		},
	}
}

// PullRuns pulls runs from src until the process stops.
func (w *Worker) PullRuns(src loop.Source) {
	w.runs.loop.Pull(core.ClassRuns, src, runsInFlight, w.runs.handle)
}

// PullPages pulls pages from src until the process stops.
func (w *Worker) PullPages(src loop.Source) {
	w.pages.loop.PullQuarantined(core.ClassPages, src, pagesPerCall*w.pages.Concurrency, w.pages.handle)
}

// PauseReason returns why runs wait for the repository, safe to display, "" when none does.
func (w *Worker) PauseReason() string { return w.runs.outage.Reason() }

// InFlight counts the pages in flight.
func (w *Worker) InFlight() int {
	n := 0
	for range w.pages.inFlight.Range {
		n++
	}
	return n
}

// PendingProgress counts the organizations whose progress is held in memory.
func (w *Worker) PendingProgress() int { return w.pages.progress.Pending() }
