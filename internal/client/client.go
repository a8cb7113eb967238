package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"tutti/internal/core"
)

const (
	// maxAnswerBytes bounds an answer that is read whole: a job may have many thousands of organizations.
	maxAnswerBytes = 256 << 20
	maxRedirects   = 10

	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
	typeEvents = "text/event-stream"
)

// Client asks one server. Make it with New. Its methods may be called side by side. Their errors are *core.Error: those of
// the server with the code, the message, the hint, the error id and the violations of its problem and an *AnswerError
// below; CodeUnavailable where the server does not answer; CodeInvalid for an id that cannot be part of a path.
type Client struct {
	cfg  Config
	base *url.URL
	http *http.Client
}

// New makes a Client. CodeInvalid when the server's address, the token or the CA file cannot be used. It asks nothing yet.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	base, err := baseOf(cfg.Server)
	if err != nil {
		return nil, err
	}
	if cfg.HTTP == nil {
		if cfg.HTTP, err = trusting(cfg.CAFile); err != nil {
			return nil, err
		}
	}
	own := *cfg.HTTP
	own.CheckRedirect = sameOrigin
	return &Client{cfg: cfg, base: base, http: &own}, nil
}

// Server returns the address that is asked.
func (c *Client) Server() string { return c.base.String() }

// sameOrigin follows a redirect only to the same scheme, host and port, and only where the method stays: net/http would
// take the token to another port or a sub-domain, and make a GET of a trigger. Any other redirect is the answer.
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
	// path is the path below the base path, its segments escaped.
	path  string
	query url.Values
	// accept is what the answer may be, typeJSON by default.
	accept string
	// lastEventID resumes a stream of events.
	lastEventID string
	// body is JSON; nil sends none.
	body []byte
}

// pathOf joins segments: a literal one, then the id behind it, which is checked and escaped, and so on.
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

// send makes a call and returns an answer of 2xx, whose body the caller closes.
func (c *Client) send(ctx context.Context, call call) (*http.Response, error) {
	target := c.base.String() + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	var body io.Reader
	if call.body != nil {
		body = bytes.NewReader(call.body)
	}
	req, err := http.NewRequestWithContext(ctx, call.method, target, body)
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "making the request", err)
	}
	if call.accept == "" {
		call.accept = typeJSON
	}
	req.Header.Set("Accept", call.accept)
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	if call.body != nil {
		req.Header.Set("Content-Type", typeJSON)
	}
	if c.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	}
	if call.lastEventID != "" {
		req.Header.Set("Last-Event-ID", call.lastEventID)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unanswered(ctx, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refused(resp)
}

// ask makes a call within the time-out and decodes the JSON of its answer into out. It returns that JSON as it came.
func (c *Client) ask(ctx context.Context, call call, out any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	return c.read(ctx, call, out)
}

// read is ask without the time-out.
func (c *Client) read(ctx context.Context, call call, out any) (json.RawMessage, error) {
	resp, err := c.send(ctx, call)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil, nil
	}
	if mediaType(resp) != typeJSON {
		return nil, c.strange(resp, "answers with "+describeType(resp)+" instead of JSON")
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, c.unanswered(ctx, err)
	}
	if len(body) > maxAnswerBytes {
		return nil, c.strange(resp, fmt.Sprintf("answers with more than %d bytes", maxAnswerBytes))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return nil, c.strange(resp, "answers with JSON that is not understood: "+err.Error())
	}
	return body, nil
}

// unanswered makes the error of a call that got no answer, or not all of it.
func (c *Client) unanswered(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("asking tutti at %s: %w", c.base, cause)
	}
	// Its text repeats the method and the URL.
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return &core.Error{
			Code: core.CodeUnavailable, Message: fmt.Sprintf("the certificate of tutti at %s is not valid here", c.base), Err: err,
			Hint: "give the PEM file of its authority with --ca-file or TUTTI_CA_FILE, and the server by a name that the certificate is for",
		}
	}
	return &core.Error{
		Code: core.CodeUnavailable, Message: fmt.Sprintf("tutti at %s does not answer", c.base),
		Hint: "is it running (tutti serve)? another address is given with --server or TUTTI_SERVER", Err: err,
	}
}

func mediaType(resp *http.Response) string {
	parsed, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return parsed
}

// describeType names the type of an answer in a message.
func describeType(resp *http.Response) string {
	if t := mediaType(resp); t != "" {
		return t
	}
	return "an unknown type"
}
