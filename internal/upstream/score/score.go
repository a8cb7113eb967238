// Package score queries a Score server for the objects that it stores.
package score

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/base/retry"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/upstream"
)

const (
	// tries is the maximum number of requests for an object while Score does not answer.
	tries = 3
	// firstDelay and maxDelay bound the delays between tries.
	firstDelay, maxDelay = 200 * time.Millisecond, 2 * time.Second
	// maxAnswer bounds an answer in bytes: it lists the parts of an object, at most 10,000 in S3.
	maxAnswer = 16 << 20
	// downloadQuery requests the description of a whole object. Without the URLs of its parts Score returns it for an unpublished
	// analysis too.
	downloadQuery = "offset=0&length=-1&exclude-urls=true"
)

// Error ids that Song's clients know.
const (
	idService = "storage.service.error"
	idInvalid = "invalid.storage.download.response"
)

var md5Pattern = regexp.MustCompile(`^[0-9a-fA-F]{32}$`)

// Config configures a Client. Only URL is required.
type Config struct {
	// URL is the base of Score's paths.
	URL string
	// Token is sent as a bearer token; empty for none.
	Token string
	// Timeout bounds connecting and receiving the headers, and each read of a body. Default 30 s.
	Timeout time.Duration
	// UserAgent is the User-Agent header. Default "tutti".
	UserAgent string
	TLS       tlsconfig.Files
}

// Client queries one Score server. It is safe for concurrent use.
type Client struct {
	calls *upstream.Client
	files tlsconfig.Files
}

// New returns a Client without connecting. CodeInvalid for a bad Config.
func New(cfg Config) (*Client, error) {
	calls, err := upstream.NewClient(upstream.Config{URL: cfg.URL, Token: cfg.Token, Timeout: cfg.Timeout, UserAgent: cfg.UserAgent, TLS: cfg.TLS})
	if err != nil {
		return nil, &core.Error{Code: core.CodeInvalid, Message: "schemas.storage is not valid: " + core.MessageOf(err), Hint: core.HintOf(err)}
	}
	return &Client{calls, cfg.TLS}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.calls.Close() }

// Object returns an object, core.ErrObjectAbsent when Score does not have it. Connection errors and 5xx responses are retried. Other
// errors are *core.Error with ErrorID storage.service.error or invalid.storage.download.response: CodeUnavailable and CodeOverloaded
// when Score does not answer, CodeUpstream for a response that a retry will not change.
func (c *Client) Object(ctx context.Context, id string) (datamodel.StoredObject, error) {
	for n := range tries {
		o, err := c.object(ctx, id)
		switch {
		case err == nil, errors.Is(err, core.ErrObjectAbsent):
			return o, err
		case n+1 == tries, !core.Retryable(err), retry.Sleep(ctx, retry.Delay(n, firstDelay, maxDelay)) != nil:
			return datamodel.StoredObject{}, serviceError(err)
		}
	}
	return datamodel.StoredObject{}, nil // not reached
}

// Probe requests an object that does not exist, once. Errors are those of Object.
func (c *Client) Probe(ctx context.Context) error {
	if _, err := c.object(ctx, "00000000-0000-0000-0000-000000000000"); err != nil && !errors.Is(err, core.ErrObjectAbsent) {
		return err
	}
	return nil
}

// object makes one attempt: it requests whether the object was uploaded, then its size and MD5 sum.
func (c *Client) object(ctx context.Context, id string) (datamodel.StoredObject, error) {
	uploaded, err := c.get(ctx, "", "upload", id)
	if err != nil {
		return datamodel.StoredObject{}, err
	}
	switch strings.ToLower(strings.TrimSpace(uploaded)) {
	case "true":
	case "false":
		return datamodel.StoredObject{}, core.ErrObjectAbsent
	default:
		return datamodel.StoredObject{}, core.NewError(core.CodeUpstream, "its response for an object is neither true nor false")
	}
	text, err := c.get(ctx, downloadQuery, "download", id)
	if err != nil {
		return datamodel.StoredObject{}, err
	}
	return parseObject(text, id)
}

// get returns the body of a response.
func (c *Client) get(ctx context.Context, query string, segments ...string) (string, error) {
	answer, err := c.calls.Get(ctx, query, segments...)
	c.record(err)
	if err != nil {
		return "", err
	}
	defer answer.Close()
	body, err := io.ReadAll(io.LimitReader(answer, maxAnswer+1))
	if len(body) > maxAnswer {
		return "", core.NewError(core.CodeUpstream, "its answer is too large")
	}
	return string(body), err
}

// record records for /ready whether Score answered with a status that a retry will not change.
func (c *Client) record(err error) {
	status := http.StatusOK
	if e, answered := errors.AsType[*upstream.StatusError](err); answered {
		status = e.Status
	} else if err != nil {
		return // no answer
	}
	c.files.Answered(tlsconfig.Answer{Status: status, Credentials: c.files.Name("token"), Address: c.files.Name("url")},
		func(ctx context.Context) { _ = c.Probe(ctx) }) // get records its outcome
}

// parseObject parses Score's description of an object.
func parseObject(text, id string) (datamodel.StoredObject, error) {
	answer := gjson.Parse(text)
	size, md5 := answer.Get("objectSize"), answer.Get("objectMd5")
	valid := gjson.Valid(text) && answer.Get("objectId").Str == id &&
		size.Type == gjson.Number && !strings.ContainsAny(size.Raw, ".eE") && size.Int() > 0
	if valid && md5.Type != gjson.Null && md5.Raw != `""` {
		valid = md5.Type == gjson.String && md5Pattern.MatchString(md5.Str)
	}
	if !valid {
		return datamodel.StoredObject{}, &core.Error{
			Code: core.CodeUpstream, ErrorID: idInvalid, Message: "its description of an object is not valid",
			Hint: "check schemas.storage.url, and the object in the storage",
		}
	}
	return datamodel.StoredObject{Size: size.Int(), MD5: md5.Str}, nil
}

// serviceError marks err, a *core.Error, as an error of Score and adds a hint.
func serviceError(err error) error {
	e := &core.Error{
		Code: core.CodeOf(err), ErrorID: idService, Message: "requesting the files from the storage: " + core.MessageOf(err),
		Hint: "nothing was published; try again later", RetryAfter: core.RetryAfterOf(err), Err: err,
	}
	if cause, ok := errors.AsType[*core.Error](err); ok && cause.ErrorID != "" {
		e.ErrorID = cause.ErrorID
	}
	if hint := core.HintOf(err); hint != "" {
		e.Hint = "nothing was published; " + hint
	}
	if e.Code == core.CodeUpstream && e.ErrorID != idInvalid { // the hint of a status names the keys of a repository
		e.Hint = "nothing was published; check schemas.storage.url and schemas.storage.token"
	}
	return e
}
