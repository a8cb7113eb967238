package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"tutti/internal/core"
)

const (
	// maxResponseBytes bounds a response that is read completely: a job may have many thousands of organizations.
	maxResponseBytes = 256 << 20
	maxRedirects     = 10

	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
	typeText   = "text/plain"
	typeEvents = "text/event-stream"
)

// transport sends requests to one server and turns its error responses into errors.
type transport struct {
	cfg  Config
	base *url.URL
	http *http.Client
}

// sameOrigin follows a redirect only to the same scheme, host and port and with the same method: net/http would send the token to
// another port or a sub-domain, and turn a POST into a GET. Any other redirect is returned as the response.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0]
	if req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host || req.Method != first.Method ||
		len(via) >= maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// call is one request to the server.
type call struct {
	method string
	// path is the path below the base path, with escaped segments.
	path  string
	query url.Values
	// accept is the accepted media type, typeJSON by default.
	accept string
	// lastEventID resumes a stream of events.
	lastEventID string
	// body is JSON, unless contentType names another media type; nil for none.
	body        []byte
	contentType string
}

// pathOf joins pairs of a literal segment and an id, which is checked and escaped.
func pathOf(pairs ...string) (string, error) {
	var path strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		literal, value := pairs[i], pairs[i+1]
		what := literal
		switch literal {
		case pathJobs, pathDeadLetters, pathKeys, pathIntrospection:
			what = "id"
		case pathSchemas:
			what = "name"
		}
		if err := core.ValidID(what, value); err != nil {
			return "", err
		}
		path.WriteString("/" + literal + "/" + url.PathEscape(value))
	}
	return path.String(), nil
}

// send makes a call and returns a 2xx response, whose body the caller must close.
func (t *transport) send(ctx context.Context, call call) (*http.Response, error) {
	target := t.base.String() + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	var body io.Reader
	if call.body != nil {
		body = bytes.NewReader(call.body)
	}
	req, err := http.NewRequestWithContext(ctx, call.method, target, body)
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "creating the request", err)
	}
	if call.accept == "" {
		call.accept = typeJSON
	}
	req.Header.Set("Accept", call.accept)
	req.Header.Set("User-Agent", t.cfg.UserAgent)
	if call.body != nil {
		req.Header.Set("Content-Type", cmp.Or(call.contentType, typeJSON))
	}
	if t.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+t.cfg.Token)
	}
	if call.lastEventID != "" {
		req.Header.Set("Last-Event-ID", call.lastEventID)
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return nil, t.connectionError(ctx, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, t.responseError(resp)
}

// do makes a call within Config.Timeout and decodes the JSON response into out. It returns the JSON as received.
func (t *transport) do(ctx context.Context, call call, out any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	return t.doWithoutTimeout(ctx, call, out)
}

// doWithoutTimeout is do without the timeout.
func (t *transport) doWithoutTimeout(ctx context.Context, call call, out any) (json.RawMessage, error) {
	resp, err := t.send(ctx, call)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil, nil
	}
	if mediaType(resp) != typeJSON {
		return nil, t.unexpectedResponse(resp, "returned "+describeType(resp)+" instead of JSON")
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes+1))
	if err != nil {
		return nil, t.connectionError(ctx, err)
	}
	if len(body) > maxResponseBytes {
		return nil, t.unexpectedResponse(resp, fmt.Sprintf("returned more than %d bytes", maxResponseBytes))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return nil, t.unexpectedResponse(resp, "returned JSON with an unexpected format: "+err.Error())
	}
	return body, nil
}

// connectionError returns the error of a call without a complete response.
func (t *transport) connectionError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("calling tutti at %s: %w", t.base, cause)
	}
	// The text of a url.Error repeats the method and the URL.
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return &core.Error{
			Code: core.CodeUnavailable, Message: fmt.Sprintf("the certificate of tutti at %s cannot be verified", t.base), Err: err,
			Hint: "set the PEM file of its authority with --ca-file or TUTTI_CA_FILE, and use a host name that the certificate is valid for",
		}
	}
	return &core.Error{
		Code: core.CodeUnavailable, Message: fmt.Sprintf("tutti at %s does not answer", t.base),
		Hint: "check that it is running (tutti serve); set another address with --server or TUTTI_SERVER", Err: err,
	}
}

func mediaType(resp *http.Response) string {
	parsed, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return parsed
}

// describeType describes a response's media type for a message.
func describeType(resp *http.Response) string {
	if kind := mediaType(resp); kind != "" {
		return kind
	}
	return "an unknown type"
}

// queryOf returns a query of names and values, without empty values.
func queryOf(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// numberOf formats n, "" for 0.
func numberOf(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// flagOf returns the query value of a flag, "" for false, the default of every flag.
func flagOf(set bool) string {
	if set {
		return "true"
	}
	return ""
}
