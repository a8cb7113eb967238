package elastic

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/roundtrip"
)

const (
	// maxResponseBytes limits a response. The cluster's own default limit for requests is 100 MB (http.max_content_length).
	maxResponseBytes = 512 << 20
	dialTimeout      = 5 * time.Second
	// idlePerNode is the number of idle connections kept per node, for reads and for other requests (bulk) each.
	idlePerNode = 16
	idleTimeout = time.Minute
)

// client sends single requests to the cluster. Everything but a complete 2xx response is a *core.Error.
type client struct {
	transport *elastictransport.Client
	http      *roundtrip.Transport
	timeout   time.Duration
	// maxResponseBytes limits a response.
	maxResponseBytes int64
}

func newClient(cfg Config) (*client, error) {
	nodes, err := cfg.nodes()
	if err != nil {
		return nil, err
	}
	pem, err := cfg.authorities()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if pem != nil {
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(pem) {
			return nil, core.NewError(core.CodeInvalid, "the index's CA file contains no certificate")
		}
	}
	writes := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       secure,
		TLSHandshakeTimeout:   dialTimeout,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   idlePerNode,
		DisableCompression:    true, // responses have a few bytes per document
		WriteBufferSize:       64 << 10,
		ReadBufferSize:        32 << 10,
	}
	web := roundtrip.New(roundtrip.Config{
		Dial: dialer.DialContext, TLS: secure, TLSTimeout: dialTimeout, Idle: idlePerNode, IdleTimeout: idleTimeout, Fallback: writes,
	})
	transport, err := elastictransport.NewClient(
		elastictransport.WithURLs(nodes...),
		elastictransport.WithBasicAuth(cfg.Username, cfg.Password),
		elastictransport.WithAPIKey(cfg.key()),
		elastictransport.WithUserAgent("tutti"),
		elastictransport.WithDisableRetry(),
		elastictransport.WithTransport(web),
	)
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the client of the index cannot be created", err)
	}
	return &client{transport: transport, http: web, timeout: cfg.Timeout, maxResponseBytes: maxResponseBytes}, nil
}

// close stops the transport's checks of dead nodes and closes the connections. No call may be in progress.
func (c *client) close() error {
	defer c.http.Close()
	if err := c.transport.Close(context.Background()); err != nil {
		return core.WrapError(core.CodeInternal, "the connections to the index could not be closed", err)
	}
	return nil
}

// response is a complete response.
type response struct {
	status int
	header http.Header
	body   []byte
}

// do is send for 2xx responses; any other status is an error from which responseErrorOf returns the cluster's error.
func (c *client) do(ctx context.Context, r esapi.Request, into *bytes.Buffer) (*response, error) {
	answer, err := c.send(ctx, r, into)
	if err == nil && answer.status/100 != 2 {
		return nil, newResponseError(answer.status, answer.header, answer.body)
	}
	return answer, err
}

// send sends one request and reads the whole response into a buffer, a new one if nil. The caller may reuse the bytes of the
// request's body when it returns. An error is a *core.Error.
func (c *client) send(ctx context.Context, r esapi.Request, into *bytes.Buffer) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	e := &requestTransport{transport: c.transport, idempotent: isRead(r)}
	defer e.body.release()
	res, err := r.Do(ctx, e)
	if err != nil {
		if _, sent := errors.AsType[*core.Error](err); !sent {
			err = core.WrapError(core.CodeInternal, "the request to the index cannot be created", err)
		}
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if into == nil {
		into = new(bytes.Buffer)
	}
	n, err := into.ReadFrom(io.LimitReader(res.Body, c.maxResponseBytes+1))
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "the response of the index is incomplete", unreachable(err))
	}
	if n > c.maxResponseBytes {
		return nil, core.WrapError(core.CodeUnavailable, "the response of the index is incomplete", errOverLimit)
	}
	return &response{status: res.StatusCode, header: res.Header, body: into.Bytes()}, nil
}

// unreachable marks the cause of a request without a complete response as core.ErrIndexUnreachable.
func unreachable(err error) error { return fmt.Errorf("%w: %w", core.ErrIndexUnreachable, err) }

// requestTransport is the esapi.Transport of one request.
type requestTransport struct {
	transport *elastictransport.Client
	body      requestBody
	// idempotent reports that the request may be sent again.
	idempotent bool
}

// Perform sends a request built by esapi. An error is a *core.Error.
func (e *requestTransport) Perform(req *http.Request) (*http.Response, error) {
	req.URL.RawPath = "" // esapi does not escape names, and the transport prepends the path of a proxy
	req.Header.Set("Accept", "application/json")
	if e.idempotent {
		req.Header["Idempotency-Key"] = nil // marks the request as repeatable; the header is not sent
	}
	e.body.wrap(req)
	res, err := e.transport.Perform(req)
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "the index does not answer", unreachable(err))
	}
	return res, nil
}

// decode decodes the response's JSON into out.
func (r *response) decode(out any) error {
	if err := json.Unmarshal(r.body, out); err != nil {
		return core.WrapError(core.CodeUnavailable, "the index returned an unexpected response", err)
	}
	return nil
}

// checkShards returns an error when a shard of alias failed.
func (r *response) checkShards(alias string) error {
	var answer struct {
		Shards struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
	}
	if err := r.decode(&answer); err != nil {
		return err
	}
	if answer.Shards.Failed > 0 {
		return core.NewError(core.CodeUnavailable, "not all shards of the index "+alias+" answered")
	}
	return nil
}
