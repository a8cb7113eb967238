package sweep

import (
	"context"
	"slices"

	"github.com/cespare/xxhash/v2"

	"tutti/consumers/state"
	"tutti/internal/core"
)

// shownIDs are what the lists of a job showed, as sorted hashes of record ids: 8 bytes for each.
type shownIDs struct {
	listed  []uint64 // all ids, in a job that compares: it does not write every record that it has seen
	invalid []uint64 // those of records that are not to be indexed
}

func contains(sorted []uint64, id string) bool {
	if len(sorted) == 0 {
		return false
	}
	_, found := slices.BinarySearch(sorted, xxhash.Sum64String(id))
	return found
}

// shown reads what the lists of runs showed.
func (s *Sweeper) shown(ctx context.Context, job core.Job, runs []core.OrganizationRun) (all shownIDs, err error) {
	for _, run := range runs {
		listed, invalid := state.UnpackIDs(run.IDs), state.UnpackIDs(run.InvalidIDs)
		isRead := run.LastPage != nil && (run.Listed == nil || *run.Listed > 0)
		if isRead && len(listed) == 0 && state.Compares(job, s.cfg.Split != nil) {
			if listed, err = s.cfg.Notes.NotedIDs(ctx, job.ID, run.Organization, run.Rereads, *run.LastPage); err != nil {
				return all, err
			}
		}
		if isRead && len(invalid) == 0 && run.Invalid {
			if invalid, err = s.cfg.Notes.NotedInvalid(ctx, job.ID, run.Organization, run.Rereads, *run.LastPage); err != nil {
				return all, err
			}
		}
		all.listed, all.invalid = append(all.listed, listed...), append(all.invalid, invalid...)
	}
	slices.Sort(all.listed)
	slices.Sort(all.invalid)
	return all, nil
}
