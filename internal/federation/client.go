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

// errTimeout is why a call ended that took too long.
var errTimeout = errors.New("the time for the call was over")

// maxRedirects is how often one call is redirected at most.
const maxRedirects = 3

// client speaks GraphQL with remotes.
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

// close ends the connections that are idle.
func (c *client) close() { c.http.CloseIdleConnections() }

// checkRedirect lets a call be redirected within its host alone, as its headers are meant for that, and only when it stays the call
// that it is.
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
	// aggregates is set when it asks for aggregations beside the number of documents.
	aggregates bool
}

// call asks a remote, within Config.Timeout. Errors are *core.Error and say nothing of where the remote is: CodeUnavailable and
// CodeOverloaded for what another call may mend, CodeUnauthenticated, CodeForbidden, CodeTooLarge and CodeUpstream for what is
// the remote's to mend, and CodeInternal.
func (c *client) call(ctx context.Context, r *remote, header http.Header, q nodeQuery) (reply, error) {
	call, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, errTimeout)
	defer cancel()
	select {
	case r.inFlight <- struct{}{}:
		defer func() { <-r.inFlight }()
	case <-call.Done():
		return reply{}, c.callError(ctx, call, call.Err(), "has too many questions to answer")
	}
	body, err := json.Marshal(q)
	if err != nil {
		return reply{}, core.WrapError(core.CodeInternal, "the question could not be written", err)
	}
	req, err := http.NewRequestWithContext(call, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return reply{}, core.WrapError(core.CodeInternal, "the question could not be sent", err)
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
		return reply{}, c.callError(ctx, call, err, "broke off its answer")
	case int64(len(raw)) > c.cfg.MaxBytes:
		return reply{}, core.NewError(core.CodeTooLarge, fmt.Sprintf("answered with more than %d bytes", c.cfg.MaxBytes))
	}
	answer, ok := replyOf(raw)
	if !ok {
		return reply{}, core.NewError(core.CodeUnavailable, fmt.Sprintf("answered with status %d and something that is not GraphQL", res.StatusCode))
	}
	return answer, nil
}

// errorOfStatus is the error of a status that says all, nil for any other: GraphQL has its own errors, with status 400 too.
func errorOfStatus(status int) error {
	fail := func(code core.Code, format string) error {
		return core.NewError(code, fmt.Sprintf(format, status))
	}
	switch {
	case status == http.StatusUnauthorized:
		return fail(core.CodeUnauthenticated, "refused the question with status %d: it wants to know who asks")
	case status == http.StatusForbidden:
		return fail(core.CodeForbidden, "refused the question with status %d: who asks may not")
	case status == http.StatusTooManyRequests:
		return fail(core.CodeOverloaded, "answered with status %d: it has too much to do")
	case status >= http.StatusInternalServerError:
		return fail(core.CodeUnavailable, "answered with status %d")
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		return fail(core.CodeUpstream, "answered with status %d, and redirects to other places are not followed")
	default:
		return nil
	}
}

// callError is the error of a call without an answer.
func (c *client) callError(ctx, call context.Context, err error, otherwise string) error {
	// The text of a url.Error has the whole address in it.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	switch {
	case ctx.Err() != nil:
		return core.WrapError(core.CodeUnavailable, "was not waited for any longer", ctx.Err())
	case errors.Is(context.Cause(call), errTimeout):
		return core.WrapError(core.CodeUnavailable, "timed out after "+c.cfg.Timeout.String(), errors.Join(errTimeout, err))
	default:
		return core.WrapError(core.CodeUnavailable, otherwise, err)
	}
}
