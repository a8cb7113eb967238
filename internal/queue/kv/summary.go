package kv

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/paging"
	"tutti/internal/queue/subjects"
)

const (
	// keySummary is the prefix of the keys of the summaries of ended jobs.
	keySummary = "summary."
	// summaryRuns is how many organizations a summary has at most.
	summaryRuns = 100
	// summaryTrust is how long after the end of its job an organization may change: a page may be in flight. A summary of before is
	// compared with the organizations.
	summaryTrust = time.Hour
)

func summaryKey(jobID string) string { return keySummary + subjects.EncodeToken(jobID) }

// summary is what the lists of jobs show of the organizations of an ended job, so that they need not read them.
type summary struct {
	// Last is the revision of the last change of an organization that is in Sum and Runs.
	Last uint64      `json:"last"`
	Sum  core.JobSum `json:"sum"`
	// Runs are the first organizations in the order of core.CompareOrganizations, More whether there are others.
	Runs []core.OrganizationRun `json:"runs"`
	More bool                   `json:"more,omitempty"`
	// EndedAt is the end of the job, Lasting whether no organization has changed until summaryTrust after it.
	EndedAt time.Time `json:"endedAt"`
	Lasting bool      `json:"lasting,omitempty"`
}

// page returns a first page of the organizations of a job.
func (s *summary) page(list string, limit int) core.OrganizationPage {
	page := core.OrganizationPage{Runs: s.Runs, Sum: s.Sum}
	if len(page.Runs) > limit || s.More {
		page.Runs = page.Runs[:min(limit, len(page.Runs))]
		page.Next = nextOrganizations(list, page.Runs)
	}
	return page
}

// summary returns the summary of a job; false if it has none, or one that is older than its organizations.
func (j *Jobs) summary(ctx context.Context, jobID string) (s summary, found bool, err error) {
	_, _, err = j.get(ctx, summaryKey(jobID), &s)
	switch {
	case natsconn.IsNotFound(err):
		return s, false, nil
	case err != nil:
		return s, false, natsconn.WrapError("reading the summary of a job", err)
	case s.Lasting:
		return s, true, nil
	}
	last, err := natsconn.LastSequence(ctx, j.stream, prefix+organizationKey(jobID, "")+">")
	if found = err == nil && last == s.Last; found && time.Since(s.EndedAt) > summaryTrust {
		err = j.putSummary(ctx, jobID, s)
	}
	return s, found, natsconn.WrapError("reading the organizations of the job", err)
}

// putSummary stores a summary as of now.
func (j *Jobs) putSummary(ctx context.Context, jobID string, s summary) error {
	s.Lasting = time.Since(s.EndedAt) > summaryTrust
	data, err := json.Marshal(s)
	if err != nil {
		return core.WrapError(core.CodeInternal, "encoding the summary of a job", err)
	}
	return j.put(ctx, summaryKey(jobID), data)
}

// summarize stores the summary of a job of which stored are the organizations, if it has ended and they have.
func (j *Jobs) summarize(ctx context.Context, job core.Job, stored *organizations) error {
	sum := stored.sum()
	if !job.State.Final() || job.EndedAt == nil || sum.Open() > 0 {
		return nil
	}
	s := summary{Last: stored.last, Sum: sum, EndedAt: *job.EndedAt}
	for _, state := range core.OrganizationStates() {
		runs, err := stored.inState(state, "", summaryRuns+1-len(s.Runs))
		if err != nil {
			return err
		}
		if s.Runs = append(s.Runs, runs...); len(s.Runs) > summaryRuns {
			s.Runs, s.More = slices.Clip(s.Runs[:summaryRuns]), true
			break
		}
	}
	for i := range s.Runs { // only what a list shows, which is bounded
		run := &s.Runs[i]
		s.Runs[i] = core.OrganizationRun{
			Organization: run.Organization, State: run.State, Totals: run.Totals, Error: run.Error, LastPage: run.LastPage, Listed: run.Listed,
		}
	}
	return j.putSummary(ctx, job.ID, s)
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
	_, found, err := j.summary(ctx, job.ID)
	if !found && err == nil {
		var stored organizations
		if stored, err = j.readOrganizations(ctx, job.ID); err == nil {
			err = j.summarize(ctx, job, &stored)
		}
	}
	if err != nil {
		j.conn.Log.Debug("the summary of a job is not stored", "job_id", job.ID, "err", err)
	}
}

func nextOrganizations(list string, runs []core.OrganizationRun) string {
	last := &runs[len(runs)-1]
	return paging.EncodeCursor(list, string(last.State)+" "+last.Organization)
}
