package core

import (
	"slices"
	"time"
)

// JobState is where a job stands.
type JobState string

// States of a Job and of one organization of it. All but the first two are final.
const (
	JobQueued    JobState = "queued"
	JobRunning   JobState = "running"
	JobSucceeded JobState = "succeeded"
	JobPartial   JobState = "partial"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// Final tells whether a job in this state never changes again.
func (s JobState) Final() bool { return s != JobQueued && s != JobRunning }

// JobStates lists every state.
func JobStates() []JobState {
	return []JobState{JobQueued, JobRunning, JobSucceeded, JobPartial, JobFailed, JobCancelled}
}

// Totals counts the records of a job.
type Totals struct {
	Expected int64 `json:"expected"`
	Fetched  int64 `json:"fetched"`
	Indexed  int64 `json:"indexed"`
	Stale    int64 `json:"stale"`
	Removed  int64 `json:"removed"`
	Rejected int64 `json:"rejected"`
	Retried  int64 `json:"retried"`
}

// Add adds o to t, member by member.
func (t *Totals) Add(o Totals) {
	t.Expected += o.Expected
	t.Fetched += o.Fetched
	t.Indexed += o.Indexed
	t.Stale += o.Stale
	t.Removed += o.Removed
	t.Rejected += o.Rejected
	t.Retried += o.Retried
}

// JobError says why a job or one organization of it did not succeed; safe to display.
type JobError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Codes of a JobError beside those of Error.
const (
	JobErrorPruneGuard  = "prune_guard"
	JobErrorListShifted = "list_shifted"
	JobErrorCancelled   = "cancelled"
)

// Job is one run over an organization or a repository, as kept in the queue's key-value bucket.
type Job struct {
	ID           string     `json:"id"`
	Scope        Scope      `json:"scope"`
	Repository   string     `json:"repository"`
	Organization string     `json:"organization,omitempty"`
	IndexName    string     `json:"indexName"`
	State        JobState   `json:"state"`
	Cause        Cause      `json:"cause"`
	Force        bool       `json:"force,omitempty"`
	Rebuild      bool       `json:"rebuild,omitempty"`
	RequestID    string     `json:"requestId,omitempty"`
	QueuedAt     time.Time  `json:"queuedAt"`
	StartedAt    *time.Time `json:"startedAt,omitempty"`
	EndedAt      *time.Time `json:"endedAt,omitempty"`
	Totals       Totals     `json:"totals"`
	Error        *JobError  `json:"error,omitempty"`
	// StartVersion is the timestamp of the job's first Request: documents below it were not seen by the run.
	StartVersion Version `json:"startVersion,omitempty"`
	// Expected is the number of organizations of the run, nil until they are listed.
	ExpectedOrganizations *int `json:"expectedOrganizations,omitempty"`
	// Returned counts how often this job was returned to a trigger instead of queuing a second one.
	Returned int `json:"returned,omitempty"`
}

// OrganizationRun is one organization of a job, with what its chain of pages needs to go on after a crash.
type OrganizationRun struct {
	Organization string    `json:"organization"`
	State        JobState  `json:"state"`
	Totals       Totals    `json:"totals"`
	Error        *JobError `json:"error,omitempty"`
	// Epoch and Restart: the chain was restarted Epoch times, the last time from page number Restart.
	Epoch   int `json:"epoch,omitempty"`
	Restart int `json:"restart,omitempty"`
	// DoneThrough is the highest page number up to which all pages have ended, -1 for none; Done lists the ended
	// pages beyond it, in ascending order.
	DoneThrough int   `json:"doneThrough"`
	Done        []int `json:"done,omitempty"`
	// LastPage is the number of the last page, nil until it was read.
	LastPage *int `json:"lastPage,omitempty"`
	// Unswept says why this organization must not be swept, nil when it may be.
	Unswept *JobError `json:"unswept,omitempty"`
}

// PageDone tells whether page n has ended.
func (o *OrganizationRun) PageDone(n int) bool {
	return n <= o.DoneThrough || slices.Contains(o.Done, n)
}

// EndPage notes that page n has ended.
func (o *OrganizationRun) EndPage(n int) {
	if o.PageDone(n) {
		return
	}
	o.Done = append(o.Done, n)
	slices.Sort(o.Done)
	for len(o.Done) > 0 && o.Done[0] == o.DoneThrough+1 {
		o.DoneThrough++
		o.Done = o.Done[1:]
	}
}

// RestartFrom voids all pages from n on, for a chain that is read again from there.
func (o *OrganizationRun) RestartFrom(n int) {
	o.Epoch++
	o.Restart = n
	o.Done = nil
	o.LastPage = nil
	o.DoneThrough = min(o.DoneThrough, n-1)
}

// AllPagesDone tells whether every page up to the last one has ended.
func (o *OrganizationRun) AllPagesDone() bool {
	return o.LastPage != nil && o.DoneThrough >= *o.LastPage
}
