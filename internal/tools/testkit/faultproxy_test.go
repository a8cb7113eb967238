package testkit_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

func proxy(t *testing.T, target string, rates testkit.FaultRates) *testkit.FaultProxy {
	t.Helper()
	p, err := testkit.NewFaultProxy(target, 1, rates)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestFaultProxyPassesUnlessOn(t *testing.T) {
	t.Parallel()
	s := serve(t, testkit.SongConfig{BasePath: "/b"})
	p := proxy(t, s.URL(), testkit.FaultRates{ResetRequest: 1})
	path := "/studies/a%2Fb%3F/analysis/%2E%2E"
	direct, wantBody, err := get(t, s.URL()+"/studies/all")
	if err != nil {
		t.Fatal(err)
	}
	if status, body, err := get(t, p.URL()+"/studies/all"); err != nil || status != direct || body != wantBody {
		t.Errorf("%d %s %v", status, body, err)
	}
	if _, _, err := get(t, p.URL()+path); err != nil {
		t.Error(err)
	}
	raw := s.RawPaths()
	if got := raw[len(raw)-1]; got != "/b"+path {
		t.Errorf("the path became %s", got)
	}
	p.On(true)
	if _, _, err := get(t, p.URL()+"/studies/all"); err == nil {
		t.Error("no reset")
	}
	p.On(false)
	if _, _, err := get(t, p.URL()+"/studies/all"); err != nil {
		t.Error(err)
	}
	want := testkit.FaultCounts{Requests: 4, Passed: 3, ResetRequest: 1}
	if d := cmp.Diff(want, p.Counts()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestFaultProxyFaults(t *testing.T) {
	t.Parallel()
	s := serve(t, testkit.SongConfig{})
	s.PutAll(dataset.GenerateAnalyses(1, "S", 50)...)
	path := "/studies/S/analysis/paginated?limit=50"
	_, whole, err := get(t, s.URL()+path)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		rates  testkit.FaultRates
		counts testkit.FaultCounts
		reach  int
		check  func(status int, body string, err error) bool
	}{
		"429": {
			testkit.FaultRates{TooManyRequests: 1},
			testkit.FaultCounts{Requests: 1, TooManyRequests: 1},
			0,
			func(status int, _ string, err error) bool { return err == nil && status == http.StatusTooManyRequests },
		},
		"503": {
			testkit.FaultRates{Unavailable: 1},
			testkit.FaultCounts{Requests: 1, Unavailable: 1},
			0,
			func(status int, _ string, err error) bool {
				return err == nil && status == http.StatusServiceUnavailable
			},
		},
		"reset request": {
			testkit.FaultRates{ResetRequest: 1},
			testkit.FaultCounts{Requests: 1, ResetRequest: 1},
			0,
			func(status int, _ string, err error) bool { return err != nil && status == 0 },
		},
		"reset response": {
			testkit.FaultRates{ResetResponse: 1},
			testkit.FaultCounts{Requests: 1, ResetResponse: 1},
			1,
			func(_ int, body string, err error) bool { return err != nil && len(body) < len(whole) },
		},
		"stall": {
			testkit.FaultRates{Stall: 1, StallFor: time.Millisecond},
			testkit.FaultCounts{Requests: 1, Stalled: 1},
			1,
			func(_ int, body string, err error) bool { return err == nil && body == whole },
		},
		"cut": {
			testkit.FaultRates{Cut: 1},
			testkit.FaultCounts{Requests: 1, Cut: 1},
			1,
			func(_ int, body string, err error) bool { return err == nil && body == whole[:len(whole)/2] },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := serve(t, testkit.SongConfig{})
			target.PutAll(dataset.GenerateAnalyses(1, "S", 50)...)
			p := proxy(t, target.URL(), tt.rates)
			p.On(true)
			if status, body, err := get(t, p.URL()+path); !tt.check(status, body, err) {
				t.Errorf("%d, %d bytes, %v", status, len(body), err)
			}
			if d := cmp.Diff(tt.counts, p.Counts()); d != "" || target.Requests(testkit.RoutePage) != tt.reach {
				t.Errorf("reached %d times (-want +got):\n%s", target.Requests(testkit.RoutePage), d)
			}
		})
	}
}

func TestFaultProxyRatesAndSeed(t *testing.T) {
	t.Parallel()
	s := serve(t, testkit.SongConfig{})
	run := func() testkit.FaultCounts {
		p := proxy(t, s.URL(), testkit.FaultRates{TooManyRequests: .2, Unavailable: .1})
		p.On(true)
		for range 300 {
			if _, _, err := get(t, p.URL()+"/isAlive"); err != nil {
				t.Fatal(err)
			}
		}
		return p.Counts()
	}
	first := run()
	if d := cmp.Diff(first, run()); d != "" {
		t.Errorf("the same seed returns other faults:\n%s", d)
	}
	if first.TooManyRequests < 40 || first.TooManyRequests > 80 || first.Unavailable < 15 || first.Unavailable > 45 {
		t.Errorf("%+v", first)
	}
}

func TestFaultProxyDown(t *testing.T) {
	t.Parallel()
	s := serve(t, testkit.SongConfig{})
	p := proxy(t, s.URL(), testkit.FaultRates{})
	url := p.URL()
	if err := p.SetDown(true); err != nil {
		t.Fatal(err)
	}
	if _, _, err := get(t, url+"/isAlive"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("down: %v", err)
	}
	if err := p.SetDown(false); err != nil {
		t.Fatal(err)
	}
	if _, body, err := get(t, url+"/isAlive"); err != nil || body != "true" {
		t.Errorf("up again: %s, %v", body, err)
	}
	if _, err := testkit.NewFaultProxy("nowhere", 1, testkit.FaultRates{}); err == nil {
		t.Error("took a target without a host")
	}
}

// TestFaultProxyEarlyResponse: a response that begins before the target has read the request's body is passed whole.
func TestFaultProxyEarlyResponse(t *testing.T) {
	t.Parallel()
	const length = 100 << 10
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", length/2))
		_ = control.Flush()
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("x", length/2))
	}))
	defer target.Close()
	p := proxy(t, target.URL, testkit.FaultRates{})
	ctx, cancel := context.WithTimeout(t.Context(), testkit.HangLimit)
	defer cancel()
	rest, send := io.Pipe()
	context.AfterFunc(ctx, func() { _ = send.Close() })
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL(), rest)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 2
	go func() { _, _ = io.WriteString(send, "{") }()
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	go func() { _, _ = io.WriteString(send, "}") }()
	if body, err := io.ReadAll(res.Body); err != nil || len(body) != length {
		t.Errorf("%d bytes of %d, %v", len(body), length, err)
	}
}
