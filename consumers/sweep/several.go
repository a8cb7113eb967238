package sweep

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// recordOf returns the id of a document's record if records have several documents, "" for a document that no longer exists.
func (q *requests) recordOf(ctx context.Context, id string) (string, error) {
	stored, _, err := q.cfg.Index.Get(ctx, q.cfg.Repository.IndexName, id)
	return gjson.GetBytes(stored.Source, q.cfg.Repository.Fields.ID).String(), err
}

// settleDocuments is settle for documents whose records have several: it requests their records, and counts the documents. A
// document that its record's Request did not change, because that was replaced by one of the sweep of a cancelled job, is
// requested once more.
func (q *requests) settleDocuments(
	ctx context.Context, job core.Job, organization string, ids []string,
) (settled core.Totals, open int, err error) {
	for round := 0; round < 2 && len(ids) > 0; round++ {
		records, err := q.recordsOf(ctx, job, ids)
		if err != nil {
			return settled, open, err
		}
		if err := q.publish(ctx, job, organization, records); err != nil {
			return settled, open, err
		}
		waiting, err := q.wait(ctx, job, organization, records)
		if err != nil {
			return settled, open, err
		}
		ended := ids
		open, ids = len(waiting), nil
		var mu sync.Mutex
		err = q.eachDocument(ctx, job, ended, func(id string, stored core.StoredDocument, found bool) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !found:
				settled.Removed++
			case stored.Version >= job.StartVersion:
				settled.Indexed++
			case q.cfg.Outcomes.HasDeadLetter(organization, id):
				settled.Rejected++
			default:
				ids = append(ids, id)
			}
		})
		if err != nil || open > 0 {
			return settled, open, err
		}
	}
	return settled, open, nil
}

// recordsOf returns the ids of the records of documents, each once.
func (q *requests) recordsOf(ctx context.Context, job core.Job, ids []string) ([]string, error) {
	records := make(map[string]struct{})
	var mu sync.Mutex
	err := q.eachDocument(ctx, job, ids, func(_ string, stored core.StoredDocument, found bool) {
		record := gjson.GetBytes(stored.Source, q.cfg.Repository.Fields.ID).String()
		if found && core.ValidKey("id", record) == nil {
			mu.Lock()
			defer mu.Unlock()
			records[record] = struct{}{}
		}
	})
	return slices.Collect(maps.Keys(records)), err
}

// settleRequested is settle for records with several documents that have been requested already.
func (q *requests) settleRequested(
	ctx context.Context, job core.Job, organization string, records []string,
) (settled core.Totals, open int, err error) {
	waiting, err := q.wait(ctx, job, organization, records)
	if err != nil {
		return settled, open, err
	}
	if _, err := q.refresh(ctx, job); err != nil {
		return settled, open, err
	}
	var mu sync.Mutex
	err = q.eachUntilJobEnds(ctx, job, records, func(ctx context.Context, record string) error {
		if _, waits := waiting[record]; waits {
			return nil
		}
		scope := core.IndexScope{Repository: q.cfg.Repository.Code, Field: q.cfg.Repository.Fields.ID, Organization: record}
		return q.cfg.Index.Scan(ctx, q.cfg.Repository.IndexName, scope, 0, func(_ string, v core.Version) error {
			mu.Lock()
			defer mu.Unlock()
			if v >= job.StartVersion {
				settled.Indexed++
			}
			return nil
		})
	})
	for _, record := range records {
		if q.cfg.Outcomes.HasDeadLetter(organization, record) {
			settled.Rejected++
		}
	}
	return settled, len(waiting), q.cfg.Outcomes.PauseOnError(err)
}

// sweepExcluded requests all documents of the excluded organizations, which a repository's job does not list, and waits until each of
// those Requests has its outcome. The guard does not count them: their removal was configured.
func (s *Sweeper) sweepExcluded(ctx context.Context, job core.Job) (Result, error) {
	var all Result
	if len(s.cfg.ExcludedOrganizations) == 0 || job.StartCheckpoint == core.CheckpointNone {
		return all, nil
	}
	if why, err := s.requests.refresh(ctx, job); why != nil || err != nil {
		return Result{Guard: why}, err
	}
	var mu sync.Mutex
	stored := make(map[string][]string)
	err := s.requests.eachUntilJobEnds(ctx, job, s.cfg.ExcludedOrganizations, func(ctx context.Context, organization string) error {
		var ids []string
		err := s.cfg.Index.Scan(ctx, s.cfg.Repository.IndexName, s.scopeOf(organization), 0, func(id string, _ core.Version) error {
			ids = append(ids, id)
			return nil
		})
		if len(ids) > 0 {
			mu.Lock()
			defer mu.Unlock()
			stored[organization] = ids
		}
		return s.cfg.Outcomes.PauseOnError(err)
	})
	if err != nil {
		return all, err
	}
	noted, err := s.remover.noted(ctx, job, "", stepExcluded)
	if err != nil {
		return all, err
	}
	byOrganization := make(map[string]unseenDocuments, len(stored))
	for organization, ids := range stored {
		byOrganization[organization] = unseenDocuments{ids: ids}
	}
	return s.remover.removeAll(ctx, job, stepExcluded, byOrganization, noted)
}

// sweepParts requests all documents of records that are part of others, which an older version has indexed, and waits until each of those
// Requests has its outcome. No guard applies: the upstream says of each that it has no document of its own.
func (s *Sweeper) sweepParts(ctx context.Context, job core.Job) (Result, error) {
	var all Result
	entities := s.cfg.Fetcher.OtherEntities(ctx)
	if len(entities) == 0 || job.StartCheckpoint == core.CheckpointNone {
		return all, nil
	}
	if why, err := s.requests.refresh(ctx, job); why != nil || err != nil {
		return Result{Guard: why}, err
	}
	var stored unseenDocuments // which no guard counts
	for _, entity := range entities {
		scope := core.IndexScope{Repository: s.cfg.Repository.Code, Field: s.cfg.Repository.Fields.Entity, Organization: entity}
		err := s.cfg.Index.Scan(ctx, s.cfg.Repository.IndexName, scope, 0, func(id string, _ core.Version) error {
			stored.ids = append(stored.ids, id)
			return nil
		})
		if err != nil {
			return all, s.cfg.Outcomes.PauseOnError(err)
		}
	}
	byOrganization, err := s.groupByOrganization(ctx, job, stored)
	if err != nil {
		return all, err
	}
	noted, err := s.remover.noted(ctx, job, "", stepParts)
	if err != nil {
		return all, err
	}
	return s.remover.removeAll(ctx, job, stepParts, byOrganization, noted)
}
