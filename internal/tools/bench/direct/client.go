package direct

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// RepositoryCode is the code of the repository of a bench.
const RepositoryCode = "bench.song"

// JobPollInterval is the interval of polling a job. The measured time is the job's own; each poll costs CPU.
const JobPollInterval = 500 * time.Millisecond

// Client calls one server with JSON.
type Client struct {
	Base string
	HTTP *http.Client
}

// NewClient returns a client that keeps as many connections as it uses at once. The caller must close it.
func NewClient(base string) *Client {
	return &Client{Base: base, HTTP: &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, WriteBufferSize: 64 << 10, DisableCompression: true},
	}}
}

// Close closes the idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Call returns the complete response of a call; a status other than success is an error.
func (c *Client) Call(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, method+" "+path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "reading the response of "+path, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, core.NewError(core.CodeUnavailable, fmt.Sprintf("%s %s: %s: %.300s", method, path, resp.Status, answer))
	}
	return answer, nil
}

// Trigger posts a trigger and returns the body of the 202.
func (c *Client) Trigger(ctx context.Context, path string) (gjson.Result, error) {
	answer, err := c.Call(ctx, http.MethodPost, path, "", nil)
	return gjson.ParseBytes(answer), err
}

// Backfill indexes the repository and waits for the job. It returns the succeeded job, and the time from the trigger to its end.
func (c *Client) Backfill(ctx context.Context) (gjson.Result, time.Duration, error) {
	return c.Run(ctx, "")
}

// Run is Backfill with a query, such as ?rebuild=true.
func (c *Client) Run(ctx context.Context, query string) (gjson.Result, time.Duration, error) {
	began := time.Now()
	accepted, err := c.Trigger(ctx, "/index/repository/"+RepositoryCode+query)
	if err != nil {
		return accepted, 0, err
	}
	job, err := c.Await(ctx, accepted.Get("jobId").String())
	return job, job.Get("endedAt").Time().Sub(began), err
}

// Await waits until a job has succeeded, and returns it.
func (c *Client) Await(ctx context.Context, id string) (job gjson.Result, err error) {
	for {
		answer, err := c.Call(ctx, http.MethodGet, "/jobs/"+id, "", nil)
		if err != nil {
			return gjson.Result{}, err
		}
		job = gjson.ParseBytes(answer)
		switch core.JobState(job.Get("state").String()) {
		case core.JobSucceeded:
			return job, nil
		case core.JobQueued, core.JobRunning, core.JobPaused:
		default:
			return job, core.NewError(core.CodeInternal, fmt.Sprintf("the job ended as %s: %.500s", job.Get("state"), answer))
		}
		if err := retry.Sleep(ctx, JobPollInterval); err != nil {
			return job, err
		}
	}
}

// IndexedBy checks that a job indexed each record once.
func IndexedBy(job gjson.Result, records int) error {
	if got := job.Get("totals.indexed").Int(); got != int64(records) {
		return core.NewError(core.CodeInternal, fmt.Sprintf("the job indexed %d of %d records: %.500s", got, records, job.Raw))
	}
	return nil
}
