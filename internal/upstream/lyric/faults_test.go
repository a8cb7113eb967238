package lyric_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/upstream"
	"tutti/internal/upstream/lyric"
)

// TestStatuses: none of these is Lyric's error for a page without rows or an unknown record.
func TestStatuses(t *testing.T) {
	t.Parallel()
	const noData = `{"error":"Not Found","message":"No Submitted data found"}`
	tests := []struct {
		name  string
		fault testkit.Fault
		code  core.Code
		retry time.Duration
	}{
		{"429", testkit.Fault{Status: 429, RetryAfter: "3"}, core.CodeOverloaded, 3 * time.Second},
		{"503", testkit.Fault{Status: 503}, core.CodeOverloaded, 0},
		{"503 with words", testkit.Fault{Status: 503, Body: noData}, core.CodeOverloaded, 0},
		{"500", testkit.Fault{Status: 500}, core.CodeUnavailable, 0},
		{"502 html", testkit.Fault{Status: 502, ContentType: "text/html", Body: "<html>"}, core.CodeUnavailable, 0},
		{"504", testkit.Fault{Status: 504}, core.CodeUnavailable, 0},
		{"408", testkit.Fault{Status: 408}, core.CodeUnavailable, 0},
		{"204", testkit.Fault{Status: 204}, core.CodeUnavailable, 0},
		{"400", testkit.Fault{Status: 400}, core.CodeUpstream, 0},
		{"400 with words", testkit.Fault{Status: 400, Body: noData}, core.CodeUpstream, 0},
		{"401", testkit.Fault{Status: 401}, core.CodeUpstream, 0},
		{"403", testkit.Fault{Status: 403}, core.CodeUpstream, 0},
		{"410 with words", testkit.Fault{Status: 410, Body: noData}, core.CodeUpstream, 0},
		{"404 html", testkit.Fault{Status: 404, ContentType: "text/html", Body: "<html>No Submitted data found</html>"}, core.CodeUpstream, 0},
		{"404 empty", testkit.Fault{Status: 404, ContentType: "text/plain"}, core.CodeUpstream, 0},
		{"404 of Express", testkit.Fault{Status: 404, ContentType: "text/html", Body: "<pre>Cannot GET /data</pre>"}, core.CodeUpstream, 0},
		{"404 of NestJS", testkit.Fault{Status: 404, Body: `{"statusCode":404,"message":"Cannot GET /data","error":"Not Found"}`}, core.CodeUpstream, 0},
		{"404 of Spring", testkit.Fault{Status: 404, Body: `{"status":404,"error":"Not Found","message":"No message available"}`}, core.CodeUpstream, 0},
		{"404 other words", testkit.Fault{Status: 404}, core.CodeUpstream, 0},
		{"404 other error", testkit.Fault{Status: 404, Body: `{"error":"Gone","message":"No Submitted data found"}`}, core.CodeUpstream, 0},
		{"404 no error", testkit.Fault{Status: 404, Body: `{"message":"No Submitted data found"}`}, core.CodeUpstream, 0},
		{"404 message no string", testkit.Fault{Status: 404, Body: `{"error":"Not Found","message":["No Submitted data found"]}`}, core.CodeUpstream, 0},
		{"404 nested", testkit.Fault{Status: 404, Body: `{"x":` + noData + `}`}, core.CodeUpstream, 0},
		{"404 array", testkit.Fault{Status: 404, Body: `[` + noData + `]`}, core.CodeUpstream, 0},
		{"404 cut", testkit.Fault{Status: 404, Body: noData[:len(noData)-1]}, core.CodeUpstream, 0},
		{"404 words in between", testkit.Fault{Status: 404, Body: `{"error":"Not Found","message":"x No Submitted data found"}`}, core.CodeUpstream, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, testkit.LyricConfig{})
			server.Fail(tt.fault)
			c := client(t, server, lyric.Config{})
			_, recordErr := c.Record(t.Context(), "O1", "a")
			_, _, pageErr := read(t, c, "O1", 0, 1)
			_, listErr := c.Organizations(t.Context())
			for _, err := range []error{recordErr, pageErr, listErr} {
				if core.CodeOf(err) != tt.code || core.RetryAfterOf(err) != tt.retry {
					t.Errorf("%v with code %q, retry after %v", err, core.CodeOf(err), core.RetryAfterOf(err))
				}
				if foreign := tt.fault.Status == 404 && tt.code == core.CodeUpstream; errors.Is(err, core.ErrForeignNotFound) != foreign {
					t.Errorf("%v is a foreign 404: %v, want %v", err, !foreign, foreign)
				}
				if !strings.HasPrefix(core.MessageOf(err), "the upstream answered with status "+tt.name[:3]) || strings.Contains(err.Error(), "Submitted") {
					t.Errorf("message %q of %v", core.MessageOf(err), err)
				}
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	other := serve(t, testkit.LyricConfig{})
	server := serve(t, testkit.LyricConfig{})
	for _, location := range []string{other.URL() + "/category/1", "/category/1"} {
		server.ClearFaults()
		server.Fail(testkit.Fault{Path: regexp.MustCompile("/id/"), Status: 302, Location: location})
		_, err := client(t, server, lyric.Config{Config: upstream.Config{Token: "secret"}}).Record(t.Context(), "O1", "a")
		wantError(t, location, err, core.CodeUpstream, "the upstream answered with a redirect")
		if !errors.Is(err, upstream.ErrRedirect) {
			t.Errorf("%s: %v", location, err)
		}
	}
	if n := len(other.RawPaths()) + server.Requests(testkit.LyricRouteCategory); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

func TestAuth(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		server testkit.LyricConfig
		good   lyric.Config
	}{
		"bearer": {testkit.LyricConfig{Token: "t"}, lyric.Config{Config: upstream.Config{Token: "t"}}},
		"basic":  {testkit.LyricConfig{Username: "u", Password: "p"}, lyric.Config{Config: upstream.Config{Username: "u", Password: "p"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, tt.server)
			if _, err := client(t, server, tt.good).Organizations(t.Context()); err != nil {
				t.Error(err)
			}
			_, err := client(t, server, lyric.Config{}).Organizations(t.Context())
			wantError(t, "without credentials", err, core.CodeUpstream, "the upstream answered with status 401")
			if core.HintOf(err) == "" {
				t.Error("no hint")
			}
		})
	}
}

func TestBrokenResponses(t *testing.T) {
	t.Parallel()
	const cut, late = "the upstream's answer was cut short", "the upstream did not answer in time"
	for name, tt := range map[string]struct {
		fault   testkit.Fault
		message string
		is      error
	}{
		"reset in the body":     {testkit.Fault{Cut: 5000}, cut, nil},
		"reset at once":         {testkit.Fault{Cut: 1}, cut, nil},
		"cut in good order":     {testkit.Fault{Truncate: 5000}, cut, upstream.ErrTruncated},
		"cut by one byte":       {testkit.Fault{Truncate: 1}, cut, upstream.ErrTruncated},
		"no headers in time":    {testkit.Fault{Release: make(chan struct{})}, late, upstream.ErrTimeout},
		"no more body in time":  {testkit.Fault{StallAfter: 5000, Release: make(chan struct{})}, late, upstream.ErrTimeout},
		"stall behind one byte": {testkit.Fault{StallAfter: 1, Release: make(chan struct{})}, late, upstream.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, testkit.LyricConfig{})
			records := testkit.GenerateRecords(1, "O1", 20)
			server.PutAll(records...)
			server.Fail(tt.fault)
			cfg := lyric.Config{}
			if errors.Is(tt.is, upstream.ErrTimeout) {
				cfg.Timeout = 100 * time.Millisecond
			}
			c := client(t, server, cfg)
			_, _, err := read(t, c, "O1", 0, 20)
			wantError(t, "page", err, core.CodeUnavailable, tt.message)
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("page: %v is not %v", err, tt.is)
			}
			if tt.fault.Cut > 1000 || tt.fault.Truncate > 1000 || tt.fault.StallAfter > 1000 {
				return // a record is smaller
			}
			_, err = c.Record(t.Context(), "O1", records[0].SystemID)
			wantError(t, "record", err, core.CodeUnavailable, tt.message)
		})
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	c := client(t, server, lyric.Config{})
	server.Close()
	_, err := c.Organizations(t.Context())
	wantError(t, "list", err, core.CodeUnavailable, "the upstream could not be reached: nothing listens there")
}

// replay responds with the body of an earlier response, without a connection, so that a test can have a clock of its own.
type replay struct{ body []byte }

func (t *replay) RoundTrip(r *http.Request) (*http.Response, error) {
	body := cancelled{r.Context(), bytes.NewReader(t.body)}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body)}, nil
}

// cancelled fails to read once the request was cancelled, as the body of a connection does.
type cancelled struct {
	request context.Context //nolint:containedctx // of the request that it is the response of
	body    io.Reader
}

func (b cancelled) Read(p []byte) (int, error) {
	if err := b.request.Err(); err != nil {
		return 0, err
	}
	return b.body.Read(p)
}

// record sends requests to the server, and keeps the body of the last response.
type record struct{ replay }

func (t *record) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if t.body, err = io.ReadAll(res.Body); err != nil {
		return nil, err
	}
	return t.replay.RoundTrip(r)
}

// TestSlowCallbackIsNoTimeout: a page whose callback is slower than the timeout is read completely.
func TestSlowCallbackIsNoTimeout(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	server.PutAll(testkit.GenerateRecords(1, "O1", 3000)...)
	var response record
	if _, err := client(t, server, lyric.Config{Config: upstream.Config{Transport: &response}}).Page(t.Context(), "O1", 0, 3000, func(core.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Minute
		c := client(t, server, lyric.Config{Config: upstream.Config{Timeout: timeout, Transport: &response.replay}})
		n := 0
		info, err := c.Page(t.Context(), "O1", 0, 3000, func(core.Record) error {
			if n++; n == 1 || n == 1500 {
				time.Sleep(3 * timeout / 2)
			}
			return nil
		})
		if err != nil || info.Rows != 3000 || n != 3000 {
			t.Errorf("%+v after %d records: %v", info, n, err)
		}
	})
}

func TestCancelledByTheCaller(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	server.PutAll(testkit.GenerateRecords(1, "O1", 1000)...)
	server.Fail(testkit.Fault{StallAfter: 100_000, Release: make(chan struct{})})
	c := client(t, server, lyric.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := c.Page(ctx, "O1", 0, 1000, func(core.Record) error {
		cancel()
		return nil
	})
	wantError(t, "page", err, core.CodeUnavailable, "the call to the upstream was canceled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("page: %v", err)
	}
	if _, err = c.Record(ctx, "O1", "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("record: %v", err)
	}
}

func TestRecordOverTheLimit(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	generated := testkit.GenerateRecords(1, "O1", 1)[0]
	server.PutAll(generated)
	c := client(t, server, lyric.Config{Config: upstream.Config{MaxRecordBytes: 500}, ValidOnly: true})
	record, err := c.Record(t.Context(), "O1", generated.SystemID)
	if err != nil || record.TooLarge == nil || record.TooLarge.Size < 500 {
		t.Fatalf("%+v, %v", record, err)
	}
	want := core.Record{ID: generated.SystemID, Organization: "O1", Indexable: true, TooLarge: record.TooLarge}
	if d := cmp.Diff(want, record); d != "" {
		t.Errorf("record (-want +got):\n%s", d)
	}
	rows, info, err := read(t, c, "O1", 0, 1)
	if d := cmp.Diff([]core.Record{want}, rows); err != nil || info.Total != 1 || d != "" {
		t.Errorf("%v, %+v, page (-want +got):\n%s", err, info, d)
	}
}

func TestCategoryOverTheLimit(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	server.Fail(testkit.Fault{Status: 200, Body: `{"organizations":["` + strings.Repeat("o", 16<<20) + `"]}`})
	_, err := client(t, server, lyric.Config{}).Organizations(t.Context())
	wantError(t, "list", err, core.CodeUpstream, "the upstream's category is too large")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	server := serve(t, testkit.LyricConfig{})
	put(t, server, "O1", "a", true)
	c := client(t, server, lyric.Config{Config: upstream.Config{Repository: "ca", Metrics: upstream.NewMetrics(registry)}})
	expect := func(step string, calls uint64, up float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil || len(families) != 2 {
			t.Fatalf("%v, %v", families, err)
		}
		if n := families[0].GetMetric()[0].GetHistogram().GetSampleCount(); n != calls || families[0].GetName() != "tutti_fetch_duration_seconds" {
			t.Errorf("%s: %s counts %d calls, want %d", step, families[0].GetName(), n, calls)
		}
		gauge := families[1].GetMetric()[0]
		if gauge.GetGauge().GetValue() != up || gauge.GetLabel()[0].GetValue() != "ca" || families[1].GetName() != "tutti_upstream_up" {
			t.Errorf("%s: %s: %v, want %v", step, families[1].GetName(), gauge, up)
		}
	}
	page := func() { _, _, _ = read(t, c, "O1", 0, 1) } // its errors are tested above
	page()
	expect("a page", 1, 1)
	server.Fail(testkit.Fault{Status: 200, Body: `{"pagination":{},"records":[]}`, Times: 1})
	page()
	expect("a page of a wrong shape", 2, 0)
	_, _, _ = read(t, c, "nobody", 0, 1)
	expect("no data is an answer", 3, 1)
	server.Fail(testkit.Fault{Status: 500, Times: 1})
	page()
	expect("a server's error", 4, 0)
	server.Fail(testkit.Fault{Status: 200, Body: envelope("", "O1", true), Times: 2})
	_, _ = c.Record(t.Context(), "O1", "a")
	expect("no record", 5, 0)
}
