package app_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

// receiver receives traces by OTLP over HTTP.
type receiver struct {
	*httptest.Server
	t        *testing.T
	mu       sync.Mutex
	received []*tracepb.Span
	services map[string]bool
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	c := &receiver{t: t, services: map[string]bool{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// ServeHTTP implements http.Handler.
func (c *receiver) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var data tracepb.TracesData // encoded like an ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &data) != nil || r.URL.Path != "/v1/traces" || r.Header.Get("X-Tenant") != "a b" {
		c.t.Errorf("%s with %d bytes and %v: %v", r.URL, len(body), r.Header, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range data.GetResourceSpans() {
		for _, a := range of.GetResource().GetAttributes() {
			c.services[a.GetKey()+"="+a.GetValue().GetStringValue()] = true
		}
		for _, scope := range of.GetScopeSpans() {
			c.received = append(c.received, scope.GetSpans()...)
		}
	}
}

// named returns the spans whose names begin with a prefix, oldest first.
func (c *receiver) named(prefix string) []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*tracepb.Span
	for _, s := range c.received {
		if strings.HasPrefix(s.GetName(), prefix) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *tracepb.Span) int {
		return int(int64(a.GetStartTimeUnixNano()) - int64(b.GetStartTimeUnixNano()))
	})
	return found
}

// one returns the only span whose name begins with a prefix.
func (c *receiver) one(prefix string) *tracepb.Span {
	c.t.Helper()
	found := c.named(prefix)
	if len(found) != 1 {
		c.t.Fatalf("%d spans named %s, want 1:\n%s", len(found), prefix, c.tree())
	}
	return found[0]
}

// tree lists all spans.
func (c *receiver) tree() string {
	var b strings.Builder
	for _, s := range c.named("") {
		fmt.Fprintf(&b, "%x %x below %x: %s %s %v\n", s.GetTraceId(), s.GetSpanId(), s.GetParentSpanId(), s.GetName(), s.GetStatus().GetMessage(), attributes(s))
	}
	return b.String()
}

// wantBelow checks the trace and the parent of spans.
func (c *receiver) wantBelow(parent *tracepb.Span, spans ...*tracepb.Span) {
	c.t.Helper()
	for _, s := range spans {
		if string(s.GetTraceId()) != string(parent.GetTraceId()) || string(s.GetParentSpanId()) != string(parent.GetSpanId()) {
			c.t.Errorf("%s is not below %s:\n%s", s.GetName(), parent.GetName(), c.tree())
		}
	}
}

func attributes(s *tracepb.Span) map[string]string {
	of := map[string]string{}
	for _, a := range s.GetAttributes() {
		of[a.GetKey()] = a.GetValue().GetStringValue()
		if of[a.GetKey()] == "" {
			of[a.GetKey()] = fmt.Sprint(a.GetValue().GetIntValue())
		}
	}
	return of
}

// tracedWorld returns a world, not started, that sends traces to a receiver. Calls to its upstream pass a proxy, which returns their
// header traceparent.
func tracedWorld(t *testing.T, c *receiver, set settings) (w *world, upstream func() []string) {
	t.Helper()
	set.more += fmt.Sprintf("tracing: {endpoint: %q, headers: X-Tenant=a%%20b, serviceName: tutti-test}\n", c.URL)
	w = newWorld(t, set)
	target, err := url.Parse(w.song.URL())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []string
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.In.Header.Get("traceparent"))
		r.SetURL(target)
	}})
	t.Cleanup(proxy.Close)
	yaml := strings.Replace(w.yaml(), w.song.URL(), proxy.URL, 1)
	w.set.configuration = func(*world) string { return yaml }
	return w, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// send sends a request of a client with a trace.
func (w *world) send(method, path, flags, body string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("traceparent", "00-"+clientTrace+"-"+clientSpan+"-"+flags)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, _ := io.ReadAll(res.Body); res.StatusCode > 299 {
		w.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, answer)
	}
}

// TestTraceOfARecord: a trigger's trace goes through the queue, also to another process after a restart, to the upstream and to the bulk
// request; log lines name it.
func TestTraceOfARecord(t *testing.T) {
	t.Parallel()
	c := newReceiver(t)
	w, upstream := tracedWorld(t, c, settings{})
	id := w.fill("S1", 1)[0]
	w.song.Fail(testkit.Fault{Path: regexp.MustCompile("/analysis/"), Times: 1 << 30, Status: http.StatusServiceUnavailable})
	w.start()
	w.send(http.MethodPost, recordPath("S1", id), "01", "")
	w.eventually(wait, func() (bool, string) {
		return w.metric("tutti_documents_total", "outcome", "retried") > 0, "the record is not tried"
	})
	w.stop()
	first := len(c.named("process record"))
	w.song.ClearFaults()
	w.start()
	w.awaitOutcomes(core.OutcomeIndexed, 1)
	w.stop()

	request := c.one("POST /index/repository/")
	if hex.EncodeToString(request.GetTraceId()) != clientTrace || hex.EncodeToString(request.GetParentSpanId()) != clientSpan ||
		attributes(request)["http.response.status_code"] != "202" || strings.Contains(request.GetName(), id) {
		t.Errorf("the request is %v", request)
	}
	process := c.named("process record")
	c.wantBelow(request, process...)
	if first == 0 || len(process) <= first || process[0].GetStatus().GetMessage() != string(core.CodeOverloaded) && process[0].GetStatus().GetMessage() != string(core.CodeUnavailable) {
		t.Errorf("%d of %d spans of the first process:\n%s", first, len(process), c.tree())
	}
	last := process[len(process)-1]
	if of := attributes(last); of["record_id"] != id || of["repository"] != code || last.GetStatus().GetMessage() != "" {
		t.Errorf("the last is %v", last)
	}
	calls := c.named("fetch record")
	fetch, bulk := calls[len(calls)-1], c.one("bulk write")
	c.wantBelow(last, fetch, bulk)
	if attributes(bulk)["documents"] != "1" {
		t.Errorf("the bulk request is %v", bulk)
	}
	if want := "00-" + clientTrace + "-" + hex.EncodeToString(fetch.GetSpanId()) + "-01"; !slices.Contains(upstream(), want) {
		t.Errorf("the upstream got %q, not %s", upstream(), want)
	}
	if !c.services["service.name=tutti-test"] {
		t.Errorf("resources %v", c.services)
	}
	for _, line := range []string{`"msg":"request"`, `"msg":"record will be retried"`} {
		if !slices.ContainsFunc(w.logs.all(), func(l string) bool {
			return strings.Contains(l, line) && strings.Contains(l, `"trace_id":"`+clientTrace+`"`)
		}) {
			t.Errorf("no line %s with the trace", line)
		}
	}
}

// TestTraceOfAPublication: the trace of the request that publishes an analysis of the built-in repository goes on to the bulk request.
func TestTraceOfAPublication(t *testing.T) {
	t.Parallel()
	c := newReceiver(t)
	b := startBuiltIn(t, plan{more: fmt.Sprintf("tracing: {endpoint: %q, headers: X-Tenant=a%%20b}\n", c.URL)})
	id := b.submit("S1")
	b.world.send(http.MethodPut, statePath("S1", "publish", id), "01", "")
	b.awaitOutcomes(core.OutcomeIndexed, 1)
	b.stop()
	process := c.one("process record")
	c.wantBelow(c.one("PUT /studies/"), process)
	c.wantBelow(process, c.one("bulk write"))
	if hex.EncodeToString(process.GetTraceId()) != clientTrace || attributes(process)["cause"] != string(core.CauseOutbox) {
		t.Errorf("the process is %v", process)
	}
}

// TestTraceIsNotSampled: nothing is sent of a trace that its caller has not sampled, and the upstream is told so.
func TestTraceIsNotSampled(t *testing.T) {
	t.Parallel()
	c := newReceiver(t)
	w, upstream := tracedWorld(t, c, settings{})
	id := w.fill("S1", 1)[0]
	w.start()
	w.send(http.MethodPost, recordPath("S1", id), "00", "")
	w.awaitOutcomes(core.OutcomeIndexed, 1)
	w.stop()
	if got := slices.DeleteFunc(c.named(""), func(s *tracepb.Span) bool { return hex.EncodeToString(s.GetTraceId()) != clientTrace }); len(got) != 0 {
		t.Errorf("%d spans:\n%s", len(got), c.tree())
	}
	if !slices.ContainsFunc(upstream(), func(h string) bool { return strings.HasPrefix(h, "00-"+clientTrace) && strings.HasSuffix(h, "-00") }) {
		t.Errorf("the upstream got %q", upstream())
	}
}

// TestTraceOfARun: the spans of a run, of a rejected record, and of a search in what it indexed.
func TestTraceOfARun(t *testing.T) {
	t.Parallel()
	c := newReceiver(t)
	w, _ := tracedWorld(t, c, settings{})
	w.fill("S1", 230)
	w.put("S1", "bad", `"analysisType":"not an object"`)
	w.start()
	w.send(http.MethodPost, runPath("S1"), "01", "{}")
	w.eventually(wait, func() (bool, string) {
		a := w.mustRequest(http.MethodGet, "/jobs?limit=1", http.StatusOK)
		return strings.Contains(string(a.raw), `"partial"`), string(a.raw)
	})
	w.send(http.MethodPost, "/graphql", "01", `{"query":"{analysis{hits(first:1){total}}}"}`)
	w.stop()

	request, run := c.one("POST /index/repository/"), c.one("process organization")
	c.wantBelow(request, run)
	pages := c.named("process page")
	if len(pages) < 3 {
		t.Fatalf("%d pages:\n%s", len(pages), c.tree())
	}
	c.wantBelow(run, pages...) // beside each other
	var inPages []string
	for _, page := range pages {
		inPages = append(inPages, string(page.GetSpanId()))
	}
	for _, name := range []string{"fetch page", "bulk write", "store dead letter"} {
		found := c.named(name)
		if len(found) == 0 || slices.ContainsFunc(found, func(s *tracepb.Span) bool { return !slices.Contains(inPages, string(s.GetParentSpanId())) }) {
			t.Errorf("%s is not below the pages:\n%s", name, c.tree())
		}
	}
	if of := attributes(c.one("store dead letter")); of["reason"] != core.ReasonRejected || of["record_id"] != "bad" {
		t.Errorf("the dead letter is %v", of)
	}
	post, operation, search := c.one("POST /graphql"), c.one("graphql"), c.one("search")
	c.wantBelow(post, operation)
	c.wantBelow(operation, search)
	if of := attributes(search); of["catalogue"] != w.alias || of["kind"] != "hits" || attributes(operation)["kind"] != "hits" {
		t.Errorf("the search is %v", search)
	}
	for _, s := range c.named("") {
		for name, value := range attributes(s) {
			if strings.Contains(value, "not an object") || strings.Contains(value, "hits(first") {
				t.Errorf("%s of %s is %s", name, s.GetName(), value)
			}
		}
	}
}

// TestTraceReceiverAway: a receiver that cannot be reached delays and fails nothing.
func TestTraceReceiverAway(t *testing.T) {
	t.Parallel()
	c := newReceiver(t)
	w, _ := tracedWorld(t, c, settings{})
	c.Close()
	id := w.fill("S1", 1)[0]
	w.start()
	w.send(http.MethodPost, recordPath("S1", id), "01", "")
	w.awaitOutcomes(core.OutcomeIndexed, 1)
	w.eventually(wait, func() (bool, string) {
		return w.metric("tutti_trace_spans_total", "result", "failed") >= 4, "no failure is counted"
	})
	w.stop()
	lines := slices.DeleteFunc(w.logs.all(), func(l string) bool { return !strings.Contains(l, "traces could not be sent") })
	if len(lines) != 1 || !strings.Contains(lines[0], `"level":"WARN"`) {
		t.Errorf("logged: %q", lines)
	}
}
