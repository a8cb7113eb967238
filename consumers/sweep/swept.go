package sweep

import (
	"context"
	"slices"
	"sync"

	"tutti/consumers/state"
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

// noted returns the ids of the documents that attempts at a step of the job's sweep were about to remove, by organization, "" for all.
func (r *remover) noted(ctx context.Context, job core.Job, organization string, step sweepStep) (map[string][]string, error) {
	return r.cfg.Notes.Swept(ctx, job.ID, organization, int(step))
}

// removedBefore counts those of the noted documents of an organization that are gone, without those that are about to be removed, which
// are counted with these. It adds those to them that are still there and not written since: they were not found because their Requests are
// still in the queue. It must be called after the index was searched for documents to remove.
func (r *remover) removedBefore(
	ctx context.Context, job core.Job, organization string, noted []string, documents *unseenDocuments,
) (before Result, err error) {
	if len(noted) == 0 {
		return before, nil
	}
	found := slices.Concat(documents.ids, documents.invalidIDs)
	slices.Sort(found)
	noted = slices.DeleteFunc(slices.Clone(noted), func(id string) bool {
		_, is := slices.BinarySearch(found, id)
		return is
	})
	var mu sync.Mutex
	err = r.requests.eachDocument(ctx, job, noted, func(id string, stored core.StoredDocument, found bool) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case found && stored.Version < job.StartVersion:
			documents.ids = append(documents.ids, id)
			return
		case found:
			return
		case r.cfg.Outcomes.HasDeadLetter(organization, id):
			before.Rejected++
		default:
			before.Removed++
		}
		if state.Compares(job, r.cfg.Split != nil) {
			before.Surplus++
		}
	})
	return before, err
}

// addNoted adds the organizations of which documents were noted, also where none is left.
func addNoted(byOrganization map[string]unseenDocuments, noted map[string][]string) {
	for organization := range noted {
		if _, is := byOrganization[organization]; !is {
			byOrganization[organization] = unseenDocuments{}
		}
	}
}
