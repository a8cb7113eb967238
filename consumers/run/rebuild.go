package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/tidwall/gjson"

	"tutti/consumers/fetch"
	"tutti/internal/core"
)

// beginRebuild creates the index that a job fills, if it is a rebuild. It returns false when the job has failed instead.
func (w *runs) beginRebuild(ctx context.Context, job core.Job) (begun bool, err error) {
	if !job.Rebuild {
		return true, nil
	}
	err = w.Outcomes.PauseOnError(w.Rebuild.Begin(ctx, job.ID))
	if code := core.CodeOf(err); code == core.CodeConflict || code == core.CodeInvalid {
		w.log.Warn("the rebuild could not begin", "job_id", job.ID, "err", err)
		return false, w.jobs.fail(ctx, job.ID, err)
	}
	return err == nil, err
}

// checkRebuild returns a *pageError when the index that the page's job fills was deleted.
func (w *pageWork) checkRebuild(ctx context.Context) error {
	if !w.job.Rebuild {
		return nil
	}
	err := w.Rebuild.Check(ctx, w.job.ID)
	if core.CodeOf(err) == core.CodeConflict {
		return &pageError{cause: err}
	}
	return w.Outcomes.PauseOnError(err)
}

// endRebuild makes the filled index the repository's and ends the job, or deletes it when it is not whole: then the index before stays.
func (e *jobEnd) endRebuild(ctx context.Context, job core.Job, runs []core.OrganizationRun) error {
	state, fault := jobOutcome(runs)
	totals := sum(runs)
	lacking := fault
	if lacking == nil {
		lacking = &core.JobError{Code: core.JobErrorInterrupted, Message: "not all organizations were read"}
	}
	if allReadWhole(runs) {
		var err error
		if lacking, err = e.compare(ctx, job); err != nil {
			return e.Outcomes.PauseOnError(err)
		}
	}
	if lacking == nil {
		switch err := e.Rebuild.Finish(ctx, job.ID); {
		case core.CodeOf(err) == core.CodeConflict:
			lacking = &core.JobError{Code: string(core.CodeConflict), Message: core.MessageOf(err)}
		case err != nil:
			return e.Outcomes.PauseOnError(err)
		}
	}
	if lacking != nil {
		if err := e.Rebuild.Discard(ctx, job.ID); err != nil {
			return e.Outcomes.PauseOnError(err)
		}
		unchanged := &core.JobError{Code: lacking.Code, Message: "the index was not replaced: " + lacking.Message}
		return e.conclude(ctx, job, core.JobFailed, unchanged, totals)
	}
	if fault == nil && totals.Rejected > 0 {
		fault = rejectedError(e.Repository.Code, totals.Rejected)
	}
	return e.conclude(ctx, job, state, fault, totals)
}

// compare compares the filled index with the one that it replaces, and returns why it must not. A job that is forced, or whose alias has
// moved before a crash, is not compared.
func (e *jobEnd) compare(ctx context.Context, job core.Job) (*core.JobError, error) {
	next := e.indexOf(job)
	switch err := e.Rebuild.Check(ctx, job.ID); {
	case core.CodeOf(err) == core.CodeConflict:
		return &core.JobError{Code: string(core.CodeConflict), Message: core.MessageOf(err)}, nil
	case err != nil:
		return nil, err
	}
	switch err := e.Index.Refresh(ctx, next); {
	case errors.Is(err, core.ErrIndexMissing): // the alias has moved
		return nil, nil
	case err != nil || job.Force:
		return nil, err
	}
	scope := core.IndexScope{Repository: e.Repository.Code}
	before, err := e.Index.Count(ctx, e.Repository.IndexName, scope)
	if err != nil {
		return nil, err
	}
	after, err := e.Index.Count(ctx, next, scope)
	if err != nil {
		return nil, err
	}
	if missing := before - after; missing > 0 && guarded(int(missing), before) {
		return &core.JobError{Code: core.JobErrorPruneGuard, Message: fmt.Sprintf(
			"the new index has %d of %d documents. Run again with force to replace the index nevertheless", after, before)}, nil
	}
	return e.compareSample(ctx, job)
}

// sampleSize is how many documents of the index before are looked up in the filled one.
const sampleSize = 1000

// compareSample looks a random sample of documents up in the filled index. Of those that it lacks, the upstream must not have the record
// any more.
func (e *jobEnd) compareSample(ctx context.Context, job core.Job) (*core.JobError, error) {
	ids, err := e.sample(ctx, job)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, found, err := e.Index.Get(ctx, e.indexOf(job), id); err != nil || found {
			if err != nil {
				return nil, err
			}
			continue
		}
		stored, found, err := e.Index.Get(ctx, e.Repository.IndexName, id)
		if err != nil {
			return nil, err
		}
		if !found || e.Outcomes.HasDeadLetter(organizationOf(e.Repository, stored), id) {
			continue
		}
		if listed, err := e.isListed(ctx, stored); err != nil {
			return nil, err
		} else if listed {
			return &core.JobError{Code: core.JobErrorSweepIncomplete, Message: fmt.Sprintf("the new index lacks %s, which the repository has", id)}, nil
		}
	}
	return nil, nil
}

// sample returns the ids of documents of the index before that the run should have seen.
func (e *jobEnd) sample(ctx context.Context, job core.Job) ([]string, error) {
	var ids []string
	seen := 0
	err := e.Index.Scan(ctx, e.Repository.IndexName, core.IndexScope{Repository: e.Repository.Code}, job.StartVersion, func(id string, _ core.Version) error {
		if seen++; len(ids) < sampleSize {
			ids = append(ids, id)
		} else if at := rand.IntN(seen); at < sampleSize {
			ids[at] = id
		}
		return nil
	})
	return ids, err
}

func organizationOf(r core.Repository, stored core.StoredDocument) string {
	return gjson.GetBytes(stored.Source, r.Fields.Organization).String()
}

// isListed reports whether the upstream has the record of a document in the document's organization, and it is indexable.
func (e *jobEnd) isListed(ctx context.Context, stored core.StoredDocument) (bool, error) {
	id := stored.ID
	if e.Split != nil {
		id = gjson.GetBytes(stored.Source, e.Repository.Fields.ID).String()
	}
	req := core.Request{Organization: organizationOf(e.Repository, stored), RecordID: id}
	rec, _, err := e.Fetcher.Record(ctx, req, func() error { return nil })
	if err == nil {
		defer rec.Release()
	}
	if err != nil && !fetch.Retryable(err) {
		return false, nil
	}
	return rec.Indexable, err
}
