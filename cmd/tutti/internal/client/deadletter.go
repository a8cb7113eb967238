package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"tutti/internal/core"
)

// DeadLetter is a record that could not be indexed, as returned by the server.
type DeadLetter struct {
	core.DeadLetter
	// Document is the stored document when it is JSON, DocumentText when it is other text, DocumentBase64 its bytes otherwise; at most
	// one is set, and none in a list.
	Document       json.RawMessage `json:"document"`
	DocumentText   string          `json:"documentText"`
	DocumentBase64 []byte          `json:"documentBase64"`
	// Raw is the dead letter as received; nil in a list.
	Raw json.RawMessage `json:"-"`
}

// DeadLetterPage is one page of dead letters, newest first.
type DeadLetterPage struct {
	DeadLetters []DeadLetter `json:"deadLetters"`
	// NextCursor is the Cursor of the next page; "" after the last.
	NextCursor string `json:"nextCursor"`
	// Raw is the page as received.
	Raw json.RawMessage `json:"-"`
}

// RetryResult is the response to a retry of one dead letter.
type RetryResult struct {
	Successful   bool   `json:"successful"`
	RequestID    string `json:"requestId"`
	ID           string `json:"id"`
	Repository   string `json:"repository"`
	Organization string `json:"organization"`
	RecordID     string `json:"recordId"`
	// Raw is the response as received.
	Raw json.RawMessage `json:"-"`
}

const pathDeadLetters = "dead-letters"

// letterQuery returns the parameters of a list of dead letters.
func letterQuery(f core.DeadLetterFilter) url.Values {
	return queryOf("repository", f.Repository, "organization", f.Organization, "reason", f.Reason, "limit", numberOf(f.Limit), "cursor", f.Cursor)
}

// DeadLetters lists dead letters, without their documents.
func (c *Client) DeadLetters(ctx context.Context, filter core.DeadLetterFilter) (DeadLetterPage, error) {
	var page DeadLetterPage
	var err error
	page.Raw, err = c.do(ctx, call{method: http.MethodGet, path: "/" + pathDeadLetters, query: letterQuery(filter)}, &page)
	return page, err
}

// DeadLetter returns one dead letter with its document, CodeNotFound when it does not exist.
func (c *Client) DeadLetter(ctx context.Context, id string) (DeadLetter, error) {
	path, err := pathOf(pathDeadLetters, id)
	if err != nil {
		return DeadLetter{}, err
	}
	var letter DeadLetter
	letter.Raw, err = c.do(ctx, call{method: http.MethodGet, path: path}, &letter)
	return letter, err
}

// Retry requests the indexing of a dead letter's record; the dead letter is removed when that succeeds. CodeConflict, with a hint, when it
// cannot be retried.
func (c *Client) Retry(ctx context.Context, id string) (RetryResult, error) {
	path, err := pathOf(pathDeadLetters, id)
	if err != nil {
		return RetryResult{}, err
	}
	var r RetryResult
	r.Raw, err = c.do(ctx, call{method: http.MethodPost, path: path + "/retry"}, &r)
	return r, err
}

// RetryAll requests the retry of all dead letters that filter selects, and returns its job. Limit and Cursor are not used.
func (c *Client) RetryAll(ctx context.Context, filter core.DeadLetterFilter) (Accepted, error) {
	var a Accepted
	var err error
	a.Raw, err = c.do(ctx, call{
		method: http.MethodPost, path: "/" + pathDeadLetters + "/retry",
		query: letterQuery(core.DeadLetterFilter{Repository: filter.Repository, Organization: filter.Organization, Reason: filter.Reason}),
	}, &a)
	return a, err
}

// Discard removes a dead letter permanently; CodeNotFound when it does not exist.
func (c *Client) Discard(ctx context.Context, id string) error {
	path, err := pathOf(pathDeadLetters, id)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, call{method: http.MethodDelete, path: path}, &struct{}{})
	return err
}

// ExportDeadLetters writes the dead letters that filter selects, all without a Limit, to w: one JSON object per line. A truncated
// response is CodeUnavailable; the lines written before are complete except for the last.
func (c *Client) ExportDeadLetters(ctx context.Context, filter core.DeadLetterFilter, w io.Writer) error {
	resp, err := c.send(ctx, call{
		method: http.MethodGet, path: "/" + pathDeadLetters, accept: typeNDJSON,
		query: letterQuery(filter),
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if mediaType(resp) != typeNDJSON {
		return c.unexpectedResponse(resp, "returned "+describeType(resp)+" instead of JSON lines")
	}
	out := &errorRecorder{Writer: w}
	if _, err := io.Copy(out, resp.Body); err != nil {
		if out.err != nil {
			return out.err
		}
		return c.connectionError(ctx, err)
	}
	return nil
}

// errorRecorder records the error of a Writer, to distinguish it from errors of the server.
type errorRecorder struct {
	io.Writer
	err error
}

// Write writes and records the error.
func (n *errorRecorder) Write(b []byte) (int, error) {
	written, err := n.Writer.Write(b)
	n.err = err
	return written, err
}
