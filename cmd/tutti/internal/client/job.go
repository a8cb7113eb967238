package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"tutti/internal/core"
	"tutti/internal/index/mappingplan"
)

// Job is one run as returned by the server (CONTRACT section 1).
type Job struct {
	ID           string        `json:"id"`
	Scope        core.Scope    `json:"scope"`
	Repository   string        `json:"repository"`
	Organization string        `json:"organization"`
	IndexName    string        `json:"indexName"`
	State        core.JobState `json:"state"`
	Cause        core.Cause    `json:"cause"`
	Rebuild      bool          `json:"rebuild"`
	Difference   bool          `json:"difference"`
	// Reason is that of the dead letters of a retry, "" for any.
	Reason   string    `json:"reason"`
	QueuedAt time.Time `json:"queuedAt"`
	// StartedAt and EndedAt are nil until the job has started or ended.
	StartedAt *time.Time  `json:"startedAt"`
	EndedAt   *time.Time  `json:"endedAt"`
	Totals    core.Totals `json:"totals"`
	// RatePerSecond counts records fetched; ETASeconds is nil when unknown.
	RatePerSecond float64 `json:"ratePerSecond"`
	ETASeconds    *int64  `json:"etaSeconds"`
	// Organizations are the first organizations of the run, those that failed and those in progress first; none in an Event.
	Organizations []Organization `json:"organizations"`
	// OrganizationsTotal is the number of all organizations, OrganizationStates that of each state; nil from an older server.
	OrganizationsTotal int                   `json:"organizationsTotal"`
	OrganizationStates map[core.JobState]int `json:"organizationStates"`
	Error              *core.JobError        `json:"error"`
	// Note says what else the job did, "" for nothing.
	Note string `json:"note"`
	// Paused is the reason why the job waits, "" otherwise.
	Paused string `json:"paused"`
	// Raw is the job as received; nil in a list.
	Raw json.RawMessage `json:"-"`
}

// Organization is one organization of a job.
type Organization struct {
	Organization string         `json:"organization"`
	Totals       core.Totals    `json:"totals"`
	State        core.JobState  `json:"state"`
	Error        *core.JobError `json:"error"`
}

// JobPage is one page of jobs, newest first.
type JobPage struct {
	Jobs []Job `json:"jobs"`
	// NextCursor is the Cursor of the next page; "" after the last.
	NextCursor string `json:"nextCursor"`
	// Raw is the page as received.
	Raw json.RawMessage `json:"-"`
}

const pathJobs = "jobs"

// Jobs lists jobs, the newest first.
func (c *Client) Jobs(ctx context.Context, filter core.JobFilter) (JobPage, error) {
	query := queryOf("repository", filter.Repository, "state", string(filter.State),
		"limit", numberOf(filter.Limit), "cursor", filter.Cursor)
	var page JobPage
	var err error
	page.Raw, err = c.do(ctx, call{method: http.MethodGet, path: "/" + pathJobs, query: query}, &page)
	return page, err
}

// Job returns one job with its first organizations, CodeNotFound when it does not exist.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	return c.job(ctx, http.MethodGet, id)
}

// CancelJob cancels a job and returns it; CodeConflict when it has already ended.
func (c *Client) CancelJob(ctx context.Context, id string) (Job, error) {
	return c.job(ctx, http.MethodDelete, id)
}

func (c *Client) job(ctx context.Context, method, id string) (Job, error) {
	path, err := pathOf(pathJobs, id)
	if err != nil {
		return Job{}, err
	}
	var job Job
	job.Raw, err = c.do(ctx, call{method: method, path: path}, &job)
	return job, err
}

// WatchJob calls each for the current state of a job and its organizations and for every change, in one goroutine, until the job has
// ended, and returns the job. A broken stream of events is resumed; when the server has none, the job is polled. Errors: those of each,
// CodeNotFound for an unknown job, errors of the server that a retry cannot fix, CodeUnavailable when the server did not answer at the
// start or, later, for Config.MaxOutage.
func (c *Client) WatchJob(ctx context.Context, id string, each func(Event) error) (Job, error) {
	path, err := pathOf(pathJobs, id)
	if err != nil {
		return Job{}, err
	}
	w := &watch{client: c, id: id, path: path + "/events", each: each, streams: true, lastData: time.Now()}
	job, err := w.run(ctx)
	if s, ok := errors.AsType[callbackError](err); ok {
		err = s.error
	}
	return job, err
}

// Accepted is the response to a trigger that is stored in the queue (CONTRACT section 1).
type Accepted struct {
	Successful bool `json:"successful"`
	// IndexName is the alias that the repository writes to.
	IndexName string `json:"indexName"`
	RequestID string `json:"requestId"`
	// JobID names the job of a run; empty for one record.
	JobID string `json:"jobId"`
	// Raw is the response as received.
	Raw json.RawMessage `json:"-"`
}

// RunOptions are the flags of a run. The zero value runs with the prune guard into the current index.
type RunOptions struct {
	// Force disables the prune guard.
	Force bool
	// Rebuild fills a new physical index and swaps the alias; only for whole repositories.
	Rebuild bool
	// Difference writes only the records whose documents are not what they should be.
	Difference bool
}

// Index requests the indexing of a target: a repository, one of its organizations, or one record, which is removed when the repository
// has no indexable version of it. The first two return a job.
func (c *Client) Index(ctx context.Context, options RunOptions, target ...string) (Accepted, error) {
	return c.trigger(ctx, http.MethodPost, options, target)
}

// Rollback moves a repository's alias back to the index before the last rebuild. The job brings that index up to date.
func (c *Client) Rollback(ctx context.Context, repository string) (Accepted, error) {
	var a Accepted
	path, err := pathOf("repository", repository)
	if err == nil {
		a.Raw, err = c.do(ctx, call{method: http.MethodPost, path: "/index" + path + "/rollback"}, &a)
	}
	return a, err
}

// DropPrevious deletes the index that a repository had before its last rebuild.
func (c *Client) DropPrevious(ctx context.Context, repository string) error {
	path, err := pathOf("repository", repository)
	if err == nil {
		_, err = c.do(ctx, call{method: http.MethodDelete, path: "/index" + path + "/previous"}, nil)
	}
	return err
}

// MappingPlan is a plan as the server returned it.
type MappingPlan struct {
	mappingplan.Plan
	// Raw is the response as received.
	Raw json.RawMessage `json:"-"`
}

// MappingPlan returns how a repository's index differs from the server's configuration.
func (c *Client) MappingPlan(ctx context.Context, repository string) (MappingPlan, error) {
	var p MappingPlan
	path, err := pathOf("repository", repository)
	if err == nil {
		p.Raw, err = c.do(ctx, call{method: http.MethodGet, path: "/index" + path + "/mapping"}, &p)
	}
	return p, err
}

// RemoveRecord requests the removal of a record's document; the repository is not changed.
func (c *Client) RemoveRecord(ctx context.Context, repository, organization, id string) (Accepted, error) {
	return c.trigger(ctx, http.MethodDelete, RunOptions{}, []string{repository, organization, id})
}

func (c *Client) trigger(ctx context.Context, method string, options RunOptions, target []string) (Accepted, error) {
	var pairs []string
	for i, value := range target {
		pairs = append(pairs, []string{"repository", "organization", "id"}[i], value)
	}
	path, err := pathOf(pairs...)
	if err != nil {
		return Accepted{}, err
	}
	var a Accepted
	a.Raw, err = c.do(ctx, call{
		method: method, path: "/index" + path, query: queryOf("force", flagOf(options.Force), "rebuild", flagOf(options.Rebuild), "difference", flagOf(options.Difference)),
	}, &a)
	return a, err
}
