package span_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"tutti/internal/base/span"
	"tutti/internal/core"
)

const (
	traceID  = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentID = "00f067aa0ba902b7"
	parent   = "00-" + traceID + "-" + parentID + "-01"
)

// recording returns a Tracer and the spans that ended.
func recording() (*span.Tracer, *tracetest.SpanRecorder) {
	ended := tracetest.NewSpanRecorder()
	return span.NewTracer(sdk.NewTracerProvider(sdk.WithSpanProcessor(ended))), ended
}

// process does what the program does for one record.
func process(ctx context.Context, tracer *span.Tracer, header http.Header) error {
	ctx, record := tracer.Consume(ctx, "process record", parent)
	record.Text("record_id", "a")
	call, fetch := span.Call(ctx, "fetch record")
	span.Inject(call, header)
	fetch.Int("rows", 1)
	fetch.End(nil)
	var group span.Group
	group.Add(ctx)
	_, write := group.Call(context.Background(), "bulk write")
	write.End(nil)
	_, letter := span.Start(ctx, "store dead letter")
	letter.End(core.ErrForeignNotFound)
	if span.TraceID(ctx) != "" && span.Traceparent(ctx) == "" || span.Of(ctx) != record {
		return errors.New("the span is not in its context")
	}
	record.Failed(core.CodeInvalid)
	record.Rename("process")
	record.End(nil)
	return nil
}

// TestOffAllocatesNothing: without a Tracer the work on a record allocates nothing more than without spans.
func TestOffAllocatesNothing(t *testing.T) {
	ctx, header := t.Context(), http.Header{}
	if n := testing.AllocsPerRun(100, func() {
		if err := process(ctx, nil, header); err != nil {
			t.Error(err)
		}
		if span.Traceparent(ctx) != "" {
			t.Error("a span without a Tracer")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if len(header) != 0 {
		t.Errorf("headers %v", header)
	}
}

func TestTree(t *testing.T) {
	tracer, recorder := recording()
	header := http.Header{}
	if err := process(t.Context(), tracer, header); err != nil {
		t.Fatal(err)
	}
	ended := map[string]sdk.ReadOnlySpan{}
	for _, s := range recorder.Ended() {
		ended[s.Name()] = s
		if s.SpanContext().TraceID().String() != traceID {
			t.Errorf("%s is in another trace", s.Name())
		}
	}
	root := ended["process"]
	if root == nil || root.Parent().SpanID().String() != parentID || root.SpanKind() != trace.SpanKindConsumer {
		t.Fatalf("got %v", ended)
	}
	for name, kind := range map[string]trace.SpanKind{
		"fetch record": trace.SpanKindClient, "bulk write": trace.SpanKindClient, "store dead letter": trace.SpanKindInternal,
	} {
		s := ended[name]
		if s == nil || s.Parent().SpanID() != root.SpanContext().SpanID() || s.SpanKind() != kind {
			t.Errorf("%s: %v", name, s)
		}
	}
	if want := "00-" + traceID + "-" + ended["fetch record"].SpanContext().SpanID().String() + "-01"; header.Get("traceparent") != want {
		t.Errorf("the header is %v, want %s", header, want)
	}
	letter := ended["store dead letter"]
	code := string(core.CodeOf(core.ErrForeignNotFound))
	if letter.Status().Code != codes.Error || letter.Status().Description != code || letter.Attributes()[0] != attribute.String("error.type", code) {
		t.Errorf("the error is %v %v", letter.Status(), letter.Attributes())
	}
}

// TestParents: a request's header decides whether it is recorded; without one, or with an invalid one, a trace begins.
func TestParents(t *testing.T) {
	for name, tt := range map[string]struct {
		header   string
		recorded bool
		trace    string
	}{
		"sampled":     {parent, true, traceID},
		"not sampled": {strings.TrimSuffix(parent, "1") + "0", false, traceID},
		"none":        {"", true, ""},
		"invalid":     {"00-0-0-00", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tracer, recorder := recording()
			header := http.Header{}
			header.Set("traceparent", tt.header)
			ctx, s := tracer.Serve(t.Context(), "GET", header)
			below, child := span.Start(ctx, "child")
			id, sent := span.TraceID(ctx), span.Traceparent(below)
			child.End(nil)
			s.End(nil)
			if n := len(recorder.Ended()); s.Recorded() != tt.recorded || n != map[bool]int{true: 2}[tt.recorded] || (id != "") != tt.recorded {
				t.Errorf("recorded %t, %d ended, trace %q", s.Recorded(), n, id)
			}
			if tt.trace != "" && !strings.HasPrefix(sent, "00-"+tt.trace) || strings.HasSuffix(sent, "-01") != tt.recorded || strings.Contains(sent, "-0000") {
				t.Errorf("passes on %q", sent)
			}
		})
	}
}

// TestParent: a message's traceparent is passed on only if it is valid and traces are on.
func TestParent(t *testing.T) {
	tracer, _ := recording()
	for given, want := range map[string]string{
		parent: parent, "": "", "00-0-0-00": "", "p": "", strings.Repeat("x", 1<<20): "", parent + "-more": "",
	} {
		if got := tracer.Parent(given); got != want {
			t.Errorf("%.60q is passed on as %q, want %q", given, got, want)
		}
	}
	var off *span.Tracer
	if got := off.Parent(parent); got != "" {
		t.Errorf("%q is passed on although traces are off", got)
	}
}

// TestGroup: a span for many has links to a bounded number of them.
func TestGroup(t *testing.T) {
	tracer, recorder := recording()
	var group span.Group
	for range 40 {
		ctx, s := tracer.Consume(t.Context(), "process record", "")
		group.Add(ctx)
		group.Add(ctx)
		s.End(nil)
	}
	_, s := group.Call(t.Context(), "bulk write")
	s.End(nil)
	ended := recorder.Ended()
	call := ended[len(ended)-1]
	if call.Parent().SpanID() != ended[0].SpanContext().SpanID() || len(call.Links()) != 32 ||
		call.Links()[0].SpanContext.SpanID() != ended[1].SpanContext().SpanID() || call.Attributes()[0] != attribute.Int("links_dropped", 7) {
		t.Errorf("parent %v, %d links, %v", call.Parent(), len(call.Links()), call.Attributes())
	}
}
