package api_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"tutti/http/api"
	"tutti/internal/base/span"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// TestSpans: a request has one span with a bounded name, unless it is for monitoring. Only errors of the server are errors of the span.
func TestSpans(t *testing.T) {
	l := apitest.NoLetters()
	l.GetFn = func(string) (core.DeadLetter, error) {
		return core.DeadLetter{}, core.NewError(core.CodeUnavailable, "the queue does not answer")
	}
	ended := tracetest.NewSpanRecorder()
	h := apitest.NewHandler(t, apitest.WithLetters(l), api.Config{
		BasePath: "/base", Tracer: span.NewTracer(sdk.NewTracerProvider(sdk.WithSpanProcessor(ended))),
	})
	for _, tt := range []struct {
		method, target string
		name           string // "" for no span
		attributes     map[string]string
		status         string
	}{
		{"GET", "/base/ping", "", nil, ""},
		{"GET", "/base/metrics", "", nil, ""},
		{"GET", "/base/jobs?limit=1", "GET /jobs", map[string]string{
			"http.request.method": "GET", "http.route": "/jobs", "http.response.status_code": "200", "request_id": apitest.TestRequestID,
		}, ""},
		{"GET", "/base/dead-letters/s3cret", "GET /dead-letters/{id}", map[string]string{
			"http.request.method": "GET", "http.route": "/dead-letters/{id}", "http.response.status_code": "503", "request_id": apitest.TestRequestID, "error.type": "unavailable",
		}, "unavailable"},
		{"BREW", "/base/nowhere/s3cret", "other unmatched", map[string]string{
			"http.request.method": "other", "http.route": "unmatched", "http.response.status_code": "404", "request_id": apitest.TestRequestID, "error.type": "not_found",
		}, ""},
	} {
		ended.Reset()
		_, res, _ := apitest.Exchange(t, h, apitest.Ask{Method: tt.method, Target: tt.target})
		spans := ended.Ended()
		if tt.name == "" {
			if len(spans) != 0 || res.StatusCode != http.StatusOK {
				t.Errorf("%s: status %d, %v", tt.target, res.StatusCode, spans)
			}
			continue
		}
		if len(spans) != 1 {
			t.Errorf("%s: %d spans", tt.target, len(spans))
			continue
		}
		attributes := map[string]string{}
		for _, a := range spans[0].Attributes() {
			attributes[string(a.Key)] = a.Value.String()
		}
		if diff := cmp.Diff(tt.attributes, attributes); diff != "" || spans[0].Name() != tt.name || spans[0].Status().Description != tt.status {
			t.Errorf("%s: %s %v %s", tt.target, spans[0].Name(), spans[0].Status(), diff)
		}
	}
}
