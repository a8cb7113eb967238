package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/index/elastic/flavour"
)

const (
	// DefaultMaxResponseBytes is the default of Config.MaxResponseBytes. The cluster's own default limit for requests is 100 MB
	// (http.max_content_length).
	DefaultMaxResponseBytes = 512 << 20
	dialTimeout             = 5 * time.Second
	// idlePerNode is the number of idle connections kept per node.
	idlePerNode = 32
	idleTimeout = time.Minute
	// maxHeaderBytes bounds the header of a response, in bytes.
	maxHeaderBytes = 1 << 20
)

// Client sends single requests to the cluster. Everything but a complete 2xx response is a *core.Error. All methods but Close are safe
// for concurrent use.
type Client struct {
	// Transport sends the requests. Tests may replace it before the first one.
	Transport   *elastictransport.Client
	connections tlsconfig.RoundTripper
	cfg         Config

	// calls is read-locked by every call in progress, so that close waits for them.
	calls  sync.RWMutex
	closed bool

	buffers sync.Pool // *bytes.Buffer

	// engine is the engine when last identified, nil before. epoch counts the events after which another engine may answer: new
	// connections, and responses of a gateway without a node.
	engine atomic.Pointer[identified]
	epoch  atomic.Int64
}

// New returns a client. It does not connect. An error is core.CodeInvalid.
func New(cfg Config) (*Client, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	nodes, err := cfg.nodes()
	if err != nil {
		return nil, err
	}
	secure, err := tlsconfig.New(cfg.TLS)
	if err != nil {
		return nil, err
	}
	client := &Client{cfg: cfg}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	connections := secure.RoundTripper(&http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			client.epoch.Add(1)
			return dialer.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout:   dialTimeout,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   idlePerNode,

		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // responses have a few bytes per document
		WriteBufferSize:        64 << 10,
		ReadBufferSize:         32 << 10,
	})
	var sender http.RoundTripper = connections
	if cfg.AWS != (AWS{}) {
		if sender, err = newSigningTransport(connections, cfg.AWS); err != nil {
			return nil, err
		}
	}
	transport, err := elastictransport.NewClient(
		elastictransport.WithURLs(nodes...),
		elastictransport.WithBasicAuth(cfg.Username, cfg.Password),
		elastictransport.WithAPIKey(cfg.key()),
		elastictransport.WithUserAgent("tutti"),
		elastictransport.WithDisableRetry(),
		elastictransport.WithTransport(sender),
	)
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the client of the index cannot be created", err)
	}
	client.Transport, client.connections = transport, connections
	return client, nil
}

// Close waits for the calls in progress and closes the connections. Later calls of Begin return core.CodeUnavailable.
func (c *Client) Close() error {
	c.calls.Lock()
	defer c.calls.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	defer c.connections.CloseIdleConnections()
	if err := c.Transport.Close(context.Background()); err != nil {
		return core.WrapError(core.CodeInternal, "the connections to the index could not be closed", err)
	}
	return nil
}

// Timeout returns the timeout of a request.
func (c *Client) Timeout() time.Duration { return c.cfg.Timeout }

// Begin starts a call on alias, which may send several requests; end ends it. CodeInvalid when alias is not the name of one index,
// CodeUnavailable when the client is closed.
func (c *Client) Begin(alias string) (end func(), err error) {
	if err := validAlias(alias); err != nil {
		return nil, err
	}
	return c.BeginCall()
}

// BeginCall is Begin for calls that concern no alias.
func (c *Client) BeginCall() (end func(), err error) {
	c.calls.RLock()
	if c.closed {
		c.calls.RUnlock()
		return nil, core.WrapError(core.CodeUnavailable, "the index has been closed", core.ErrIndexUnreachable)
	}
	return c.calls.RUnlock, nil
}

// validAlias rejects empty names, and names that stand for several indices or change the path of a request.
func validAlias(alias string) error {
	if alias == "" {
		return core.NewError(core.CodeInvalid, "the index name is empty")
	}
	bad := func(r rune) bool {
		return strings.ContainsRune(`\/*?"<>|,#: %`, r) || !unicode.IsPrint(r) || unicode.IsUpper(r)
	}
	name := strings.TrimSuffix(strings.TrimSuffix(alias, core.NextSuffix), core.PreviousSuffix)
	if alias == "." || alias == ".." || len(name) > 240 || strings.IndexFunc(alias, bad) >= 0 ||
		strings.IndexByte("-_+", alias[0]) >= 0 {
		return core.NewError(core.CodeInvalid, "the name of an index must be lower case, at most 240 bytes, "+
			`not start with -, _ or +, and contain none of \ / * ? " < > | , # : % or space`)
	}
	return nil
}

// Response is a complete response of the cluster.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do is Send for 2xx responses; any other status is an error from which ErrorOf returns the cluster's error.
func (c *Client) Do(ctx context.Context, r esapi.Request, into *bytes.Buffer) (*Response, error) {
	return c.DoWithin(ctx, r, into, c.cfg.MaxResponseBytes)
}

// MaxResponseBytes returns Config.MaxResponseBytes.
func (c *Client) MaxResponseBytes() int64 { return c.cfg.MaxResponseBytes }

// DoWithin is Do for a response of at most limit bytes, of which no more are read; IsOverLimit reports whether it is longer.
func (c *Client) DoWithin(ctx context.Context, r esapi.Request, into *bytes.Buffer, limit int64) (*Response, error) {
	return c.DoGrowing(ctx, r, into, limit, nil)
}

// Grow returns how many bytes of a response may be read, of which so many were read. It may wait; its error ends the request, unchanged.
type Grow func(read int64) (allowed int64, err error)

// DoGrowing is DoWithin, reading no more of the response than grow allows; nil for no bound but the limit.
func (c *Client) DoGrowing(ctx context.Context, r esapi.Request, into *bytes.Buffer, limit int64, grow Grow) (*Response, error) {
	answer, err := c.send(ctx, r, into, limit, grow)
	if err == nil && answer.Status/100 != 2 {
		return nil, newResponseError(answer.Status, answer.Header, answer.Body)
	}
	return answer, err
}

// Fetch is Do for a response that is decoded into out.
func (c *Client) Fetch(ctx context.Context, r esapi.Request, out any) error {
	reply, err := c.Do(ctx, r, nil)
	if err != nil {
		return err
	}
	return reply.Decode(out)
}

// Send sends one request and reads the whole response into the buffer, or a new one if into is nil. When it returns, the caller may
// reuse the bytes of the request's body. An error is a *core.Error.
func (c *Client) Send(ctx context.Context, r esapi.Request, into *bytes.Buffer) (*Response, error) {
	return c.send(ctx, r, into, c.cfg.MaxResponseBytes, nil)
}

func (c *Client) send(ctx context.Context, r esapi.Request, into *bytes.Buffer, limit int64, grow Grow) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	e := &requestTransport{transport: c.Transport, files: c.cfg.TLS, idempotent: isRead(r)}
	defer e.body.release()
	res, err := r.Do(ctx, e)
	if err != nil {
		if _, sent := errors.AsType[*core.Error](err); !sent {
			err = core.WrapError(core.CodeInternal, "the request to the index cannot be created", err)
		}
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if fromGateway(res.StatusCode) {
		c.epoch.Add(1)
	}
	if into == nil {
		into = new(bytes.Buffer)
	}
	body := growingReader{from: io.LimitReader(res.Body, limit+1), grow: grow}
	n, err := into.ReadFrom(&body)
	if body.refused != nil {
		return nil, body.refused
	}
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "the response of the index is incomplete", unreachable(err))
	}
	if n > limit {
		return nil, core.WrapError(core.CodeUnavailable, "the response of the index is incomplete", ErrOverLimit)
	}
	return &Response{Status: res.StatusCode, Header: res.Header, Body: into.Bytes()}, nil
}

// growingReader reads a response as grow allows.
type growingReader struct {
	from          io.Reader
	grow          Grow
	read, allowed int64
	// refused is the error of grow.
	refused error
}

// Read implements io.Reader.
func (r *growingReader) Read(p []byte) (int, error) {
	if r.grow == nil {
		return r.from.Read(p)
	}
	if r.read >= r.allowed {
		if r.allowed, r.refused = r.grow(r.read); r.refused != nil {
			return 0, r.refused
		}
	}
	n, err := r.from.Read(p[:min(int64(len(p)), max(r.allowed-r.read, 1))])
	r.read += int64(n)
	return n, err
}

// unreachable marks the cause of a request without a complete response as core.ErrIndexUnreachable.
func unreachable(err error) error { return fmt.Errorf("%w: %w", core.ErrIndexUnreachable, err) }

// requestTransport is the esapi.Transport of one request.
type requestTransport struct {
	transport *elastictransport.Client
	files     tlsconfig.Files
	body      requestBody
	// idempotent reports that the request may be sent again.
	idempotent bool
}

// expectBytes is the size of a body, in bytes, over which it is sent when the engine has agreed to read it. An engine that refuses a request
// for its size may close the connection while the body is sent, and the response that says why (413) is then lost.
const expectBytes = 8 << 20

// Perform sends a request built by esapi. An error is a *core.Error.
func (e *requestTransport) Perform(req *http.Request) (*http.Response, error) {
	req.URL.RawPath = "" // esapi does not escape names, and the transport prepends the path of a proxy
	req.Header.Set("Accept", "application/json")
	if e.idempotent {
		req.Header["Idempotency-Key"] = nil // marks the request as repeatable; the header is not sent
	}
	if req.ContentLength > expectBytes {
		req.Header.Set("Expect", "100-continue")
		req.Close = true // else net/http sends the body also after a refusal, to use the connection again
	}
	e.body.wrap(req)
	res, err := e.transport.Perform(req)
	if _, unsigned := errors.AsType[*credentialsError](err); unsigned {
		return nil, &core.Error{
			Code: core.CodeUnavailable, Message: "there are no AWS credentials to sign requests to the index with", Err: unreachable(err),
			Hint: "provide credentials by the environment, a shared file or a role; they are read again with the next request",
		}
	}
	if err != nil {
		message := "the index does not answer"
		reason, hint := e.files.TLSFailure(err)
		if reason != "" {
			message += ": " + reason
		}
		return nil, &core.Error{Code: core.CodeUnavailable, Message: message, Hint: hint, Err: unreachable(err)}
	}
	return res, nil
}

// Decode decodes the response's JSON into out.
func (r *Response) Decode(out any) error {
	if err := json.Unmarshal(r.Body, out); err != nil {
		return core.WrapError(core.CodeUnavailable, "the index returned an unexpected response", err)
	}
	return nil
}

// CheckShards returns an error when a shard of alias failed.
func (r *Response) CheckShards(alias string) error {
	var answer struct {
		Shards struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
	}
	if err := r.Decode(&answer); err != nil {
		return err
	}
	if answer.Shards.Failed > 0 {
		return core.NewError(core.CodeUnavailable, "not all shards of the index "+alias+" answered")
	}
	return nil
}

// maxPooledBytes is the capacity of the largest buffer that is reused.
const maxPooledBytes = 8 << 20

// GetBuffer returns an empty buffer, for responses and compressed bodies. PutBuffer takes it back.
func (c *Client) GetBuffer() *bytes.Buffer {
	if buffer, ok := c.buffers.Get().(*bytes.Buffer); ok {
		buffer.Reset()
		return buffer
	}
	return new(bytes.Buffer)
}

// PutBuffer makes a buffer available to later calls of GetBuffer. It must not be used afterwards.
func (c *Client) PutBuffer(buffer *bytes.Buffer) {
	if buffer.Cap() <= maxPooledBytes {
		c.buffers.Put(buffer)
	}
}

// isRead reports whether r is a read that is sent as POST. Such a request may be sent again.
func isRead(r esapi.Request) bool {
	switch r := r.(type) {
	case request:
		return r.read
	case esapi.SearchRequest, esapi.MsearchRequest, esapi.CountRequest, esapi.MgetRequest:
		return true
	default:
		return false
	}
}

// SearchRequest returns a search of one index, or of the point in time in its body. It fails if any shard does not answer.
func SearchRequest(body []byte, alias ...string) esapi.SearchRequest {
	return esapi.SearchRequest{Index: alias, Body: bytes.NewReader(body), AllowPartialSearchResults: new(false)}
}

// DocumentsRequest returns the request for the documents in body, whole, also on an engine that leaves vectors out, for which esapi has no field.
func DocumentsRequest(engine flavour.Engine, alias string, body []byte) esapi.Request {
	if engine.OmitsVectors() {
		return request{method: http.MethodPost, path: "/" + alias + "/_mget", query: "_source_exclude_vectors=false", body: body, read: true}
	}
	return esapi.MgetRequest{Index: alias, Body: bytes.NewReader(body)}
}

// NDJSON returns the header of a request whose body is newline-delimited JSON.
func NDJSON() http.Header { return http.Header{"Content-Type": {"application/x-ndjson"}} }
