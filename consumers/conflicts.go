package consumers

import (
	"context"
	"time"

	"tutti/internal/core"
)

// Bounds of the checks of dead letters of conflicts.
const (
	conflictsEvery = 10 * time.Minute
	conflictsPage  = 100
)

// checkConflicts removes the dead letters of conflicts that have ended, at the start and every 10 minutes until the process stops: one
// stays behind when a process ends between storing it and reading the document again, and no request of the record is left.
func (r *repository) checkConflicts() {
	ctx := r.loop.Draining()
	for r.loop.AwaitIndex() == nil {
		if err := r.checkConflictsOnce(ctx); err != nil && ctx.Err() == nil {
			r.log.Info("checking the dead letters of conflicts; the next check retries", "err", err)
		}
		if r.loop.Sleep(conflictsEvery) != nil {
			return
		}
	}
}

func (r *repository) checkConflictsOnce(ctx context.Context) error {
	for cursor := ""; ; {
		letters, next, err := r.Letters.List(ctx, core.DeadLetterFilter{Repository: r.Code, Reason: core.ReasonConflict, Limit: conflictsPage, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, letter := range letters {
			if err := r.outcomes.CheckConflict(ctx, letter); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}
