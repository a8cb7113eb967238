package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// DeadLetter is a record that tutti gave up on, as the server shows it.
type DeadLetter struct {
	ID           string    `json:"id"`
	Repository   string    `json:"repository"`
	Organization string    `json:"organization"`
	RecordID     string    `json:"recordId"`
	Reason       string    `json:"reason"`
	Hint         string    `json:"hint"`
	EngineType   string    `json:"engineType"`
	EngineReason string    `json:"engineReason"`
	Attempts     int       `json:"attempts"`
	FirstAt      time.Time `json:"firstAt"`
	LastAt       time.Time `json:"lastAt"`
	JobID        string    `json:"jobId"`
	// Size and SHA256 are of the whole document; Truncated tells that less of it is kept.
	Size      int    `json:"size"`
	SHA256    string `json:"sha256"`
	Truncated bool   `json:"truncated"`
	// Source and Position say where a message that was not understood came from.
	Source   string `json:"source"`
	Position string `json:"position"`
	// Document is the kept document where it is JSON, DocumentText where it is other text, DocumentBase64 its bytes
	// otherwise; at most one is set, and none in a list.
	Document       json.RawMessage `json:"document"`
	DocumentText   string          `json:"documentText"`
	DocumentBase64 []byte          `json:"documentBase64"`
	// Raw is the letter as it came; nil in a list.
	Raw json.RawMessage `json:"-"`
}

// DeadLetterFilter chooses dead letters. The zero value is the newest of all.
type DeadLetterFilter struct {
	Repository string
	Reason     string
	// Limit is the most that are given; 0 leaves it to the server.
	Limit int
	// Cursor goes on where another page ended.
	Cursor string
}

// DeadLetterPage is one page of dead letters, the newest first.
type DeadLetterPage struct {
	DeadLetters []DeadLetter `json:"deadLetters"`
	// NextCursor asks for the next page; "" after the last.
	NextCursor string `json:"nextCursor"`
	// Raw is the page as it came.
	Raw json.RawMessage `json:"-"`
}

// Retried is the answer to a retry of one letter.
type Retried struct {
	Successful   bool   `json:"successful"`
	RequestID    string `json:"requestId"`
	ID           string `json:"id"`
	Repository   string `json:"repository"`
	Organization string `json:"organization"`
	RecordID     string `json:"recordId"`
	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

// RetriedAll is the answer to a retry of many letters.
type RetriedAll struct {
	Successful bool   `json:"successful"`
	RequestID  string `json:"requestId"`
	// Retried were published again; Refused cannot be.
	Retried int `json:"retried"`
	Refused int `json:"refused"`
	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

const pathDeadLetters = "dead-letters"

// DeadLetters lists dead letters, without their documents.
func (c *Client) DeadLetters(ctx context.Context, filter DeadLetterFilter) (DeadLetterPage, error) {
	query := queryOf("repository", filter.Repository, "reason", filter.Reason,
		"limit", numberOf(filter.Limit), "cursor", filter.Cursor)
	var page DeadLetterPage
	var err error
	page.Raw, err = c.ask(ctx, call{method: http.MethodGet, path: "/" + pathDeadLetters, query: query}, &page)
	return page, err
}

// DeadLetter returns one letter with its document, CodeNotFound when there is none.
func (c *Client) DeadLetter(ctx context.Context, id string) (DeadLetter, error) {
	path, err := pathOf(pathDeadLetters, id)
	if err != nil {
		return DeadLetter{}, err
	}
	var letter DeadLetter
	letter.Raw, err = c.ask(ctx, call{method: http.MethodGet, path: path}, &letter)
	return letter, err
}

// Retry asks again for what a letter is about; the letter goes when that succeeds. CodeConflict when it cannot be
// retried, with a hint.
func (c *Client) Retry(ctx context.Context, id string) (Retried, error) {
	path, err := pathOf(pathDeadLetters, id)
	if err != nil {
		return Retried{}, err
	}
	var r Retried
	r.Raw, err = c.ask(ctx, call{method: http.MethodPost, path: path + "/retry"}, &r)
	return r, err
}

// RetryAll retries every letter of a repository and of a reason, "" for any. It takes as long as the server needs.
func (c *Client) RetryAll(ctx context.Context, repository, reason string) (RetriedAll, error) {
	var r RetriedAll
	var err error
	r.Raw, err = c.read(ctx, call{
		method: http.MethodPost, path: "/" + pathDeadLetters + "/retry",
		query: queryOf("repository", repository, "reason", reason),
	}, &r)
	return r, err
}

// Discard removes a letter for good; CodeNotFound when there is none.
func (c *Client) Discard(ctx context.Context, id string) error {
	path, err := pathOf(pathDeadLetters, id)
	if err != nil {
		return err
	}
	_, err = c.ask(ctx, call{method: http.MethodDelete, path: path}, &struct{}{})
	return err
}

// ExportDeadLetters writes every letter of a repository and of a reason, "" for any, to w: one JSON object a line. An
// answer that is cut short is CodeUnavailable; what was written until then is whole but for its last line.
func (c *Client) ExportDeadLetters(ctx context.Context, repository, reason string, w io.Writer) error {
	resp, err := c.send(ctx, call{
		method: http.MethodGet, path: "/" + pathDeadLetters, accept: typeNDJSON,
		query: queryOf("repository", repository, "reason", reason),
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if mediaType(resp) != typeNDJSON {
		return c.strange(resp, "answers with "+describeType(resp)+" instead of JSON lines")
	}
	out := &noting{Writer: w}
	if _, err := io.Copy(out, resp.Body); err != nil {
		if out.err != nil {
			return out.err
		}
		return c.unanswered(ctx, err)
	}
	return nil
}

// noting keeps the error of a Writer, so that it is told from one of the server.
type noting struct {
	io.Writer
	err error
}

// Write writes and notes the error.
func (n *noting) Write(b []byte) (int, error) {
	written, err := n.Writer.Write(b)
	n.err = err
	return written, err
}
