package run

import (
	"context"
	"sync"

	"tutti/internal/core"
)

// sweepStep is a part of a sweep. What it removes is noted before: a sweep that is interrupted, by an error or by the end of the process,
// begins anew, and no longer finds in the index what it has removed.
type sweepStep int

// The numbers are stored.
const (
	stepUnseen sweepStep = iota
	stepExcluded
	stepParts
)

// removedBefore returns what an attempt at a step of the job's sweep that was interrupted has removed, by organization, "" for all: the
// documents that it had noted and that are gone, and those with a dead letter. Totals of organizations that are swept have it already.
func (s *sweeper) removedBefore(ctx context.Context, job core.Job, organization string, step sweepStep) (map[string]sweepResult, error) {
	noted, err := s.Pages.Swept(ctx, job.ID, organization, int(step))
	if err != nil || len(noted) == 0 {
		return nil, err
	}
	before := make(map[string]sweepResult, len(noted))
	for of, ids := range noted {
		var mu sync.Mutex
		var swept sweepResult
		err := s.eachDocument(ctx, job, ids, func(id string, _ core.StoredDocument, found bool) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case found: // it is written since, or still to be removed
				return
			case s.Outcomes.HasDeadLetter(of, id):
				swept.rejected++
			default:
				swept.removed++
			}
			if s.compares(job) {
				swept.surplus++
			}
		})
		if err != nil {
			return nil, err
		}
		before[of] = swept
	}
	return before, nil
}

// sumOf returns the results of organizations together.
func sumOf(results map[string]sweepResult) (all sweepResult) {
	for _, one := range results {
		all.add(one)
	}
	return all
}
