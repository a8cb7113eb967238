package why

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tidwall/gjson"

	"tutti/internal/base/order"
	"tutti/internal/core"
	"tutti/internal/report/recordtrace"
)

const (
	// locatedAtOnce is how many repositories are searched at a time.
	locatedAtOnce = 8
	// maxLocated is how many documents of one record are read for their organizations.
	maxLocated = 10
)

// Locate returns the records with an id, or with a document of that id, by repository and organization: those in the index, those in the
// built-in repository, and those with a dead letter. It does not ask other repositories, which find records only by their organization.
// CodeInvalid for an invalid id. The caller must check which organizations may be shown.
func (t *Tracer) Locate(ctx context.Context, id string) (recordtrace.Locations, error) {
	if err := core.ValidID("id", id); err != nil {
		return recordtrace.Locations{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	var mu sync.Mutex
	var all recordtrace.Locations
	add := func(found []recordtrace.Location, repository string, err error) {
		mu.Lock()
		defer mu.Unlock()
		all.Found = append(all.Found, found...)
		if err != nil {
			all.Failed = append(all.Failed, repository)
		}
	}
	limit := make(chan struct{}, locatedAtOnce)
	var searches sync.WaitGroup
	for _, repo := range t.repositories {
		searches.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			found, err := t.locateIn(ctx, repo, id)
			add(found, repo.Code, err)
		})
	}
	searches.Wait()
	letters, err := t.cfg.DeadLetters.FindRecords(ctx, id)
	if err != nil {
		return recordtrace.Locations{}, err
	}
	for _, l := range letters {
		if _, configured := t.repositories[l.Repository]; configured {
			add([]recordtrace.Location{{Repository: l.Repository, Organization: l.Organization, ID: id}}, "", nil)
		}
	}
	order.Sort(all.Found, func(a, b recordtrace.Location) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.ID, b.ID))
	})
	all.Found = slices.Compact(all.Found)
	slices.Sort(all.Failed)
	return all, nil
}

// locateIn searches one repository.
func (t *Tracer) locateIn(ctx context.Context, repo Repository, id string) ([]recordtrace.Location, error) {
	found, err := t.locateDocuments(ctx, repo, id)
	if repo.Organization == nil {
		return found, err
	}
	organization, own := repo.Organization(ctx, id)
	switch {
	case own == nil:
		found = append(found, recordtrace.Location{Repository: repo.Code, Organization: organization, ID: id})
	case core.CodeOf(own) != core.CodeNotFound:
		err = errors.Join(err, own)
	}
	return found, err
}

// locateDocuments searches the documents of one repository.
func (t *Tracer) locateDocuments(ctx context.Context, repo Repository, id string) (found []recordtrace.Location, err error) {
	c := &collection{Tracer: t, repository: repo, trace: &recordtrace.Trace{ID: id}}
	if repo.Split != nil {
		if err = c.listStored(ctx); err != nil {
			return nil, err
		}
	}
	ids := append([]string{id}, c.storedIDs[:min(len(c.storedIDs), maxLocated)]...)
	err = c.documents().GetAll(ctx, repo.IndexName, ids, func(i int, stored core.StoredDocument, there bool) {
		organization := gjson.GetBytes(stored.Source, repo.Fields.Organization).String()
		if !there || organization == "" || !c.inRepository(stored.Source) {
			return
		}
		at := recordtrace.Location{Repository: repo.Code, Organization: organization, ID: ids[i]}
		if repo.Split != nil {
			at.ID = gjson.GetBytes(stored.Source, repo.Fields.ID).String()
		}
		if !slices.Contains(found, at) {
			found = append(found, at)
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}
