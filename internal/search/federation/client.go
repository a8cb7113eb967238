package federation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"tutti/internal/core"
)

// errTimeout is the cause of a call that timed out.
var errTimeout = errors.New("the call timed out")

// maxRedirects is the maximum number of redirects of one call.
const maxRedirects = 3

// client sends GraphQL queries to remotes.
type client struct {
	http *http.Client
	cfg  Config
}

func newClient(cfg Config) *client {
	transport := cfg.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    cfg.MaxInFlight,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 256 << 10,
		}
	}
	return &client{cfg: cfg, http: &http.Client{Transport: transport, CheckRedirect: checkRedirect}}
}

// close closes idle connections.
func (c *client) close() { c.http.CloseIdleConnections() }

// checkRedirect allows redirects only within the host, because the headers are for that host, and only if they keep the method.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > maxRedirects || r.Method != http.MethodPost || r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// nodeQuery is one operation for a node.
type nodeQuery struct {
	Query     string                     `json:"query"`
	Variables map[string]json.RawMessage `json:"variables,omitempty"`
	// aggregates is set if it requests aggregations beside the number of documents.
	aggregates bool
}

// call queries a remote, within Config.Timeout. Errors are *core.Error and do not reveal the address of the remote:
// CodeUnavailable and CodeOverloaded if a retry may help, CodeUnauthenticated, CodeForbidden, CodeTooLarge and CodeUpstream for
// errors of the remote, and CodeInternal.
func (c *client) call(ctx context.Context, r *remote, header http.Header, q nodeQuery) (reply, error) {
	call, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, errTimeout)
	defer cancel()
	select {
	case r.inFlight <- struct{}{}:
		defer func() { <-r.inFlight }()
	case <-call.Done():
		return reply{}, c.callError(ctx, call, call.Err(), "has too many calls in flight")
	}
	body, err := json.Marshal(q)
	if err != nil {
		return reply{}, core.WrapError(core.CodeInternal, "the query could not be encoded", err)
	}
	req, err := http.NewRequestWithContext(call, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return reply{}, core.WrapError(core.CodeInternal, "the query could not be sent", err)
	}
	req.Header = header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "tutti")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return reply{}, c.callError(ctx, call, err, "could not be reached")
	}
	defer res.Body.Close()
	if err := errorOfStatus(res.StatusCode); err != nil {
		return reply{}, err
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, c.cfg.MaxBytes+1))
	switch {
	case err != nil:
		return reply{}, c.callError(ctx, call, err, "aborted its response")
	case int64(len(raw)) > c.cfg.MaxBytes:
		return reply{}, core.NewError(core.CodeTooLarge, fmt.Sprintf("responded with more than %d bytes", c.cfg.MaxBytes))
	}
	answer, ok := replyOf(raw)
	if !ok {
		return reply{}, core.NewError(core.CodeUnavailable, fmt.Sprintf("responded with status %d and something that is not GraphQL", res.StatusCode))
	}
	return answer, nil
}

// errorOfStatus returns the error of a conclusive status, nil for any other: GraphQL returns its own errors, also with status
// 400.
func errorOfStatus(status int) error {
	fail := func(code core.Code, format string) error {
		return core.NewError(code, fmt.Sprintf(format, status))
	}
	switch {
	case status == http.StatusUnauthorized:
		return fail(core.CodeUnauthenticated, "rejected the query with status %d: credentials are missing or invalid")
	case status == http.StatusForbidden:
		return fail(core.CodeForbidden, "rejected the query with status %d: the caller is not permitted")
	case status == http.StatusTooManyRequests:
		return fail(core.CodeOverloaded, "responded with status %d: it is overloaded")
	case status >= http.StatusInternalServerError:
		return fail(core.CodeUnavailable, "responded with status %d")
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		return fail(core.CodeUpstream, "responded with status %d, and redirects to other hosts are not followed")
	default:
		return nil
	}
}

// callError returns the error of a call without a response.
func (c *client) callError(ctx, call context.Context, err error, otherwise string) error {
	// The text of a url.Error contains the whole address.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	switch {
	case ctx.Err() != nil:
		return core.WrapError(core.CodeUnavailable, "the request ended before it responded", ctx.Err())
	case errors.Is(context.Cause(call), errTimeout):
		return core.WrapError(core.CodeUnavailable, "timed out after "+c.cfg.Timeout.String(), errors.Join(errTimeout, err))
	default:
		return core.WrapError(core.CodeUnavailable, otherwise, err)
	}
}
