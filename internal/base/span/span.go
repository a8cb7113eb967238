package span

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"tutti/internal/core"
)

// scope is the name of the instrumentation in what is exported.
const scope = "tutti"

// header is the name of W3C's header, and of the member of a core.Request.
const header = "traceparent"

// Tracer starts spans that have no parent in this process. A nil Tracer starts none.
type Tracer struct{ tracer trace.Tracer }

// NewTracer returns a Tracer for the spans of a provider.
func NewTracer(p trace.TracerProvider) *Tracer { return &Tracer{tracer: p.Tracer(scope)} }

// Serve starts the span of an HTTP request. Its parent is the one that the header names, if it names one.
func (t *Tracer) Serve(ctx context.Context, name string, h http.Header) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	return t.start(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h)), name, trace.SpanKindServer)
}

// Consume starts the span of a message's processing. Its parent is the one of a traceparent; an empty or invalid one is no parent.
func (t *Tracer) Consume(ctx context.Context, name, traceparent string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{header: traceparent})
	return t.start(ctx, name, trace.SpanKindConsumer)
}

// Parent returns the traceparent of a message of another program for Consume: "" if it is invalid, or if t is nil.
func (t *Tracer) Parent(traceparent string) string {
	if t == nil || traceparent == "" {
		return ""
	}
	return Traceparent(propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{header: traceparent}))
}

// start starts a span. The context of one that is not sampled carries that decision on.
func (t *Tracer) start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	ctx, s := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, recorded(s)
}

// Start starts a span of work within the process, below the one of ctx, if that is recorded.
func Start(ctx context.Context, name string) (context.Context, Span) {
	return child(ctx, name, trace.SpanKindInternal)
}

// Call starts the span of a call to another server, below the one of ctx, if that is recorded.
func Call(ctx context.Context, name string) (context.Context, Span) {
	return child(ctx, name, trace.SpanKindClient)
}

func child(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	ctx, s := parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, recorded(s)
}

// Of returns the span of ctx.
func Of(ctx context.Context) Span { return recorded(trace.SpanFromContext(ctx)) }

// TraceID returns the id of the trace of ctx in hexadecimal, "" if its span is not recorded.
func TraceID(ctx context.Context) string {
	s := trace.SpanFromContext(ctx)
	if !s.IsRecording() {
		return ""
	}
	return s.SpanContext().TraceID().String()
}

// Traceparent returns the identity of the span of ctx, also of one that is not sampled; "" for none.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[header]
}

// Inject sets the headers of a request to another server to the span of ctx, if there is one.
func Inject(ctx context.Context, h http.Header) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	}
}

// Span is a span being recorded. The zero Span records nothing.
type Span struct{ span trace.Span }

// recorded returns the Span of s, the zero Span if it is not recorded.
func recorded(s trace.Span) Span {
	if !s.IsRecording() {
		return Span{}
	}
	return Span{s}
}

// Recorded reports whether the span is being recorded.
func (s Span) Recorded() bool { return s.span != nil }

// Rename replaces the name of the span.
func (s Span) Rename(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Text sets an attribute, unless value is empty.
func (s Span) Text(key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Int sets an attribute.
func (s Span) Int(key string, value int64) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int64(key, value))
	}
}

// End ends the span. Of an error it has the code only, in the attribute error.type: messages may contain parts of documents.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.Failed(core.CodeOf(err))
	}
	s.span.End()
}

// Failed marks the span as failed with a code.
func (s Span) Failed(code core.Code) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String("error.type", string(code)))
		s.span.SetStatus(codes.Error, string(code))
	}
}
