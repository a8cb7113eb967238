package client

import (
	"context"
	"io"
	"net/http"
)

const typeTar = "application/x-tar"

// Backup calls read with a tar archive of the server's embedded parts. It has no timeout. CodeUnavailable when the connection is lost, and
// CodeConflict while the server writes another backup or when it embeds nothing.
func (c *Client) Backup(ctx context.Context, read func(io.Reader) error) error {
	resp, err := c.send(ctx, call{method: http.MethodGet, path: "/backup", accept: typeTar})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if mediaType(resp) != typeTar {
		return c.unexpectedResponse(resp, "returned "+describeType(resp)+" instead of a backup")
	}
	return read(resp.Body)
}
