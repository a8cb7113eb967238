package federation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tutti/internal/base/span"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

// errTimeout is the cause of a call that timed out.
var errTimeout = errors.New("the call timed out")

// maxRedirects is the maximum number of redirects of one call.
const maxRedirects = 3

// newHTTPClient returns the client of one remote. Files that cannot be used are errors of its calls, so that they affect no other node.
func newHTTPClient(files tlsconfig.Files, cfg Config) *http.Client {
	transport := cfg.Transport
	if transport == nil {
		transport = tlsconfig.NewUnread(files).RoundTripper(&http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    cfg.MaxInFlight,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 256 << 10,
		})
	}
	return &http.Client{Transport: transport, CheckRedirect: checkRedirect}
}

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
func (c Config) call(ctx context.Context, r *remote, header http.Header, q nodeQuery) (reply, error) {
	call, cancel := context.WithTimeoutCause(ctx, c.Timeout, errTimeout)
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
	span.Inject(ctx, req.Header)
	res, err := r.http.Do(req)
	if err != nil {
		return reply{}, c.callError(ctx, call, err, "could not be reached")
	}
	defer res.Body.Close()
	if err := errorOfStatus(res.StatusCode); err != nil {
		return reply{}, err
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, c.MaxBytes+1))
	switch {
	case err != nil:
		return reply{}, c.callError(ctx, call, err, "aborted its response")
	case int64(len(raw)) > c.MaxBytes:
		return reply{}, core.NewError(core.CodeTooLarge, fmt.Sprintf("responded with more than %d bytes", c.MaxBytes))
	}
	answer, ok := replyOf(raw)
	if !ok {
		return reply{}, core.NewError(core.CodeUnavailable, fmt.Sprintf("responded with status %d and something that is not GraphQL", res.StatusCode))
	}
	return answer, nil
}

// errorOfStatus returns the error of a status that needs no body, nil for any other: GraphQL servers return errors in the body, also
// with status 400.
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

// callError returns the error of a call without a response. Its message is for clients; explained adds the reason.
func (c Config) callError(ctx, call context.Context, err error, otherwise string) error {
	// The text of a url.Error contains the whole address.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	switch {
	case ctx.Err() != nil:
		return core.WrapError(core.CodeUnavailable, "the request was cancelled before the node responded", ctx.Err())
	case errors.Is(context.Cause(call), errTimeout):
		return core.WrapError(core.CodeUnavailable, "timed out after "+c.Timeout.String(), errors.Join(errTimeout, err))
	default:
		return core.WrapError(core.CodeUnavailable, otherwise, connectionError{err})
	}
}

// connectionError is why a remote could not be reached, or aborted its response.
type connectionError struct{ error }

func (e connectionError) Unwrap() error { return e.error }

// explained returns an error of call for the log and the operator: with the reason and the key to change, which clients do not see.
func (r *remote) explained(err error) error {
	e, ok := errors.AsType[connectionError](err)
	if !ok {
		return err
	}
	reason, hint := r.files.Failure(e.error)
	return &core.Error{Code: core.CodeOf(err), Message: core.MessageOf(err) + ": " + reason, Hint: hint, Err: e}
}

// record records for /ready whether a node takes queries; files has recorded already whether it can be reached.
func (r *remote) record(err error) {
	var reason string
	if _, unreached := errors.AsType[connectionError](err); err != nil && !unreached && !errors.Is(err, errTimeout) {
		reason = core.MessageOf(err)
	}
	r.files.Refused("", reason, cmp.Or(core.HintOf(err), "check the node and "+r.files.Name("graphqlUrl")), nil)
}

// isHopHeader reports whether a header must never be forwarded: headers of one connection (RFC 9110, section 7.6.1), and those
// that this process sets itself.
func isHopHeader(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Host", "Content-Length", "Content-Type", "Content-Encoding", "Accept-Encoding", "Accept", "Expect":
		return true
	default:
		return false
	}
}

// forwardedHeaders returns the headers of a client's request with the given names. Headers that the client lists in Connection
// are not forwarded.
func forwardedHeaders(names []string, from http.Header) http.Header {
	h := http.Header{}
	if len(names) == 0 || len(from) == 0 {
		return h
	}
	connection := strings.Split(strings.Join(from.Values("Connection"), ","), ",")
	for _, name := range names {
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		listed := slices.ContainsFunc(connection, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), name) })
		if values := from.Values(name); len(values) > 0 && !isHopHeader(name) && !listed {
			h[name] = slices.Clone(values)
		}
	}
	return h
}

// reply is a GraphQL response.
type reply struct {
	Data   map[string]json.RawMessage `json:"data"`
	Errors []replyError               `json:"errors"`
}

// replyError is a GraphQL error.
type replyError struct {
	Message    string      `json:"message"`
	Extensions errorDetail `json:"extensions"`
}

// errorDetail are the codes of an error, each "" if it is not a string.
type errorDetail struct {
	Code, Validation string
}

// UnmarshalJSON reads the known codes: servers put arbitrary values into extensions.
func (d *errorDetail) UnmarshalJSON(raw []byte) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	_ = json.Unmarshal(members["code"], &d.Code) // only strings are codes
	_ = json.Unmarshal(members["validationErrorCode"], &d.Validation)
	return nil
}

// replyOf parses a response; false if it is not GraphQL.
func replyOf(raw []byte) (reply, bool) {
	var r reply
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &r) != nil {
		return reply{}, false
	}
	return r, r.Data != nil || len(r.Errors) > 0
}

// Limits of displayed errors.
const (
	maxShownErrors = 3
	maxShownRunes  = 300
)

// aboutQuery reports whether an error code says that the client's query or credentials are the cause.
func aboutQuery(code string) bool {
	switch code {
	case "BAD_USER_INPUT", "BAD_REQUEST", "GRAPHQL_VALIDATION_FAILED", "GRAPHQL_PARSE_FAILED", "OPERATION_RESOLUTION_FAILURE", "UNAUTHENTICATED", "FORBIDDEN":
		return true
	default:
		return false
	}
}

// isCode reports whether a string has the form of an error code.
func isCode(text string) bool {
	return text != "" && len(text) <= 64 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// publicErrors returns the displayable text of the errors of a remote, "" for none. It omits messages that contain one of the
// secrets.
func (r *reply) publicErrors(secrets []string) string {
	var texts []string
	for _, e := range r.Errors {
		if len(texts) == maxShownErrors {
			texts = append(texts, "and more")
			break
		}
		text := "internal error of the node"
		switch {
		case aboutQuery(e.Extensions.Code) && isSafe(e.Message, secrets):
			text = shortened(e.Message)
		case isCode(e.Extensions.Code):
			text += ": " + e.Extensions.Code
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// errorTexts returns the first messages of the local catalogue, shortened but not filtered.
func (r *reply) errorTexts() string {
	var texts []string
	for _, e := range r.Errors {
		if len(texts) == maxShownErrors {
			break
		}
		texts = append(texts, shortened(e.Message))
	}
	return strings.Join(texts, "; ")
}

// isSafe reports whether a message can be shown: it must not contain addresses or values of the client's headers.
func isSafe(message string, secrets []string) bool {
	if message == "" || strings.Contains(message, "://") {
		return false
	}
	for _, secret := range secrets {
		if secret != "" && strings.Contains(message, secret) {
			return false
		}
	}
	return true
}

// shortened returns the beginning of a string, on one line.
func shortened(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
	if runes := []rune(text); len(runes) > maxShownRunes {
		return string(runes[:maxShownRunes]) + "…"
	}
	return text
}

// introspectionOff reports whether a response says that introspection is not allowed. Apollo and tutti have a code for it; others
// have only a message, or do not know the field.
func (r *reply) introspectionOff() bool {
	for _, e := range r.Errors {
		message := strings.ToLower(e.Message)
		if e.Extensions.Validation == "INTROSPECTION_DISABLED" || strings.Contains(message, "introspection") ||
			e.Extensions.Code == "GRAPHQL_VALIDATION_FAILED" && strings.Contains(message, "__type") {
			return true
		}
	}
	return false
}

// errorOf returns the error of a response without the requested data.
func (r *reply) errorOf(secrets []string) error {
	text := r.publicErrors(secrets)
	if text == "" {
		text = "responded without the requested data"
	}
	code := core.CodeUpstream
	for _, e := range r.Errors {
		switch e.Extensions.Code {
		case "UNAUTHENTICATED":
			code = core.CodeUnauthenticated
		case "FORBIDDEN":
			code = core.CodeForbidden
		}
	}
	return core.NewError(code, text)
}
