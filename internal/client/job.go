package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tutti/internal/core"
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
	QueuedAt     time.Time     `json:"queuedAt"`
	// StartedAt and EndedAt are nil until the job has started or ended.
	StartedAt *time.Time  `json:"startedAt"`
	EndedAt   *time.Time  `json:"endedAt"`
	Totals    core.Totals `json:"totals"`
	// RatePerSecond counts records fetched; ETASeconds is nil when unknown.
	RatePerSecond float64 `json:"ratePerSecond"`
	ETASeconds    *int64  `json:"etaSeconds"`
	// Organizations are the organizations of the run: all of them from Job, the first ones from Jobs, none in an Event.
	Organizations      []Organization `json:"organizations"`
	OrganizationsTotal int            `json:"organizationsTotal"`
	Error              *core.JobError `json:"error"`
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

// JobFilter selects jobs. The zero value selects the newest of all.
type JobFilter struct {
	Repository string
	State      core.JobState
	// Limit bounds the page, from 1 to 200; 0 is the server's default.
	Limit int
	// Cursor is the NextCursor of the previous page.
	Cursor string
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

// Jobs lists jobs.
func (c *Client) Jobs(ctx context.Context, filter JobFilter) (JobPage, error) {
	query := queryOf("repository", filter.Repository, "state", string(filter.State),
		"limit", numberOf(filter.Limit), "cursor", filter.Cursor)
	var page JobPage
	var err error
	page.Raw, err = c.do(ctx, call{method: http.MethodGet, path: "/" + pathJobs, query: query}, &page)
	return page, err
}

// Job returns one job with all its organizations, CodeNotFound when it does not exist.
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

// queryOf returns a query of names and values, without empty values.
func queryOf(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// numberOf formats n, "" for 0.
func numberOf(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
