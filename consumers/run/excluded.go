package run

import (
	"context"
	"sync"

	"tutti/internal/core"
)

// sweepExcluded requests all documents of the excluded organizations, which a repository's job does not list, and waits until each of
// those Requests has its outcome. The guard does not count them: their removal was configured.
func (s *sweeper) sweepExcluded(ctx context.Context, job core.Job) (sweepResult, error) {
	var all sweepResult
	if len(s.ExcludedOrganizations) == 0 || job.StartCheckpoint == core.CheckpointNone {
		return all, nil
	}
	if why, err := s.refresh(ctx, job); why != nil || err != nil {
		return sweepResult{guard: why}, err
	}
	var mu sync.Mutex
	stored := make(map[string][]string)
	err := s.eachUntilJobEnds(ctx, job, s.ExcludedOrganizations, func(ctx context.Context, organization string) error {
		var ids []string
		err := s.Index.Scan(ctx, s.Repository.IndexName, s.scopeOf(organization), 0, func(id string, _ core.Version) error {
			ids = append(ids, id)
			return nil
		})
		if len(ids) > 0 {
			mu.Lock()
			defer mu.Unlock()
			stored[organization] = ids
		}
		return s.Outcomes.PauseOnError(err)
	})
	if err != nil {
		return all, err
	}
	for organization, ids := range stored {
		swept, err := s.requestAgain(ctx, job, organization, ids)
		if err != nil {
			return all, err
		}
		all.add(swept)
	}
	return all, nil
}
