package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tutti/internal/core"
)

// maxProblemBytes bounds what is read of an answer that is an error.
const maxProblemBytes = 1 << 20

// CodeForbidden is the code of a server that knows who asks and refuses all the same.
const CodeForbidden = core.CodeForbidden

// AnswerError says with which status a server refused a call; it is the cause of the *core.Error of every refusal.
type AnswerError struct {
	// Status is the HTTP status.
	Status int
	// RequestID is the server's name for the request, as in its log; "" when it gave none.
	RequestID string
}

// Error returns the status, and for a fault of the server the request's id, which its log has too.
func (e *AnswerError) Error() string {
	if e.RequestID == "" || e.Status < http.StatusInternalServerError {
		return fmt.Sprintf("HTTP %d", e.Status)
	}
	return fmt.Sprintf("HTTP %d, request %s", e.Status, e.RequestID)
}

// problem is what is read of a problem (RFC 9457, CONTRACT section 0).
type problem struct {
	Detail    string    `json:"detail"`
	Code      core.Code `json:"code"`
	Hint      string    `json:"hint"`
	RequestID string    `json:"requestId"`
	// ErrorID is what Song's clients know a fault by; of the routes that those use alone.
	ErrorID    string           `json:"errorId"`
	Violations []core.Violation `json:"violations"`
}

// refused makes the error of an answer that is not 2xx.
func (c *Client) refused(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes))
	var p problem
	known := err == nil && strings.HasSuffix(mediaType(resp), "json") && json.Unmarshal(body, &p) == nil
	if !known || p.Code == "" || p.Detail == "" {
		return c.strange(resp, "answers "+statusText(resp.StatusCode)+" with "+describeType(resp)+", not as tutti does")
	}
	if p.RequestID == "" {
		p.RequestID = resp.Header.Get("X-Request-Id")
	}
	e := &core.Error{
		Code: p.Code, Message: p.Detail, Hint: p.Hint, ErrorID: p.ErrorID, Violations: p.Violations, RetryAfter: retryAfter(resp.Header),
		Err: &AnswerError{Status: resp.StatusCode, RequestID: p.RequestID},
	}
	if resp.StatusCode == http.StatusUnauthorized {
		e.Hint = joinHints(e.Hint, "a token is given with --token or TUTTI_TOKEN")
	}
	if e.RetryAfter > 0 {
		e.Hint = joinHints(e.Hint, fmt.Sprintf("try again after %s", e.RetryAfter))
	}
	return e
}

// strange makes the error of an answer that is not one of tutti's, a proxy's page most likely. what continues "tutti at
// … ".
func (c *Client) strange(resp *http.Response, what string) error {
	e := &core.Error{
		Code: core.CodeUpstream, Message: fmt.Sprintf("the server at %s %s", c.base, what),
		Hint:       "is it tutti, with its base path? does a proxy stand before it? its address is given with --server",
		RetryAfter: retryAfter(resp.Header),
		Err:        &AnswerError{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id")},
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		e.Message = fmt.Sprintf("the server at %s redirects to another one, which is not followed", c.base)
		e.Hint = "give the address that answers itself with --server"
		if to, err := resp.Location(); err == nil {
			e.Message = fmt.Sprintf("the server at %s redirects to %s://%s, which is not followed", c.base, to.Scheme, to.Host)
		}
	case http.StatusUnauthorized:
		e.Code = core.CodeUnauthenticated
	case http.StatusForbidden:
		e.Code = CodeForbidden
	case http.StatusTooManyRequests:
		e.Code = core.CodeOverloaded
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.Code = core.CodeUnavailable
		e.Hint = "a proxy answers, and tutti behind it does not: is it running?"
	}
	return e
}

func joinHints(hint, more string) string {
	if hint == "" {
		return more
	}
	return hint + "; " + more
}

func statusText(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}

// retryAfter reads the header of that name, in either of its forms (RFC 9110, 10.2.3); zero when there is none.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at).Round(time.Second))
	}
	return 0
}
