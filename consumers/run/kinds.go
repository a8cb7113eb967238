package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"tutti/consumers/fetch"
	"tutti/consumers/state"
	"tutti/consumers/sweep"
	"tutti/internal/core"
)

// counter returns a KindCounter for a page of a job, nil if its kinds are not counted. The caller must pass it to release.
func (r *repository) counter(job core.Job) KindCounter {
	if !job.Kinds || r.NewKindCounter == nil {
		return nil
	}
	if c, is := r.counters.Get().(KindCounter); is {
		return c
	}
	return r.NewKindCounter()
}

// release makes a KindCounter available for another page.
func (r *repository) release(c KindCounter) {
	if c != nil {
		c.Take(0) // of a page that was not read to its end
		r.counters.Put(c)
	}
}

// skipSettled reports whether an earlier pass, which was not whole, has settled a row, and counts its record.
func (w *pageWork) skipSettled(pass *pagePass, rec core.Record, known bool) bool {
	_, done := w.settled[rec.ID]
	if done && pass.counter != nil && !known {
		w.countRecord(pass.counter, rec, w.req.Organization)
	}
	return done
}

// beginCount decides whether a record counts: not if the page before has read it, or its documents are removed.
func (p *pagePass) beginCount(rec core.Record, known bool) {
	p.counts = p.counter != nil && rec.Excluded == nil && !known
}

// keepKinds keeps the kinds of the records of a repository's job for the next rebuild, if it has read all, and removes those of its
// organizations. If that fails, the next rebuild reads the records once more.
func (e *jobEnd) keepKinds(ctx context.Context, job core.Job, runs []core.OrganizationRun) {
	if !job.Kinds {
		return
	}
	if err := e.storeKinds(ctx, job, runs); err != nil {
		e.log.WarnContext(ctx, "the JSON kinds of the records are not kept; a rebuild will read the records once more", "job_id", job.ID, "err", err)
	}
}

func (e *jobEnd) storeKinds(ctx context.Context, job core.Job, runs []core.OrganizationRun) error {
	value, revision, err := e.Cells.Cell(ctx, e.KindsCell)
	if err != nil {
		return err
	}
	if parseKindCounts(value).jobID != job.ID && state.AllRead(runs) {
		kinds, err := e.sumKinds(ctx, job, runs)
		if err != nil {
			return err
		}
		e.noteFields(ctx, job, parseKindCounts(value).kinds, kinds)
		counts := kindCounts{jobID: job.ID, version: job.StartVersion, kinds: kinds}
		if err := e.Cells.SetCell(ctx, e.KindsCell, counts.String(), revision); err != nil {
			return err
		}
		if !kinds.Whole() {
			e.log.WarnContext(ctx, "the records have too many different fields: their JSON kinds are not kept, and a rebuild will read them once more",
				"job_id", job.ID, "max_bytes", core.MaxKindsBytes)
		}
	}
	for _, run := range runs {
		if len(run.Kinds) == 0 && len(run.AheadKinds) == 0 {
			continue
		}
		if _, err := e.Organizations.UpdateOrganization(ctx, job.ID, run.Organization, func(run *core.OrganizationRun) error {
			run.Kinds, run.AheadKinds = nil, nil
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// sumKinds returns the kinds of all records of a job. They are overflown if not every record was counted: a process of an earlier release may
// have read some.
func (e *jobEnd) sumKinds(ctx context.Context, job core.Job, runs []core.OrganizationRun) (core.Kinds, error) {
	var all core.Kinds
	err := e.Groups.EachSum(ctx, job.ID, 0, func(c core.SumChange) error {
		all = all.Add(c.Kinds, core.MaxKindsBytes)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if fetched := state.Sum(runs).Fetched; all.Whole() && all.Records() != fetched {
		e.log.InfoContext(ctx, "the JSON kinds of some records were not counted", "job_id", job.ID, "records", fetched, "counted", all.Records())
		return core.OverflownKinds(), nil
	}
	return all, nil
}

// maxChangedFields is how many fields a sentence about changed fields names of each kind.
const maxChangedFields = 5

// changedFields returns which fields no record has any more since the kinds before were counted, and which are new, as part of a sentence;
// "" if none is gone.
func changedFields(before, now core.Kinds) string {
	if !before.Whole() || !now.Whole() || before.Records() == 0 || now.Records() == 0 {
		return ""
	}
	gone, added := onlyIn(before, now), onlyIn(now, before)
	switch {
	case len(gone) == 0:
		return ""
	case len(added) == 0:
		return "no record has " + listFields(gone) + " any more"
	default:
		return "no record has " + listFields(gone) + " any more (new: " + listFields(added) + ")"
	}
}

// onlyIn returns the paths that many of the records of all have and none of those of others, without those below another one.
func onlyIn(all, others core.Kinds) []string {
	known := make(map[string]struct{})
	for path := range others.All() {
		known[path] = struct{}{}
	}
	var only []string
	many := sweep.GuardShare * float64(all.Records())
	for path, p := range all.All() {
		if _, is := known[path]; is || float64(max(p.Objects, p.Numbers, p.Booleans, p.Texts)) < many {
			continue
		}
		if !slices.ContainsFunc(only, func(above string) bool { return strings.HasPrefix(path, above+".") }) {
			only = append(only, path)
		}
	}
	return only
}

func listFields(paths []string) string {
	text := strings.Join(paths[:min(len(paths), maxChangedFields)], ", ")
	if more := len(paths) - maxChangedFields; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// rebuildKinds returns the kinds of the records of a job that rebuilds the index: those that the last run counted with what has changed since
// or, if these decide nothing for certain, those of a reading without writes.
func (w *runs) rebuildKinds(ctx context.Context, job core.Job, uncertain Uncertain) (core.Kinds, error) {
	if w.NewKindCounter == nil {
		return core.OverflownKinds(), nil
	}
	if _, err := w.calls.Answered(ctx, job, func() error { return w.Fetcher.ReadTypes(ctx, job) }); err != nil {
		return nil, &countError{err}
	}
	kinds, why, err := w.keptKinds(ctx, job, uncertain)
	if err != nil || why == "" {
		return kinds, err
	}
	w.log.InfoContext(ctx, "the rebuild reads all records once before it begins, to decide the types of fields", "job_id", job.ID, "reason", why)
	if err := w.note(ctx, job, "all records are read once more before the index is filled, to decide the types of fields: "+why); err != nil {
		return nil, err
	}
	if kinds, err = w.readKinds(ctx, job); err != nil {
		return nil, &countError{err}
	}
	note := "all records were read once more before the index was filled, to decide the types of fields: " + why
	if !kinds.Whole() {
		note += fmt.Sprintf("; they have too many different fields (over %d bytes of paths), so that first values decide", maxReadKinds)
		w.log.WarnContext(ctx, "the records have too many different fields: first values decide their types", "job_id", job.ID, "max_bytes", maxReadKinds)
	}
	return kinds, w.note(ctx, job, note)
}

// countError is an error of reading the records before a rebuild.
type countError struct{ error }

// Unwrap implements errors.
func (e *countError) Unwrap() error { return e.error }

// note sets the note of a job.
func (w *runs) note(ctx context.Context, job core.Job, text string) error {
	_, err := w.jobs.Update(ctx, job.ID, func(j *core.Job) error {
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
func (w *runs) readKinds(ctx context.Context, job core.Job) (core.Kinds, error) {
	organizations, _, err := w.calls.Organizations(ctx, job)
	if err != nil {
		return nil, err
	}
	job.Kinds = true
	var mu sync.Mutex
	var all core.Kinds
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(w.Concurrency)
	for _, organization := range w.Fetcher.ValidOrganizations(organizations) {
		calls.Go(func() error {
			return w.readOrganizationKinds(ctx, job, organization, func(kinds core.Kinds) {
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
func (w *runs) readOrganizationKinds(ctx context.Context, job core.Job, organization string, add func(core.Kinds)) error {
	counter := w.counter(job)
	defer w.release(counter)
	offset, limit, small := 0, w.PageSize, 0
	var info core.PageInfo
	records := int64(0)
	read := func() error {
		release, err := w.Fetcher.AcquirePage(ctx)
		if err != nil {
			return err
		}
		defer release()
		counter.Take(0) // of a page that was not answered
		records = 0
		info, err = w.Fetcher.Page(ctx, organization, offset, limit, func(rec core.Record) error {
			records++
			w.countRecord(counter, rec, organization)
			return nil
		})
		return err
	}
	for {
		failures := 0
		_, err := w.calls.Answered(ctx, job, func() error {
			for {
				err := read()
				smaller := w.smallerLimit(offset, limit)
				if fetch.Unanswered(err) {
					failures++
				}
				if err == nil || smaller == limit || failures == 1 || !w.Fetcher.AsksTooMuch(ctx, err) {
					return err
				}
				limit, small = smaller, growAfter
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
			limit = w.largerLimit(offset, limit)
		}
	}
}

// countRecord counts the documents of a record of an organization, if it has any.
func (r *repository) countRecord(counter KindCounter, rec core.Record, organization string) {
	if rec.Excluded != nil || !rec.Indexable || rec.TooLarge != nil || rec.Organization != organization {
		return
	}
	if r.Split == nil {
		counter.AddShaped(r.Document(nil, rec), rec.Shape)
		return
	}
	counter.Record()
	_ = r.Split(rec, func(_ string, document []byte) error { // a record that cannot be split has no document
		counter.Add(document)
		return nil
	})
}
