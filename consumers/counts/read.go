package counts

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"tutti/consumers/fetch"
	"tutti/internal/core"
)

// OfRebuild returns the kinds of the records of a job that rebuilds the index: those that the last run counted with what has changed since
// or, if these decide nothing for certain, those of a reading without writes.
func (k *Kinds) OfRebuild(ctx context.Context, job core.Job, uncertain Uncertain) (core.Kinds, error) {
	if k.cfg.NewCounter == nil {
		return core.OverflownKinds(), nil
	}
	if _, err := k.cfg.Calls.Answered(ctx, job, func() error { return k.cfg.Fetcher.ReadTypes(ctx, job) }); err != nil {
		return nil, ReadError{err}
	}
	kinds, why, err := k.keptKinds(ctx, job, uncertain)
	if err != nil || why == "" {
		return kinds, err
	}
	k.cfg.Logger.InfoContext(ctx, "the rebuild reads all records once before it begins, to decide the types of fields", "job_id", job.ID, "reason", why)
	if err := k.note(ctx, job, "all records are read once more before the index is filled, to decide the types of fields: "+why); err != nil {
		return nil, err
	}
	if kinds, err = k.readKinds(ctx, job); err != nil {
		return nil, ReadError{err}
	}
	note := "all records were read once more before the index was filled, to decide the types of fields: " + why
	if !kinds.Whole() {
		note += fmt.Sprintf("; they have too many different fields (over %d bytes of paths), so that first values decide", maxReadKinds)
		k.cfg.Logger.WarnContext(ctx, "the records have too many different fields: first values decide their types", "job_id", job.ID, "max_bytes", maxReadKinds)
	}
	return kinds, k.note(ctx, job, note)
}

// ReadError is an error of reading the records before a rebuild.
type ReadError struct{ Cause error }

// Error implements error.
func (e ReadError) Error() string { return e.Cause.Error() }

// Unwrap implements errors.
func (e ReadError) Unwrap() error { return e.Cause }

// note sets the note of a job.
func (k *Kinds) note(ctx context.Context, job core.Job, text string) error {
	_, err := k.cfg.Jobs.Update(ctx, job.ID, func(j *core.Job) error {
		if !j.State.Final() {
			j.Note = text
		}
		return nil
	})
	return err
}

// maxReadKinds bounds the kinds that a rebuild counts before it begins, in bytes.
const maxReadKinds = 4 << 20

// readKinds reads all records of the repository, and counts their kinds. It reads every list from its start to its end, and does not follow
// rows that move during that time: the pages of the rebuild do.
func (k *Kinds) readKinds(ctx context.Context, job core.Job) (core.Kinds, error) {
	organizations, _, err := k.cfg.Calls.Organizations(ctx, job)
	if err != nil {
		return nil, err
	}
	job.Kinds = true
	var mu sync.Mutex
	var all core.Kinds
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(k.cfg.Concurrency)
	for _, organization := range k.cfg.Fetcher.ValidOrganizations(organizations) {
		calls.Go(func() error {
			return k.readOrganizationKinds(ctx, job, organization, func(kinds core.Kinds) {
				mu.Lock()
				defer mu.Unlock()
				all = all.Add(kinds, maxReadKinds)
			})
		})
	}
	err = calls.Wait()
	return all, err
}

// readOrganizationKinds calls add with the kinds of each page of an organization's list.
func (k *Kinds) readOrganizationKinds(ctx context.Context, job core.Job, organization string, add func(core.Kinds)) error {
	counter := k.Counter(job)
	defer k.Release(counter)
	offset, limit, small := 0, k.cfg.Sizes.Largest, 0
	var info core.PageInfo
	records := int64(0)
	read := func() error {
		counter.Take(0) // of a page that was not answered
		records = 0
		var err error
		info, err = k.cfg.Fetcher.Page(ctx, fetch.PageCall{Job: job, Organization: organization, Offset: offset, Limit: limit}, func(rec core.Record) (bool, error) {
			records++
			k.Count(counter, rec, organization)
			return false, nil
		})
		return err
	}
	for {
		failures := 0
		_, err := k.cfg.Calls.Answered(ctx, job, func() error {
			for {
				err := read()
				smaller := k.cfg.Sizes.Smaller(offset, limit)
				if fetch.Unanswered(err) {
					failures++
				}
				if err == nil || smaller == limit || failures == 1 || !k.cfg.Fetcher.AsksTooMuch(ctx, err) {
					return err
				}
				limit, small = smaller, fetch.GrowAfter
			}
		})
		if errors.Is(err, core.ErrOrganizationAbsent) {
			return nil
		}
		if err != nil {
			return err
		}
		add(counter.Take(records))
		if offset += info.Rows; info.Rows == 0 || offset >= info.Total {
			return nil
		}
		if small--; small < 0 {
			limit = k.cfg.Sizes.Larger(offset, limit)
		}
	}
}
