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
	// maxResponseBytes bounds an answer: the cluster itself takes and gives no more than 100 MB by default.
	maxResponseBytes = 512 << 20
	dialTimeout      = 5 * time.Second
	// idlePerNode is how many idle connections to a node are kept for reads, and as many for all else: bulk flights.
	idlePerNode = 16
	idleTimeout = time.Minute
)

// client sends single requests to the cluster and turns everything but a whole 2xx answer into a *core.Error.
type client struct {
	transport *elastictransport.Client
	http      *roundtrip.Transport
	timeout   time.Duration
	// maxResponseBytes is how many bytes an answer may have.
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
			return nil, core.NewError(core.CodeInvalid, "the index' CA file holds no certificate")
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
		DisableCompression:    true, // answers are a few bytes per document
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
		return nil, core.WrapError(core.CodeInvalid, "the index' client cannot be made", err)
	}
	return &client{transport: transport, http: web, timeout: cfg.Timeout, maxResponseBytes: maxResponseBytes}, nil
}

// close ends the transport's looking after dead nodes, and closes the connections. No call may be in progress.
func (c *client) close() error {
	defer c.http.Close()
	if err := c.transport.Close(context.Background()); err != nil {
		return core.WrapError(core.CodeInternal, "the connections to the index could not be closed", err)
	}
	return nil
}

// response is a whole answer.
type response struct {
	status int
	header http.Header
	body   []byte
}

// do is send for answers with a 2xx status. Of another one failureOf returns what the cluster said.
func (c *client) do(ctx context.Context, r esapi.Request, into *bytes.Buffer) (*response, error) {
	answer, err := c.send(ctx, r, into)
	if err == nil && answer.status/100 != 2 {
		return nil, newResponseError(answer.status, answer.header, answer.body)
	}
	return answer, err
}

// send sends one request and reads its whole answer into a buffer, nil for a new one. The bytes of the request's body are the
// caller's again when it returns. An error is a *core.Error.
func (c *client) send(ctx context.Context, r esapi.Request, into *bytes.Buffer) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	e := &requestTransport{transport: c.transport, idempotent: isRead(r)}
	defer e.body.release()
	res, err := r.Do(ctx, e)
	if err != nil {
		if _, sent := errors.AsType[*core.Error](err); !sent {
			err = core.WrapError(core.CodeInternal, "the request to the index cannot be made", err)
		}
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if into == nil {
		into = new(bytes.Buffer)
	}
	n, err := into.ReadFrom(io.LimitReader(res.Body, c.maxResponseBytes+1))
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "the answer of the index was cut", unreachable(err))
	}
	if n > c.maxResponseBytes {
		return nil, core.WrapError(core.CodeUnavailable, "the answer of the index was cut", errOverLimit)
	}
	return &response{status: res.StatusCode, header: res.Header, body: into.Bytes()}, nil
}

// unreachable marks the cause of a request that got no whole answer, for who asks by core.ErrIndexUnreachable.
func unreachable(err error) error { return fmt.Errorf("%w: %w", core.ErrIndexUnreachable, err) }

// requestTransport is the transport of one request.
type requestTransport struct {
	transport *elastictransport.Client
	body      requestBody
	// idempotent is whether the cluster may be asked twice.
	idempotent bool
}

// Perform sends a request of esapi. An error is a *core.Error.
func (e *requestTransport) Perform(req *http.Request) (*http.Response, error) {
	req.URL.RawPath = "" // esapi escapes no names, and the transport puts the path of a proxy before them
	req.Header.Set("Accept", "application/json")
	if e.idempotent {
		req.Header["Idempotency-Key"] = nil // says so, and is not sent
	}
	e.body.wrap(req)
	res, err := e.transport.Perform(req)
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "the index does not answer", unreachable(err))
	}
	return res, nil
}

// decode reads the answer into out.
func (r *response) decode(out any) error {
	if err := json.Unmarshal(r.body, out); err != nil {
		return core.WrapError(core.CodeUnavailable, "the answer of the index is not what was asked for", err)
	}
	return nil
}

// checkShards gives an error when not all shards of alias took part.
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
