package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

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
}

func (o RunOptions) query() url.Values {
	q := url.Values{}
	if o.Force {
		q.Set("force", "true")
	}
	if o.Rebuild {
		q.Set("rebuild", "true")
	}
	return q
}

// IndexRepository requests the indexing of a repository and returns its job.
func (c *Client) IndexRepository(ctx context.Context, repository string, options RunOptions) (Accepted, error) {
	return c.trigger(ctx, http.MethodPost, options, "repository", repository)
}

// IndexOrganization requests the indexing of one organization and returns its job.
func (c *Client) IndexOrganization(
	ctx context.Context, repository, organization string, options RunOptions,
) (Accepted, error) {
	return c.trigger(ctx, http.MethodPost, options, "repository", repository, "organization", organization)
}

// IndexRecord requests the indexing of one record, or its removal when the repository has no indexable version.
func (c *Client) IndexRecord(ctx context.Context, repository, organization, id string) (Accepted, error) {
	return c.trigger(ctx, http.MethodPost, RunOptions{}, "repository", repository, "organization", organization, "id", id)
}

// RemoveRecord requests the removal of a record's document; the repository is not changed.
func (c *Client) RemoveRecord(ctx context.Context, repository, organization, id string) (Accepted, error) {
	return c.trigger(ctx, http.MethodDelete, RunOptions{}, "repository", repository, "organization", organization, "id", id)
}

func (c *Client) trigger(ctx context.Context, method string, options RunOptions, pairs ...string) (Accepted, error) {
	path, err := pathOf(pairs...)
	if err != nil {
		return Accepted{}, err
	}
	var a Accepted
	a.Raw, err = c.do(ctx, call{method: method, path: "/index" + path, query: options.query()}, &a)
	return a, err
}
