package tracing

import (
	"context"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"tutti/internal/base/span"
	"tutti/internal/base/tlsconfig"
)

// maxValueBytes bounds the text of an attribute.
const maxValueBytes = 1024

// Config configures a Tracing. URL, Service and Logger are required.
type Config struct {
	// URL receives spans by OTLP/HTTP, usually a path that ends in /v1/traces.
	URL string
	TLS tlsconfig.Files
	// Headers are sent with each request.
	Headers map[string]string
	// SampleRatio is the part of the traces that begin in this process that is recorded; others are recorded as their traceparent says.
	SampleRatio float64
	// Service and Version name the program in the spans.
	Service, Version string
	// Logger receives failures, at most one a minute.
	Logger *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
	// Transport replaces the connections to URL, for tests.
	Transport http.RoundTripper
}

// Tracing records spans and sends them in the background. A receiver that cannot be reached delays nothing: spans are dropped.
type Tracing struct {
	provider *sdk.TracerProvider
	batches  *batches
}

// Start returns a Tracing, which must be stopped; CodeInvalid for files of TLS that cannot be used.
func Start(cfg Config) (*Tracing, error) {
	client, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxValueBytes
	out := newBatches(cfg, client)
	return &Tracing{batches: out, provider: sdk.NewTracerProvider(
		sdk.WithSpanProcessor(out),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(cfg.SampleRatio))),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", cfg.Service), attribute.String("service.version", cfg.Version),
		)),
		sdk.WithRawSpanLimits(limits),
	)}, nil
}

// Tracer returns the Tracer of the process.
func (t *Tracing) Tracer() *span.Tracer { return span.NewTracer(t.provider) }

// Stop sends the spans that wait, until ctx ends but for no longer than 3 seconds, and drops the rest, which is no error. No goroutine
// remains. The provider's own Shutdown would do nothing once ctx has ended.
func (t *Tracing) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return t.batches.Shutdown(ctx)
}
