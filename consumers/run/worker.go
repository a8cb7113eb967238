// Package run processes runs: it expands a repository into organizations and an organization into a chain of pages, writes the
// documents of each page, sweeps the index at the end, and stores the progress and the end of jobs.
//
// It imports internal/core, internal/bulk and the packages consumers/loop, fetch and outcome.
package run

import (
	"tutti/consumers/loop"
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
	r := &repository{
		Config: cfg, log: cfg.Logger, loop: l, progress: newProgress(cfg.Organizations, cfg.ProgressEvery),
		outage: newOutage(l, cfg.Logger, cfg.GiveUpAfter),
	}
	sweeper := &sweeper{repository: r}
	jobs := &jobEnd{repository: r, sweeper: sweeper}
	return &Worker{
		runs: &runs{repository: r, jobs: jobs},
		pages: &pages{
			repository: r, jobs: jobs,
			end: &organizationEnd{repository: r, sweeper: sweeper, jobs: jobs},
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
func (w *Worker) PauseReason() string { return w.runs.outage.reason() }

// InFlight counts the pages in flight.
func (w *Worker) InFlight() int {
	n := 0
	for range w.pages.inFlight.Range {
		n++
	}
	return n
}

// PendingProgress counts the organizations whose progress is held in memory.
func (w *Worker) PendingProgress() int {
	p := w.pages.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending)
}
