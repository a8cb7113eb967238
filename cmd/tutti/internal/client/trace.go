package client

import (
	"context"
	"encoding/json"
	"net/http"

	"tutti/internal/report/recordtrace"
)

// RecordTrace is what the server knows of one record between its repository and the index.
type RecordTrace struct {
	recordtrace.Trace
	// Raw is the trace as received.
	Raw json.RawMessage `json:"-"`
}

// Trace returns what the server knows of a record; CodeNotFound for an unknown repository.
func (c *Client) Trace(ctx context.Context, repository, organization, id string) (RecordTrace, error) {
	path, err := pathOf("repository", repository, "organization", organization, "id", id)
	if err != nil {
		return RecordTrace{}, err
	}
	var t RecordTrace
	t.Raw, err = c.do(ctx, call{method: http.MethodGet, path: "/index" + path}, &t)
	return t, err
}
