package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Accepted is the answer to a trigger that the queue has stored (CONTRACT section 1).
type Accepted struct {
	Successful bool `json:"successful"`
	// IndexName is the alias that the repository writes to.
	IndexName string `json:"indexName"`
	RequestID string `json:"requestId"`
	// JobID names the job of a run; empty for one record.
	JobID string `json:"jobId"`
	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

// RunOptions are the flags of a run. The zero value is a guarded run into the index as it is.
type RunOptions struct {
	// Force lifts the prune guard.
	Force bool
	// Rebuild fills a new physical index and swaps; whole repositories only.
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

// IndexRepository asks for all of a repository to be indexed, and returns the job that does it.
func (c *Client) IndexRepository(ctx context.Context, repository string, options RunOptions) (Accepted, error) {
	return c.trigger(ctx, http.MethodPost, options, "repository", repository)
}

// IndexOrganization asks for one organization to be indexed, and returns the job that does it.
func (c *Client) IndexOrganization(
	ctx context.Context, repository, organization string, options RunOptions,
) (Accepted, error) {
	return c.trigger(ctx, http.MethodPost, options, "repository", repository, "organization", organization)
}

// IndexRecord asks for one record to be indexed, or removed where its repository does not have it in an indexable state.
func (c *Client) IndexRecord(ctx context.Context, repository, organization, id string) (Accepted, error) {
	return c.trigger(ctx, http.MethodPost, RunOptions{}, "repository", repository, "organization", organization, "id", id)
}

// RemoveRecord asks for one record's document to be removed; its repository is not changed.
func (c *Client) RemoveRecord(ctx context.Context, repository, organization, id string) (Accepted, error) {
	return c.trigger(ctx, http.MethodDelete, RunOptions{}, "repository", repository, "organization", organization, "id", id)
}

func (c *Client) trigger(ctx context.Context, method string, options RunOptions, pairs ...string) (Accepted, error) {
	path, err := pathOf(pairs...)
	if err != nil {
		return Accepted{}, err
	}
	var a Accepted
	a.Raw, err = c.ask(ctx, call{method: method, path: "/index" + path, query: options.query()}, &a)
	return a, err
}
