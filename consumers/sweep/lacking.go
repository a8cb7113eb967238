package sweep

import (
	"context"
	"errors"
	"slices"

	"github.com/cespare/xxhash/v2"

	"tutti/internal/core"
)

// Rebuild requests the records of the documents that the filled index lacks: their upstream no longer has them, or its list
// moved while it was read. The Requests write to both indices. Then it compares a sample of the documents. The result's guard is why the
// index must not be replaced.
func (s *Sweeper) Rebuild(ctx context.Context, job core.Job, runs []core.OrganizationRun) (Result, error) {
	all, err := s.sweepExcluded(ctx, job)
	if err != nil {
		return all, err
	}
	shown, err := s.shown(ctx, job, runs)
	if err != nil {
		return all, err
	}
	lacking, total, sampled, err := s.lacking(ctx, job, shown.invalid)
	moved := errors.Is(err, core.ErrIndexMissing) // the alias, before a crash
	if err != nil && !moved {
		return all, err
	}
	noted, err := s.remover.noted(ctx, job, "", stepUnseen)
	if err != nil {
		return all, err
	}
	var guard *core.JobError
	if !moved && lacking.guard(job, total) {
		guard = lacking.rebuildGuardError(total)
	}
	if moved || guard != nil {
		before, err := s.remover.notRemoved(ctx, job, unseenDocuments{}, guard, noted)
		all.add(before)
		return all, err
	}
	byOrganization, err := s.groupByOrganization(ctx, job, lacking)
	if err != nil {
		return all, err
	}
	swept, err := s.remover.removeAll(ctx, job, stepUnseen, byOrganization, noted)
	all.add(swept)
	if err != nil {
		return all, err
	}
	if all.Guard == nil && !job.Force {
		compared, err := s.sampler.compareSample(ctx, job, sampled)
		if err != nil && !errors.Is(err, core.ErrIndexMissing) { // the alias has moved since
			return all, err
		}
		all.add(compared)
	}
	return all, nil
}

// lacking returns the documents that the filled index lacks, the number of all documents, and a sample of those of the filled index. The
// former are not only those from before the job: its first Request may have waited for long until writes went to both indices. The guard
// counts only those. It holds 8 bytes for each document of the filled index.
func (s *Sweeper) lacking(
	ctx context.Context, job core.Job, invalid []uint64,
) (lacking unseenDocuments, total int64, sampled sample, err error) {
	lacking.first = job.StartVersion
	scope := core.IndexScope{Repository: s.cfg.Repository.Code}
	var filled []uint64
	for _, alias := range []string{core.NextAlias(s.cfg.Repository.IndexName), s.cfg.Repository.IndexName} {
		if err := s.cfg.Index.Refresh(ctx, alias); err != nil {
			return lacking, 0, sampled, err
		}
	}
	err = s.cfg.Index.Scan(ctx, core.NextAlias(s.cfg.Repository.IndexName), scope, 0, func(id string, _ core.Version) error {
		filled = append(filled, xxhash.Sum64String(id))
		sampled.add(id)
		return nil
	})
	if err != nil {
		return lacking, 0, sampled, err
	}
	slices.Sort(filled)
	if total, err = s.cfg.Index.Count(ctx, s.cfg.Repository.IndexName, scope); err != nil {
		return lacking, 0, sampled, err
	}
	err = s.cfg.Index.Scan(ctx, s.cfg.Repository.IndexName, scope, 0, func(id string, v core.Version) error {
		if contains(filled, id) {
			return nil
		}
		record := id
		if s.cfg.Split != nil && len(invalid) > 0 {
			var err error
			if record, err = s.requests.recordOf(ctx, id); err != nil {
				return err
			}
		}
		lacking.add(id, v, contains(invalid, record))
		lacking.guard(job, total)
		return nil
	})
	return lacking, total, sampled, err
}
