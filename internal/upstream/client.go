package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	tracing "tutti/internal/base/span"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

const (
	defaultTimeout     = 30 * time.Second
	defaultConcurrency = 4
	maxErrorBody       = 16 << 10
	readBuffer         = 32 << 10
	// messageCut is the message of a response that ended early (ErrTruncated).
	messageCut = "the upstream's answer was cut short"
)

// Config configures a Client. Only URL is required.
type Config struct {
	// URL is the base that every path is appended to: http or https, without credentials, query or fragment.
	URL string
	// Token is sent as a bearer token; Username and Password as basic auth. Empty: none. Setting both is an error.
	Token              string
	Username, Password string
	// TLS names the files of connections with https.
	TLS tlsconfig.Files
	// Timeout bounds connecting and receiving the headers together, and then each read of the body, not the time spent in a page's
	// callback. Default 30 s.
	Timeout time.Duration
	// Concurrency is the number of idle connections to keep. Default 4.
	Concurrency int
	// UserAgent is the User-Agent header. Default "tutti".
	UserAgent string
	// Memory bounds the bytes of large records; nil means unbounded.
	Memory core.OwnedMemory
	// MaxRecordBytes bounds a record; of a larger one only Record.TooLarge is returned. Default core.DefaultMaxRecordBytes.
	MaxRecordBytes int
	// Repository is the code of the repository, the label of the Metrics and the holder of the Memory.
	Repository string
	// Metrics may be nil.
	Metrics *Metrics
	// Transport replaces the client's own connections, for tests. Client never follows redirects.
	Transport http.RoundTripper
	// Format describes the pages and records of the protocol; its client sets it.
	Format Format
}

// Client sends requests to one upstream. It is safe for concurrent use.
type Client struct {
	base *url.URL
	http *http.Client
	cfg  Config
	// scanners reuses the Scanners, and their buffers.
	scanners sync.Pool
}

// NewClient returns a Client. CodeInvalid for a bad Config.
func NewClient(cfg Config) (*Client, error) {
	base, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	transport := cfg.Transport
	if transport == nil {
		secure, err := tlsconfig.New(cfg.TLS)
		if err != nil {
			return nil, err
		}
		transport = secure.RoundTripper(newTransport(cfg.Concurrency))
	}
	seed := rand.Uint64()
	return &Client{
		scanners: sync.Pool{New: func() any {
			s := NewScanner(cfg.Format, cfg.MaxRecordBytes)
			s.seed = seed
			return s
		}},

		base: base,
		cfg:  cfg,
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// validate sets the defaults of c and returns its first error.
func (c *Config) validate() (*url.URL, error) {
	base, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return nil, core.NewError(core.CodeInvalid, "the repository's url is not a valid URL")
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "":
		return nil, core.NewError(core.CodeInvalid, "the repository's url must start with http:// or https:// and a host")
	case base.User != nil:
		return nil, core.NewError(core.CodeInvalid, "the repository's url must not contain credentials; use username and password")
	case base.RawQuery != "", base.Fragment != "":
		return nil, core.NewError(core.CodeInvalid, "the repository's url must not have a query or a fragment")
	case c.Token != "" && c.Username != "":
		return nil, core.NewError(core.CodeInvalid, "a repository takes a token or a username, not both")
	case strings.ContainsAny(c.Token, "\r\n\x00"):
		return nil, core.NewError(core.CodeInvalid, "the repository's token must not contain line breaks")
	case c.Timeout < 0:
		return nil, core.NewError(core.CodeInvalid, "the repository's timeout must not be negative")
	case c.Concurrency < 0:
		return nil, core.NewError(core.CodeInvalid, "the repository's concurrency must not be negative")
	case c.MaxRecordBytes < 0:
		return nil, core.NewError(core.CodeInvalid, "the maximum size of a record must not be negative")
	}
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	c.UserAgent = cmp.Or(c.UserAgent, "tutti")
	return base, nil
}

// newTransport returns the connections of one upstream. net/http requests and decompresses compressed responses.
func newTransport(idle int) *http.Transport {
	dialer := &net.Dialer{KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		ReadBufferSize:         readBuffer,
	}
}

// Close closes idle connections. Calls in flight go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get requests the path of segments, each escaped into one path segment, with a raw query without its question mark. The Response
// of status 200 must be closed. Errors are *core.Error: CodeInvalid for a segment that is empty, "." or "..", CodeOverloaded,
// CodeUnavailable, and CodeUpstream for errors that a retry cannot fix; those of a status contain a *StatusError.
func (c *Client) Get(ctx context.Context, query string, segments ...string) (*Response, error) {
	return c.send(ctx, nil, query, segments)
}

// send is Get, or for a JSON body that is not nil the same by POST.
func (c *Client) send(ctx context.Context, body []byte, query string, segments []string) (*Response, error) {
	target, err := c.target(query, segments)
	if err != nil {
		return nil, err
	}
	callCtx, cancel := context.WithCancelCause(ctx)
	answer := &Response{client: c, callerErr: ctx.Err, cancel: cancel}
	if c.cfg.Memory != nil {
		answer.acquire = func(n int64) (func(), error) { return c.cfg.Memory.AcquireFor(ctx, c.cfg.Repository, n) }
	}
	answer.cause = func() error { return context.Cause(callCtx) }
	answer.readTimer = time.AfterFunc(c.cfg.Timeout, func() { cancel(ErrTimeout) })
	begin := time.Now()
	err = answer.open(callCtx, target, body)
	answer.readTimer.Stop()
	answer.spent = time.Since(begin)
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// target returns the URL. Path holds the decoded segments and RawPath the encoded ones, so that net/url sends RawPath unchanged.
func (c *Client) target(query string, segments []string) (*url.URL, error) {
	var path, raw strings.Builder
	path.WriteString(strings.TrimRight(c.base.Path, "/"))
	raw.WriteString(strings.TrimRight(c.base.EscapedPath(), "/"))
	for _, segment := range segments {
		if segment == "" || segment == "." || segment == ".." {
			return nil, core.NewError(core.CodeInvalid, "an id must not be empty or a relative path segment")
		}
		path.WriteString("/" + segment)
		// This escapes more than url.PathEscape does, so that no server takes a part of an id for a delimiter.
		raw.WriteString("/" + strings.ReplaceAll(url.QueryEscape(segment), "+", "%20"))
	}
	target := *c.base
	target.Path, target.RawPath, target.RawQuery = path.String(), raw.String(), query
	return &target, nil
}

func (c *Client) authorize(req *http.Request) {
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	switch {
	case c.cfg.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	case c.cfg.Username != "":
		req.SetBasicAuth(c.cfg.Username, c.cfg.Password)
	}
}

// Response is the body of a response with status 200. Config.Timeout bounds each Read, but not the time between two Reads. It is not
// safe for concurrent use.
type Response struct {
	// Length is the length of the body in bytes, -1 when unknown.
	Length int64

	client    *Client
	callerErr func() error // returns the error of the caller's context
	cause     func() error // returns why the call's own context ended
	cancel    context.CancelCauseFunc
	readTimer *time.Timer
	body      io.ReadCloser
	// acquire acquires memory, nil when unbounded; free releases what Reserve acquired, nil for nothing.
	acquire func(n int64) (release func(), err error)
	free    func()
	// single is set for a response of Client.Record. waited is the time spent in Reserve. reserved is the number of those bytes
	// released by free that were acquired before the request, or by the Reserve that took too long.
	single   bool
	waited   time.Duration
	reserved int64
	spent    time.Duration
	failed   bool
	closed   bool
}

// open sends the request and classifies the status. It releases its resources when it returns an error.
func (a *Response) open(ctx context.Context, target *url.URL, body []byte) error {
	begin := time.Now()
	method, content := http.MethodGet, io.Reader(nil)
	if body != nil {
		method, content = http.MethodPost, bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		a.cancel(nil)
		return core.WrapError(core.CodeInternal, "the request to the upstream could not be created", err)
	}
	req.URL = target
	a.client.authorize(req)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	tracing.Inject(ctx, req.Header)
	res, err := a.client.http.Do(req)
	if err != nil {
		message := "the upstream could not be reached"
		reason, hint := a.client.cfg.TLS.Failure(err)
		if hint != "" {
			message += ": " + reason
		}
		err = a.classify(err, message)
		if secure, _ := a.client.cfg.TLS.TLSFailure(err); secure != "" && a.client.cfg.TLS.Key != "" {
			err = &core.Error{Code: core.CodeUnavailable, Message: message, Hint: hint, Err: errors.Unwrap(err)}
		}
		a.observe(time.Since(begin), false)
		a.cancel(nil)
		return err
	}
	if res.StatusCode == http.StatusOK {
		a.body, a.Length = res.Body, res.ContentLength
		return nil
	}
	defer a.cancel(nil)
	defer res.Body.Close()
	said, readErr := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	alive := res.StatusCode < http.StatusInternalServerError
	a.observe(time.Since(begin), alive && readErr == nil)
	if readErr != nil && res.StatusCode < http.StatusInternalServerError {
		return a.classify(errors.Join(ErrTruncated, readErr), messageCut)
	}
	return statusError(res.StatusCode, res.Header, said, time.Now())
}

// Read implements io.Reader. Its errors are io.EOF and *core.Error with CodeUnavailable.
func (a *Response) Read(p []byte) (int, error) {
	begin := time.Now()
	a.readTimer.Reset(a.client.cfg.Timeout)
	n, err := a.body.Read(p)
	a.readTimer.Stop()
	a.spent += time.Since(begin)
	if err == nil || err == io.EOF {
		return n, err
	}
	a.failed = true
	return n, a.classify(errors.Join(ErrTruncated, err), messageCut)
}

// Reserve replaces the memory reserved before by n bytes and waits until they are available: a waiting Response holds nothing, so
// that two cannot wait for each other.
func (a *Response) Reserve(n int64) (err error) {
	if a.reserved > 0 && n <= a.reserved {
		return nil
	}
	a.release()
	a.reserved = 0
	if a.acquire == nil || n <= 0 {
		return nil
	}
	begin := time.Now()
	if a.free, err = a.acquire(n); err != nil {
		return err
	}
	if a.waited += time.Since(begin); a.single && a.waited > maxMemoryWait {
		a.reserved = n
		return errWaitedTooLong
	}
	return nil
}

// release releases the reserved memory.
func (a *Response) release() {
	if free := a.DetachMemory(); free != nil {
		free()
	}
}

// DetachMemory returns the function that releases the reserved memory, which Close then does not release; nil when there is none.
func (a *Response) DetachMemory() (release func()) {
	release, a.free = a.free, nil
	return release
}

// Close ends the call, releases the memory and records the upstream's time. It may be called twice.
func (a *Response) Close() {
	if a.closed {
		return
	}
	a.closed = true
	a.release()
	a.readTimer.Stop()
	_ = a.body.Close() // the relevant part has been read
	a.cancel(nil)
	a.observe(a.spent, !a.failed)
}

// MarkFailed records that the body violated the protocol, so that the upstream counts as down.
func (a *Response) MarkFailed() { a.failed = true }

// classify returns the error of an interrupted call. message describes a broken connection.
func (a *Response) classify(err error, message string) error {
	switch {
	case a.callerErr() != nil:
		return core.WrapError(core.CodeUnavailable, "the call to the upstream was canceled", a.callerErr())
	case errors.Is(a.cause(), ErrTimeout):
		return core.WrapError(core.CodeUnavailable, "the upstream did not answer in time", ErrTimeout)
	default:
		return core.WrapError(core.CodeUnavailable, message, err)
	}
}

// observe records the duration of the call, unless its caller canceled it; up is false without a complete response.
func (a *Response) observe(took time.Duration, up bool) {
	if a.callerErr() == nil {
		a.client.cfg.Metrics.Observe(a.client.cfg.Repository, took, up)
	}
}
