package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

// maxResponse is how much of a response is read, so that its connection can be used again.
const maxResponse = 64 << 10

// client sends spans to one receiver. It implements otlptrace.Client.
type client struct {
	http    *http.Client
	url     string
	files   tlsconfig.Files
	headers map[string]string
	version string
}

// newClient returns a client; CodeInvalid for files of TLS that cannot be used.
func newClient(cfg Config) (*client, error) {
	transport := cfg.Transport
	if transport == nil {
		secure, err := tlsconfig.New(cfg.TLS)
		if err != nil {
			return nil, err
		}
		transport = secure.RoundTripper(&http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 1, IdleConnTimeout: time.Minute})
	}
	return &client{
		// A redirect would be followed with GET, and send the headers to another server.
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		url:  cfg.URL, files: cfg.TLS, headers: cfg.Headers, version: cfg.Version,
	}, nil
}

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. CodeUnavailable if the receiver cannot be reached, CodeUpstream if it does not take the spans.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// TracesData and ExportTraceServiceRequest are encoded alike (OTLP, trace.proto); the package of the latter imports gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return core.WrapError(core.CodeInternal, "encoding spans", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return core.WrapError(core.CodeInternal, "the request could not be made", err)
	}
	req.Header.Set("User-Agent", "tutti/"+c.version)
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	res, err := c.http.Do(req)
	if err != nil {
		return core.WrapError(core.CodeUnavailable, "the receiver of traces could not be reached", c.files.Explain(err))
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxResponse)) // the status decides
	answer := tlsconfig.Answer{Status: res.StatusCode, Credentials: c.files.Name("headers"), Address: c.files.Name("endpoint")}
	c.files.Answered(answer, func(ctx context.Context) { _ = c.UploadTraces(ctx, nil) }) // it records its outcome
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return answer.Failure(fmt.Sprintf("the receiver of traces answered with status %d", res.StatusCode))
	}
	return nil
}

// Probe sends a request without spans, which a receiver accepts. Errors are those of sending spans and of Start.
func Probe(ctx context.Context, cfg Config) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	defer c.http.CloseIdleConnections()
	return c.UploadTraces(ctx, nil)
}
