package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"tutti/internal/app/tracing"
	"tutti/internal/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// roundTrip is a receiver without a network.
type roundTrip func(*http.Request) (int, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	status, err := f(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// fixture is a Tracing that sends to a receiver.
type fixture struct {
	*tracing.Tracing
	log      bytes.Buffer
	registry *prometheus.Registry
}

func start(receiver roundTrip) *fixture {
	f := &fixture{registry: prometheus.NewRegistry()}
	f.Tracing, _ = tracing.Start(tracing.Config{
		URL: "http://receiver/v1/traces", SampleRatio: 1, Service: "tutti", Version: "1", Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
		Metrics: tracing.NewMetrics(f.registry), Transport: receiver,
	})
	return f
}

// record records n spans.
func (f *fixture) record(ctx context.Context, n int) {
	tracer := f.Tracer()
	for range n {
		_, s := tracer.Consume(ctx, "process record", "")
		s.End(nil)
	}
}

// counts returns the counted spans by result.
func (f *fixture) counts(t *testing.T) map[string]int {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			counts[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
		}
	}
	return counts
}

func (f *fixture) want(t *testing.T, counts map[string]int) {
	t.Helper()
	if diff := cmp.Diff(counts, f.counts(t)); diff != "" {
		t.Error(diff)
	}
}

// TestBatches: spans are sent every two seconds, or when there are 512, and at the stop.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		f := start(func(r *http.Request) (int, error) {
			body, err := io.ReadAll(r.Body)
			var traces tracepb.TracesData
			if err != nil || proto.Unmarshal(body, &traces) != nil {
				t.Errorf("body of %d bytes, %v", len(body), err)
			}
			sizes = append(sizes, len(traces.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()))
			return http.StatusOK, nil
		})
		f.record(t.Context(), 3)
		synctest.Wait()
		f.want(t, map[string]int{})
		time.Sleep(3 * time.Second)
		f.want(t, map[string]int{"sent": 3})
		f.record(t.Context(), 512)
		synctest.Wait()
		f.want(t, map[string]int{"sent": 515})
		f.record(t.Context(), 1)
		if err := f.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		f.want(t, map[string]int{"sent": 516})
		if diff := cmp.Diff([]int{3, 512, 1}, sizes); diff != "" {
			t.Error(diff)
		}
		f.record(t.Context(), 1)
		f.want(t, map[string]int{"sent": 516, "dropped": 1})
	})
}

// TestReceiverFails: failures are counted, and logged once a minute.
func TestReceiverFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(func(*http.Request) (int, error) { return 0, errors.New("connection refused") })
		for range 25 { // 50 s
			f.record(t.Context(), 1)
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		if n := strings.Count(f.log.String(), "traces could not be sent"); n != 1 {
			t.Errorf("%d lines within a minute:\n%s", n, f.log.String())
		}
		time.Sleep(20 * time.Second)
		f.record(t.Context(), 1)
		if err := f.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if n := strings.Count(f.log.String(), "traces could not be sent"); n != 2 {
			t.Errorf("%d lines in more than a minute:\n%s", n, f.log.String())
		}
		f.want(t, map[string]int{"failed": 26})
	})
}

// TestReceiverHangs: a receiver that does not answer blocks no other work. Memory is bounded, and a stop takes three seconds at most.
func TestReceiverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(func(r *http.Request) (int, error) {
			<-r.Context().Done()
			return 0, r.Context().Err()
		})
		f.record(t.Context(), 512)
		synctest.Wait() // they are being sent
		began := time.Now()
		f.record(t.Context(), 5000)
		if took := time.Since(began); took != 0 {
			t.Errorf("recording took %s", took)
		}
		f.want(t, map[string]int{"dropped": 5000 - 4096})
		if err := f.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("the stop took %s", took)
		}
		f.want(t, map[string]int{"failed": 512, "dropped": 5000})
	})
}

// TestStopTwice: a second stop, or one without time, is no error.
func TestStopTwice(t *testing.T) {
	f := start(func(*http.Request) (int, error) { return http.StatusOK, nil })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if err := f.Stop(ended); err != nil {
			t.Error(err)
		}
	}
}

// TestSampling: the part of the traces that begin here is recorded, and all of those that a caller has sampled.
func TestSampling(t *testing.T) {
	traces, err := tracing.Start(tracing.Config{
		URL: "http://receiver", SampleRatio: 0, Service: "tutti", Logger: slog.New(slog.DiscardHandler),
		Transport: roundTrip(func(*http.Request) (int, error) { return http.StatusOK, nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := traces.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	_, own := traces.Tracer().Consume(t.Context(), "process record", "")
	_, sampled := traces.Tracer().Consume(t.Context(), "process record", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	sampled.End(nil)
	if own.Recorded() || !sampled.Recorded() {
		t.Errorf("own %t, sampled %t", own.Recorded(), sampled.Recorded())
	}
}

// TestProbe: what a receiver is asked, and how its answers are classified.
func TestProbe(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) != 0 || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" ||
			r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("Authorization") != "Basic x" {
			t.Errorf("%s %s %v %q", r.Method, r.URL, r.Header, body)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer server.Close()
	cfg := tracing.Config{URL: server.URL + "/v1/traces", Headers: map[string]string{"authorization": "Basic x"}}
	for answer, want := range map[int]core.Code{
		http.StatusOK: "", http.StatusAccepted: "", http.StatusTemporaryRedirect: core.CodeUpstream, http.StatusUnauthorized: core.CodeUpstream,
	} {
		status = answer
		if err := tracing.Probe(t.Context(), cfg); core.CodeOf(err) != want {
			t.Errorf("%d: %v", answer, err)
		}
	}
	server.Close()
	if err := tracing.Probe(t.Context(), cfg); core.CodeOf(err) != core.CodeUnavailable {
		t.Error(err)
	}
}

// TestLogHandler: lines about a recorded span have its trace.
func TestLogHandler(t *testing.T) {
	f := start(func(*http.Request) (int, error) { return http.StatusOK, nil })
	defer func() {
		if err := f.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	log := slog.New(tracing.LogHandler(slog.NewTextHandler(&out, nil))).With("component", "c")
	log.InfoContext(t.Context(), "before")
	for _, parent := range []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"} {
		ctx, s := f.Tracer().Consume(t.Context(), "process record", parent)
		log.InfoContext(ctx, "during")
		s.End(nil)
	}
	if got := out.String(); strings.Count(got, "trace_id=4bf92f3577b34da6a3ce929d0e0e4736") != 1 || strings.Count(got, "component=c") != 3 {
		t.Error(got)
	}
}
