package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/retry"
)

// jobPollInterval is the interval of polling a job. The measured time is the job's own; each poll costs CPU.
const jobPollInterval = 500 * time.Millisecond

// client calls one server with JSON.
type client struct {
	base string
	http *http.Client
}

// newClient returns a client that keeps as many connections as it uses at once. The caller must close it.
func newClient(base string) *client {
	return &client{base: base, http: &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, WriteBufferSize: 64 << 10, DisableCompression: true},
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// call returns the complete response of a call; a status other than success is an error.
func (c *client) call(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
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

// trigger posts a trigger and returns the body of the 202.
func (c *client) trigger(ctx context.Context, path string) (gjson.Result, error) {
	answer, err := c.call(ctx, http.MethodPost, path, "", nil)
	return gjson.ParseBytes(answer), err
}

// backfill indexes the repository and waits for the job. It returns the succeeded job, and the time from the trigger to its end.
func (c *client) backfill(ctx context.Context) (gjson.Result, time.Duration, error) {
	began := time.Now()
	accepted, err := c.trigger(ctx, "/index/repository/"+repositoryCode)
	if err != nil {
		return accepted, 0, err
	}
	for {
		answer, err := c.call(ctx, http.MethodGet, "/jobs/"+accepted.Get("jobId").String(), "", nil)
		if err != nil {
			return gjson.Result{}, 0, err
		}
		job := gjson.ParseBytes(answer)
		switch core.JobState(job.Get("state").String()) {
		case core.JobSucceeded:
			return job, job.Get("endedAt").Time().Sub(began), nil
		case core.JobQueued, core.JobRunning:
		default:
			return job, 0, core.NewError(core.CodeInternal, fmt.Sprintf("the job ended as %s: %.500s", job.Get("state"), answer))
		}
		if err := retry.Sleep(ctx, jobPollInterval); err != nil {
			return job, 0, err
		}
	}
}

// indexedBy checks that a job indexed each record once.
func indexedBy(job gjson.Result, records int) error {
	if got := job.Get("totals.indexed").Int(); got != int64(records) {
		return core.NewError(core.CodeInternal, fmt.Sprintf("the job indexed %d of %d records: %.500s", got, records, job.Raw))
	}
	return nil
}
