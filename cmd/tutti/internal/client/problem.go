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

// maxProblemBytes bounds the body of an error response.
const maxProblemBytes = 1 << 20

// ResponseError holds the status of an error response; every *core.Error of an error response wraps one.
type ResponseError struct {
	// Status is the HTTP status.
	Status int
	// RequestID is the server's id of the request, as in its log; "" when it sent none.
	RequestID string
}

// Error returns the status, and for a server error the request id.
func (e *ResponseError) Error() string {
	if e.RequestID == "" || e.Status < http.StatusInternalServerError {
		return fmt.Sprintf("HTTP %d", e.Status)
	}
	return fmt.Sprintf("HTTP %d, request %s", e.Status, e.RequestID)
}

// problem holds the used members of a problem (RFC 9457, CONTRACT section 0).
type problem struct {
	Detail    string    `json:"detail"`
	Code      core.Code `json:"code"`
	Hint      string    `json:"hint"`
	RequestID string    `json:"requestId"`
	// ErrorID is Song's error id, only for routes that Song's clients use.
	ErrorID    string           `json:"errorId"`
	Violations []core.Violation `json:"violations"`
}

// responseError returns the error of a response that is not 2xx.
func (t *transport) responseError(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes))
	var p problem
	known := err == nil && strings.HasSuffix(mediaType(resp), "json") && json.Unmarshal(body, &p) == nil
	if !known || p.Code == "" || p.Detail == "" {
		return t.unexpectedResponse(resp, "returned "+statusText(resp.StatusCode)+" with "+describeType(resp)+", which is not a response of tutti")
	}
	if p.RequestID == "" {
		p.RequestID = resp.Header.Get("X-Request-Id")
	}
	e := &core.Error{
		Code: p.Code, Message: p.Detail, Hint: p.Hint, ErrorID: p.ErrorID, Violations: p.Violations, RetryAfter: retryAfter(resp.Header),
		Err: &ResponseError{Status: resp.StatusCode, RequestID: p.RequestID},
	}
	if resp.StatusCode == http.StatusUnauthorized {
		e.Hint = joinHints(e.Hint, "set a token with --token or TUTTI_TOKEN")
	}
	if e.RetryAfter > 0 {
		e.Hint = joinHints(e.Hint, fmt.Sprintf("try again after %s", e.RetryAfter))
	}
	return e
}

// unexpectedResponse returns the error of a response that is not tutti's, most likely a proxy's page. what follows "the server at … ".
func (t *transport) unexpectedResponse(resp *http.Response, what string) error {
	e := &core.Error{
		Code: core.CodeUpstream, Message: fmt.Sprintf("the server at %s %s", t.base, what),
		Hint:       "check the address and its base path (--server), and proxies in front of the server",
		RetryAfter: retryAfter(resp.Header),
		Err:        &ResponseError{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id")},
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		e.Message = fmt.Sprintf("the server at %s redirects to another server, which is not followed", t.base)
		e.Hint = "set the address of the redirect's target with --server"
		if to, err := resp.Location(); err == nil {
			e.Message = fmt.Sprintf("the server at %s redirects to %s://%s, which is not followed", t.base, to.Scheme, to.Host)
		}
	case http.StatusUnauthorized:
		e.Code = core.CodeUnauthenticated
	case http.StatusForbidden:
		e.Code = core.CodeForbidden
	case http.StatusTooManyRequests:
		e.Code = core.CodeOverloaded
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.Code = core.CodeUnavailable
		e.Hint = "the proxy does not reach tutti; check that tutti is running"
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

// retryAfter parses the Retry-After header, seconds or a date (RFC 9110, 10.2.3); zero when there is none.
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
