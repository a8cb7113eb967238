package app

import (
	"context"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/queue"
)

// checkIndexed checks which repositories were never indexed: their index holds no document of them, and no job wrote to it.
// The built-in one is run, the others are reasons of Health. One that was indexed is not checked again: an index
// that is replaced later is run again by the consumers.
func (a *App) checkIndexed(ctx context.Context) error {
	var never []string
	for _, rc := range a.cfg.Repositories {
		if _, done := a.indexed[rc.Code]; done {
			continue
		}
		n, err := a.index.Count(ctx, rc.IndexName, core.IndexScope{Repository: rc.Code})
		if err != nil {
			continue // it has no index yet, or one that does not answer, which is a reason of its own
		}
		var state core.JobState
		if n == 0 {
			if state, err = a.lastFill(ctx, rc); err != nil {
				return err
			}
		}
		switch {
		case n > 0 || state == core.JobSucceeded || state == core.JobPartial:
			a.indexed[rc.Code] = struct{}{}
		case state != "": // it waits or runs
		case rc.Type == core.TypeLocal:
			job, err := a.ingest.Run(ctx, core.ScopeRepository, rc.Code, "", false, core.CauseReconcile, "")
			if err != nil {
				return err
			}
			a.log.Info("the index of the built-in repository is empty; it is run", "repository", rc.Code, "job_id", job.ID)
			a.indexed[rc.Code] = struct{}{}
		default:
			never = append(never, "repository "+rc.Code+": never indexed; run tutti index "+rc.Code)
		}
	}
	a.neverIndexed.Store(&never)
	return nil
}

// lastFill returns the state of the newest job that wrote, writes or will write to a repository's index, "" for none.
func (a *App) lastFill(ctx context.Context, rc config.Repository) (core.JobState, error) {
	for cursor := ""; ; {
		page, next, err := a.queue.Jobs().List(ctx, queue.JobFilter{Repository: rc.Code, Limit: jobsKept, Cursor: cursor})
		if err != nil {
			return "", err
		}
		for _, j := range page {
			if j.IndexName == rc.IndexName && j.State != core.JobFailed && j.State != core.JobCancelled {
				return j.State, nil
			}
		}
		if cursor = next; cursor == "" {
			return "", nil
		}
	}
}

// startIndexed notes the built-in repository as indexed where it has no study yet: the outbox publishes what will be in it.
func (a *App) startIndexed(ctx context.Context) error {
	studies, err := a.metadata.Studies(ctx)
	if err != nil {
		return err
	}
	a.indexed = make(map[string]struct{})
	for _, rc := range a.cfg.Repositories {
		if rc.Type == core.TypeLocal && len(studies) == 0 {
			a.indexed[rc.Code] = struct{}{}
		}
	}
	return nil
}
