package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

func TestRequestIDIsEchoedOrMade(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for name, tt := range map[string]struct{ sent, want string }{
		"echoed":          {"abc-123", "abc-123"},
		"spaces":          {" a b ", "ab"},
		"control":         {"a\x00\x1b[31mb", "a[31mb"},
		"not ASCII":       {"é🧬x", "x"},
		"cut":             {strings.Repeat("x", 200), strings.Repeat("x", 128)},
		"nothing is left": {"🧬", ""},
		"absent":          {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/ping", nil)
			r.Header["X-Request-Id"] = []string{tt.sent}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			got := w.Header().Get("X-Request-Id")
			if tt.want == "" {
				if len(got) != 36 || got[14] != '7' {
					t.Errorf("got %q, want a UUID of version 7", got)
				}
			} else if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestHostCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		host  string
		hosts []string
		ok    bool
	}{
		"localhost":        {"localhost:8080", nil, true},
		"capitals":         {"LocalHost", nil, true},
		"final dot":        {"localhost.", nil, true},
		"loopback":         {"127.0.0.1:8080", nil, true},
		"loopback net":     {"127.9.9.9", nil, true},
		"loopback six":     {"[::1]:8080", nil, true},
		"bare six":         {"[::1]", nil, true},
		"mapped":           {"[::ffff:127.0.0.1]:1", nil, true},
		"listed":           {"Tutti.example.org:443", []string{"tutti.example.org"}, true},
		"listed with port": {"tutti.example.org", []string{"tutti.example.org:8080"}, true},
		"all":              {"evil.example", []string{"*"}, true},
		"rebound":          {"evil.example:8080", []string{"tutti.example.org"}, false},
		"prefix":           {"localhost.evil.example", nil, false},
		"suffix":           {"evil.tutti.example.org", []string{"tutti.example.org"}, false},
		"public address":   {"192.0.2.1", nil, false},
		"odd number":       {"0x7f.1", nil, false},
		"unspecified":      {"0.0.0.0", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := apitest.NewHandler(t, apitest.Working(), api.Config{CheckHost: true, Hosts: tt.hosts})
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs", Host: tt.host})
			if tt.ok {
				if res.StatusCode != 200 {
					t.Errorf("got %d", res.StatusCode)
				}
				return
			}
			apitest.WantProblem(t, res, body, 421, "misdirected_request", "Host header")
		})
	}
	res, _ := apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs", Host: "any.example"})
	if res.StatusCode != 200 {
		t.Errorf("unchecked: got %d", res.StatusCode)
	}
}

// TestMonitoringMayAskByAnyHost: probes and scrapes come with a pod's address as their Host.
func TestMonitoringMayAskByAnyHost(t *testing.T) {
	for _, base := range []string{"", "/base"} {
		h := apitest.NewHandler(t, apitest.Working(), api.Config{BasePath: base, CheckHost: true})
		for _, target := range []string{"/ping", "/ready", "/metrics", "/ping?"} {
			res, _ := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: base + target, Host: "10.1.2.3:8080"})
			if res.StatusCode != 200 {
				t.Errorf("%s: got %d", base+target, res.StatusCode)
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), "HEAD", base+"/ping", nil)
		r.Host = "10.1.2.3"
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 200 {
			t.Errorf("HEAD: got %d", w.Code)
		}
		for _, a := range []apitest.Ask{
			{Method: "GET", Target: "/jobs"},
			{Method: "GET", Target: "/jobs/ping"},
			{Method: "GET", Target: "/openapi.json"},
			{Method: "GET", Target: "/ping/"},
			{Method: "GET", Target: "/pin%67"},
			{Method: "POST", Target: "/ping"},
			{Method: "POST", Target: apitest.RepositoryPath},
			{Method: "GET", Target: "/nowhere"},
		} {
			a.Target, a.Host = base+a.Target, "10.1.2.3:8080"
			res, body := apitest.Do(t, h, a)
			apitest.WantProblem(t, res, body, 421, "misdirected_request", "Host header")
		}
	}
}

func TestCrossOriginRequestsAreRefused(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for name, header := range map[string]http.Header{
		"fetch metadata": {"Sec-Fetch-Site": {"cross-site"}},
		"origin":         {"Origin": {"https://evil.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Header: header})
			apitest.WantProblem(t, res, body, 403, "forbidden", "another origin")
			if res, _ := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs", Header: header}); res.StatusCode != 200 {
				t.Errorf("reading: got %d", res.StatusCode)
			}
		})
	}
	same := http.Header{"Origin": {"http://localhost"}, "Sec-Fetch-Site": {"same-origin"}}
	if res, _ := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Header: same}); res.StatusCode != 202 {
		t.Errorf("same origin: got %d", res.StatusCode)
	}
}

func TestMethodNotAllowedNamesTheAllowedOnes(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for _, tt := range []struct{ method, target, allow string }{
		{"PUT", apitest.RecordPath, "GET, HEAD, POST, DELETE"},
		{"DELETE", apitest.OrganizationPath, "POST"},
		{"POST", "/jobs/j", "GET, HEAD, DELETE"},
		{"POST", "/ping", "GET, HEAD"},
		{"OPTIONS", "/jobs", "GET, HEAD"},
		{"HEAD", apitest.RepositoryPath, "POST"},
		{"PROPFIND", "/metrics", "GET, HEAD"},
		{"TRACE", "/openapi.json", "GET, HEAD"},
	} {
		t.Run(tt.method+tt.target, func(t *testing.T) {
			res, body := apitest.Do(t, h, apitest.Ask{Method: tt.method, Target: tt.target})
			apitest.WantProblem(t, res, body, 405, "method_not_allowed", "does not support this method")
			if got := res.Header.Get("Allow"); got != tt.allow {
				t.Errorf("allow: got %q, want %q", got, tt.allow)
			}
		})
	}
	res, body := apitest.Do(t, h, apitest.Ask{Method: "PROPFIND", Target: "/nowhere"})
	apitest.WantProblem(t, res, body, 404, "not_found", "no resource has this path")
}

func TestUnknownQueryParametersAreRefused(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	const none = "this path takes no query parameters"
	nearest := func(name string) string { return "the nearest query parameter of this path is " + name }
	for _, tt := range []struct{ method, target, name, hint string }{
		{"GET", "/jobs?status=running&limit=5", `"status"`, nearest("state")},
		{"GET", "/jobs?Limit=5", `"Limit"`, nearest("limit")},
		{"GET", "/jobs/j?state=x", `"state"`, none},
		{"DELETE", "/jobs/j?force=true", `"force"`, none},
		{"GET", "/ping?=", `""`, none},
		{"GET", "/ready?z=1&a%00=1", `"a\x00"`, none},
		{"GET", "/metrics?name=go_info", `"name"`, nearest("name[]")},
		{"GET", "/openapi.json?" + strings.Repeat("x", 63) + "%C3%A9=1", `"` + strings.Repeat("x", 63) + `"`, none},
	} {
		t.Run(tt.method+tt.target, func(t *testing.T) {
			res, body := apitest.Do(t, h, apitest.Ask{Method: tt.method, Target: tt.target})
			if p := apitest.WantProblem(t, res, body, 400, "invalid", "unknown query parameter "+tt.name); p.Hint != tt.hint {
				t.Errorf("hint: got %q, want %q", p.Hint, tt.hint)
			}
		})
	}
	res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/ready?a=%zz"})
	apitest.WantProblem(t, res, body, 400, "invalid", "query string is malformed")
}

func TestAccept(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for accept, ok := range map[string]bool{
		"":                         true,
		"*/*":                      true,
		"application/json":         true,
		"application/problem+json": true,
		"APPLICATION/*;q=0.1":      true,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
		"text/plain, application/json; charset=utf-8":                     true,
		"text/html":                         false,
		"application/xml, text/*":           false,
		"application/json;q=0":              false,
		"*/*, application/json;q=0":         false,
		"application/json;q=0.0, */*;q=0.5": false,
		"*/*;q=0":                           false,
		",":                                 true,
	} {
		t.Run(accept, func(t *testing.T) {
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs", Header: http.Header{"Accept": {accept}}})
			if ok {
				if res.StatusCode != 200 {
					t.Errorf("got %d", res.StatusCode)
				}
				return
			}
			apitest.WantProblem(t, res, body, 406, "not_acceptable", "JSON only")
		})
	}
	res, _ := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/metrics", Header: http.Header{"Accept": {"text/plain"}}})
	if res.StatusCode != 200 {
		t.Errorf("metrics: got %d", res.StatusCode)
	}
}

func TestTooLargeBodiesOnAnyRoute(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{MaxBodyBytes: 8})
	res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs", Body: strings.Repeat("x", 9)})
	apitest.WantProblem(t, res, body, 413, "too_large", "8 bytes")
	r := httptest.NewRequestWithContext(t.Context(), "POST", apitest.RepositoryPath, strings.NewReader(`{"a": "long"}`))
	r.ContentLength = -1 // chunked: the size is not said
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	apitest.WantProblem(t, w.Result(), w.Body.Bytes(), 413, "too_large", "8 bytes")
	res, _ = apitest.Do(t, h, apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Body: `{"a": 1}`})
	if res.StatusCode != 202 {
		t.Errorf("a body of the limit's size: got %d", res.StatusCode)
	}
}

func TestPanicIsAProblem(t *testing.T) {
	p := apitest.Working()
	p.GetFn = func(string) (core.Job, error) { panic("secret") }
	var log bytes.Buffer
	h := apitest.NewHandler(t, p, api.Config{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs/j"})
	apitest.WantProblem(t, res, body, 500, "internal", "an internal error occurred")
	if strings.Contains(string(body), "secret") {
		t.Errorf("the panic is shown: %s", body)
	}
	if !strings.Contains(log.String(), "panic: secret") {
		t.Errorf("the panic is not logged: %s", log.String())
	}
}

func TestAbortIsLeftToTheServer(t *testing.T) {
	p := apitest.Working()
	p.GetFn = func(string) (core.Job, error) { panic(http.ErrAbortHandler) }
	h := apitest.NewHandler(t, p, api.Config{})
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("got %v", err)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/jobs/j", nil))
	t.Error("no panic")
}

func TestLogLine(t *testing.T) {
	p := apitest.Working()
	p.GetFn = func(string) (core.Job, error) {
		return core.Job{}, core.WrapError(core.CodeUnavailable, "the queue does not answer", errors.New("dial: refused"))
	}
	var log bytes.Buffer
	h := apitest.NewHandler(t, p, api.Config{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/jobs/a%0Ab?token=s3cret", nil)
	r.Header.Set("Authorization", "Bearer s3cret")
	h.ServeHTTP(httptest.NewRecorder(), r)
	apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs/j"})
	apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/ping"})
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 || strings.Contains(log.String(), "s3cret") {
		t.Fatalf("got %s", log.String())
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &line); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"level": "WARN", "msg": "request", "method": "GET", "route": "/jobs/{id}", "path": "/jobs/j", "status": 503.0,
		"request_id": "req-1", "err": "the queue does not answer: dial: refused",
	} {
		if line[key] != want {
			t.Errorf("%s: got %v, want %v", key, line[key], want)
		}
	}
	if !strings.Contains(lines[0], `"level":"INFO"`) || !strings.Contains(lines[2], `"level":"DEBUG"`) {
		t.Errorf("levels: %s", log.String())
	}
}

func TestRequestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := apitest.NewHandler(t, apitest.Working().Measured(reg), api.Config{BasePath: "/base", Metrics: api.NewMetrics(reg)})
	for _, a := range []apitest.Ask{
		{Method: "GET", Target: "/base/jobs/1"},
		{Method: "GET", Target: "/base/jobs/2"},
		{Method: "HEAD", Target: "/base/ping"},
		{Method: "FOO", Target: "/base/jobs/1"},
		{Method: "GET", Target: "/nowhere"},
		{Method: "POST", Target: "/base" + apitest.RecordPath},
	} {
		r := httptest.NewRequestWithContext(t.Context(), a.Method, a.Target, nil)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n, err := testutil.GatherAndCount(reg, "tutti_http_request_duration_seconds"); err != nil || n != 5 {
		t.Errorf("%d series, %v, want 5", n, err)
	}
	_, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/base/metrics"})
	for _, want := range []string{
		`tutti_http_request_duration_seconds_count{code="200",method="GET",route="/jobs/{id}"} 2`,
		`tutti_http_request_duration_seconds_count{code="200",method="HEAD",route="/ping"} 1`,
		`tutti_http_request_duration_seconds_count{code="405",method="other",route="unmatched"} 1`,
		`tutti_http_request_duration_seconds_count{code="404",method="GET",route="unmatched"} 1`,
		`tutti_http_request_duration_seconds_count{code="202",method="POST",route="/index/repository/{repositoryCode}/organization/{organization}/id/{id}"} 1`,
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("missing %s in\n%s", want, body)
		}
	}
}

func TestNewRefusesABadConfig(t *testing.T) {
	p := apitest.Working()
	for _, cfg := range []api.Config{{BasePath: "tutti"}, {BasePath: "/a b"}, {BasePath: "/{x}"}, {BasePath: "/*"}, {MaxBodyBytes: -1}} {
		if _, err := apitest.Assemble(p, cfg); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("%+v: got %v", cfg, err)
		}
	}
	if _, err := apitest.Assemble(p, api.Config{BasePath: "/"}); err != nil {
		t.Error(err)
	}
}

func ExampleNew() {
	p := apitest.Working()
	h, err := apitest.Assemble(p, api.Config{})
	if err != nil {
		return
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "GET", "/ping", nil))
	fmt.Println(w.Body.String())
	// Output: {"message":"tutti is alive"}
}
