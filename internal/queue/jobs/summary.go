package jobs

import (
	"context"
	"encoding/json"
	"strconv"

	"tutti/internal/core"
	"tutti/internal/core/jobsum"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
	"tutti/internal/queue/paging"
	"tutti/internal/queue/subjects"
)

// keySummary is the prefix of the keys of the summaries of ended jobs.
const keySummary = "summary."

// smallSummary and largeSummary are how many organizations the summaries of a job have at most: a list of jobs shows few of each, a job many.
const smallSummary, largeSummary = 10, 100

// summaryKeys is the prefix of the keys of a job's summaries.
func summaryKeys(jobID string) string { return keySummary + subjects.EncodeToken(jobID) + "." }

func summaryKey(jobID string, size int) string { return summaryKeys(jobID) + strconv.Itoa(size) }

// summarySize returns the size of the summary that has the first limit organizations; false if there is none.
func summarySize(limit int) (int, bool) {
	switch {
	case limit <= smallSummary:
		return smallSummary, true
	case limit <= largeSummary:
		return largeSummary, true
	default:
		return 0, false
	}
}

// summary is what the lists of jobs show of the organizations of an ended job, so that they need not read them. A later change of an
// organization removes it: who changes one looks for a summary afterwards, and who stores a summary for a change.
type summary struct {
	Sum jobsum.Sum `json:"sum"`
	// Runs are the first organizations in the order of jobsum.Compare, More whether there are others.
	Runs []core.OrganizationRun `json:"runs"`
	More bool                   `json:"more,omitempty"`
}

// page returns a first page of the organizations of a job.
func (s *summary) page(list string, limit int) jobsum.OrganizationPage {
	page := jobsum.OrganizationPage{Runs: s.Runs, Sum: s.Sum}
	if len(page.Runs) > limit || s.More {
		page.Runs = page.Runs[:min(limit, len(page.Runs))]
		page.Next = nextOrganizations(list, page.Runs)
	}
	return page
}

// summary returns the summary of a size of a job; false if it has none.
func (j *Jobs) summary(ctx context.Context, jobID string, size int) (s summary, found bool, err error) {
	_, _, err = j.get(ctx, summaryKey(jobID, size), &s)
	if natsconn.IsNotFound(err) {
		return s, false, nil
	}
	return s, err == nil, natsconn.WrapError("reading the summary of a job", err)
}

// organizationChanged removes the summaries of a job one of whose organizations has changed.
func (j *Jobs) organizationChanged(ctx context.Context, jobID string) error {
	_, err := j.bucket.Stream.GetLastMsgForSubject(ctx, cells.Prefix+summaryKey(jobID, smallSummary))
	if natsconn.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = j.bucket.Purge(ctx, cells.Prefix+summaryKeys(jobID)+">")
	}
	return natsconn.WrapError("removing the summary of a job", err)
}

// summarize stores the summaries of a job of which stored are the organizations, if it has ended and they have, and none has changed since.
func (j *Jobs) summarize(ctx context.Context, job core.Job, stored *organizations) error {
	sum := stored.sum()
	if !job.State.Final() || sum.Open() > 0 {
		return nil
	}
	var first []core.OrganizationRun
	for _, state := range jobsum.States() {
		runs, err := stored.inState(state, "", largeSummary+1-len(first))
		if err != nil {
			return err
		}
		if first = append(first, runs...); len(first) > largeSummary {
			break
		}
	}
	for i := range first { // only what a list shows, which is bounded
		run := &first[i]
		first[i] = core.OrganizationRun{
			Organization: run.Organization, State: run.State, Totals: run.Totals, Error: run.Error, LastPage: run.LastPage, Listed: run.Listed,
		}
	}
	for _, size := range []int{largeSummary, smallSummary} {
		data, err := json.Marshal(summary{Sum: sum, Runs: first[:min(size, len(first))], More: len(first) > size})
		if err != nil {
			return core.WrapError(core.CodeInternal, "encoding the summary of a job", err)
		}
		if err := j.bucket.Put(ctx, summaryKey(job.ID, size), data); err != nil {
			return err
		}
	}
	last, err := natsread.LastSequence(ctx, j.bucket.Stream, cells.Prefix+organizationKey(job.ID, "")+">")
	if err == nil && last != stored.last {
		err = j.bucket.Purge(ctx, cells.Prefix+summaryKeys(job.ID)+">")
	}
	return err
}

// summarizeEnded is summarize for a job by its id, if there is one.
func (j *Jobs) summarizeEnded(ctx context.Context, jobID string, stored *organizations) error {
	job, err := j.Get(ctx, jobID)
	if core.CodeOf(err) == core.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return j.summarize(ctx, job, stored)
}

// ensureSummary stores the summary of an ended job that has none, so that the first list that shows it need not read its organizations. An
// error is only logged: a list stores what is missing.
func (j *Jobs) ensureSummary(ctx context.Context, job core.Job) {
	_, found, err := j.summary(ctx, job.ID, smallSummary)
	if !found && err == nil {
		var stored organizations
		if stored, err = j.readOrganizations(ctx, job.ID); err == nil {
			err = j.summarize(ctx, job, &stored)
		}
	}
	if err != nil {
		j.bucket.Conn.Log.Debug("the summary of a job is not stored", "job_id", job.ID, "err", err)
	}
}

func nextOrganizations(list string, runs []core.OrganizationRun) string {
	last := &runs[len(runs)-1]
	return paging.EncodeCursor(list, string(last.State)+" "+last.Organization)
}
