package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"tutti/internal/core/idlist"
)

// AcceptedList is the response to a list of ids that is stored.
type AcceptedList struct {
	Accepted
	// IDs counts the distinct ids, Duplicates the lines that repeat one.
	IDs        int `json:"ids"`
	Duplicates int `json:"duplicates"`
}

// IndexIDs requests the indexing of a list of ids as one job. With an organization each line of list is an id, without one an
// organization, a tab and an id. A list whose first line is a JSON object consists of objects {"organization", "id"}. CodeInvalid, with
// the number of the line, for an invalid one; nothing is then requested. It has no timeout.
func (c *Client) IndexIDs(ctx context.Context, repository, organization string, list []byte) (AcceptedList, error) {
	pairs := []string{"repository", repository}
	if organization != "" {
		pairs = append(pairs, "organization", organization)
	}
	path, err := pathOf(pairs...)
	if err != nil {
		return AcceptedList{}, err
	}
	call := call{method: http.MethodPost, path: "/index" + path + "/ids", body: list, contentType: typeText}
	if bytes.HasPrefix(bytes.TrimLeft(list, "\ufeff \t\r\n"), []byte("{")) {
		call.contentType = typeNDJSON
	}
	var a AcceptedList
	a.Raw, err = c.doWithoutTimeout(ctx, call, &a)
	return a, err
}

// JobIDs calls each for the ids of a job over a list, in their order. Errors: those of each, CodeNotFound when the job does not exist,
// CodeUnavailable for a truncated response.
func (c *Client) JobIDs(ctx context.Context, id string, each func(idlist.ID) error) error {
	path, err := pathOf(pathJobs, id)
	if err != nil {
		return err
	}
	resp, err := c.send(ctx, call{method: http.MethodGet, path: path + "/ids", accept: typeNDJSON})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if mediaType(resp) != typeNDJSON {
		return c.unexpectedResponse(resp, "returned "+describeType(resp)+" instead of JSON lines")
	}
	lines := json.NewDecoder(resp.Body)
	for {
		var listed idlist.ID
		err := lines.Decode(&listed)
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &syntax):
			return c.unexpectedResponse(resp, "returned invalid JSON: "+err.Error())
		case err != nil:
			return c.connectionError(ctx, err)
		}
		if err := each(listed); err != nil {
			return err
		}
	}
}
