package song_test

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
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream"
	"tutti/internal/upstream/song"
)

func TestStatuses(t *testing.T) {
	t.Parallel()
	notFound := `{"errorId":"analysis.id.not.found","message":"secret"}`
	tests := []struct {
		name  string
		fault testkit.Fault
		code  core.Code
		retry time.Duration
	}{
		{"429", testkit.Fault{Status: 429, RetryAfter: "3"}, core.CodeOverloaded, 3 * time.Second},
		{"503", testkit.Fault{Status: 503}, core.CodeOverloaded, 0},
		{"503 with words", testkit.Fault{Status: 503, Body: notFound}, core.CodeOverloaded, 0},
		{"500", testkit.Fault{Status: 500}, core.CodeUnavailable, 0},
		{"502 html", testkit.Fault{Status: 502, ContentType: "text/html", Body: "<html>"}, core.CodeUnavailable, 0},
		{"504", testkit.Fault{Status: 504}, core.CodeUnavailable, 0},
		{"408", testkit.Fault{Status: 408}, core.CodeUnavailable, 0},
		{"204", testkit.Fault{Status: 204}, core.CodeUnavailable, 0},
		{"400", testkit.Fault{Status: 400}, core.CodeUpstream, 0},
		{"401", testkit.Fault{Status: 401}, core.CodeUpstream, 0},
		{"403", testkit.Fault{Status: 403}, core.CodeUpstream, 0},
		{"410", testkit.Fault{Status: 410}, core.CodeUpstream, 0},
		{"410 with words", testkit.Fault{Status: 410, Body: notFound}, core.CodeUpstream, 0},
		{"404 html", testkit.Fault{Status: 404, ContentType: "text/html", Body: "<html>analysis.id.not.found</html>"}, core.CodeUpstream, 0},
		{"404 empty", testkit.Fault{Status: 404, ContentType: "text/plain"}, core.CodeUpstream, 0},
		{"404 other id", testkit.Fault{Status: 404, Body: `{"errorId":"file.not.found"}`}, core.CodeUpstream, 0},
		{"404 nested id", testkit.Fault{Status: 404, Body: `{"x":` + notFound + `}`}, core.CodeUpstream, 0},
		{"404 page with a document", testkit.Fault{Status: 404, Body: `<script>{"errorId":"analysis.id.not.found"}</script>`}, core.CodeUpstream, 0},
		{"404 id no string", testkit.Fault{Status: 404, Body: `{"errorId":1}`}, core.CodeUpstream, 0},
		{"404 json array", testkit.Fault{Status: 404, Body: `[` + notFound + `]`}, core.CodeUpstream, 0},
		{"404 own words", testkit.Fault{Status: 404, Body: `{"x":[1],"errorId":"analysis.id.not.found"}`}, core.CodeAbsent, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, testkit.SongConfig{})
			server.Fail(tt.fault)
			c := client(t, server, song.Config{})
			_, recordErr := c.Record(t.Context(), "S1", "a")
			_, _, pageErr := read(t, c, "S1", 0, 1)
			for _, err := range []error{recordErr, pageErr} {
				if core.CodeOf(err) != tt.code || core.RetryAfterOf(err) != tt.retry {
					t.Errorf("%v with code %q, retry after %v", err, core.CodeOf(err), core.RetryAfterOf(err))
				}
				if foreign := tt.fault.Status == 404 && tt.code == core.CodeUpstream; errors.Is(err, core.ErrForeignNotFound) != foreign {
					t.Errorf("%v is a foreign 404: %v, want %v", err, !foreign, foreign)
				}
				if strings.Contains(core.MessageOf(err), "127.0.0.1") || strings.Contains(err.Error(), "secret") {
					t.Errorf("the error tells too much: %v", err)
				}
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	other := serve(t, testkit.SongConfig{})
	server := serve(t, testkit.SongConfig{})
	for _, location := range []string{other.URL() + "/studies/all", "/studies/all"} {
		server.ClearFaults()
		server.Fail(testkit.Fault{Path: regexp.MustCompile("analysis"), Status: 302, Location: location})
		_, err := client(t, server, song.Config{Config: upstream.Config{Token: "secret"}}).Record(t.Context(), "S1", "a")
		if core.CodeOf(err) != core.CodeUpstream || !errors.Is(err, upstream.ErrRedirect) {
			t.Errorf("%s: %v", location, err)
		}
		if hint := core.HintOf(err); hint != "set the repository's url to the target of the redirect" {
			t.Errorf("%s: hint %q", location, hint)
		}
	}
	if n := len(other.RawPaths()) + server.Requests(testkit.RouteStudies); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

func TestAuth(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		server testkit.SongConfig
		good   song.Config
	}{
		"bearer": {testkit.SongConfig{Token: "t"}, song.Config{Config: upstream.Config{Token: "t"}}},
		"basic":  {testkit.SongConfig{Username: "u", Password: "p"}, song.Config{Config: upstream.Config{Username: "u", Password: "p"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, tt.server)
			if _, err := client(t, server, tt.good).Organizations(t.Context()); err != nil {
				t.Error(err)
			}
			_, err := client(t, server, song.Config{}).Organizations(t.Context())
			if core.CodeOf(err) != core.CodeUpstream || core.MessageOf(err) != "the upstream answered with status 401" {
				t.Errorf("without credentials: %v", err)
			}
		})
	}
}

func TestBrokenResponses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault testkit.Fault
		is    error
	}{
		"reset in the body":     {testkit.Fault{Cut: 5000}, nil},
		"reset at once":         {testkit.Fault{Cut: 1}, nil},
		"cut in good order":     {testkit.Fault{Truncate: 5000}, upstream.ErrTruncated},
		"cut by one byte":       {testkit.Fault{Truncate: 1}, upstream.ErrTruncated},
		"no headers in time":    {testkit.Fault{Release: make(chan struct{})}, upstream.ErrTimeout},
		"no more body in time":  {testkit.Fault{StallAfter: 5000, Release: make(chan struct{})}, upstream.ErrTimeout},
		"stall behind one byte": {testkit.Fault{StallAfter: 1, Release: make(chan struct{})}, upstream.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, testkit.SongConfig{})
			analyses := dataset.GenerateAnalyses(1, "S1", 20)
			server.PutAll(analyses...)
			server.Fail(tt.fault)
			cfg := song.Config{}
			if errors.Is(tt.is, upstream.ErrTimeout) {
				cfg.Timeout = 100 * time.Millisecond
			}
			c := client(t, server, cfg)
			_, _, err := read(t, c, "S1", 0, 20)
			if core.CodeOf(err) != core.CodeUnavailable || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("page: %v with code %q", err, core.CodeOf(err))
			}
			if tt.fault.Cut > 1000 || tt.fault.Truncate > 1000 || tt.fault.StallAfter > 1000 {
				return // a record is smaller
			}
			if _, err = c.Record(t.Context(), "S1", analyses[0].ID); core.CodeOf(err) != core.CodeUnavailable {
				t.Errorf("record: %v with code %q", err, core.CodeOf(err))
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	c := client(t, server, song.Config{})
	server.Close()
	_, err := c.Organizations(t.Context())
	if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "the upstream could not be reached: nothing listens there" {
		t.Errorf("%v with code %q", err, core.CodeOf(err))
	}
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
	server := serve(t, testkit.SongConfig{})
	server.PutAll(dataset.GenerateAnalyses(1, "S1", 2000)...)
	var response record
	if _, err := client(t, server, song.Config{Config: upstream.Config{Transport: &response}}).Page(t.Context(), "S1", 0, 2000, func(core.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Minute
		c := client(t, server, song.Config{Config: upstream.Config{Timeout: timeout, Transport: &response.replay}})
		n := 0
		info, err := c.Page(t.Context(), "S1", 0, 2000, func(core.Record) error {
			if n++; n == 1 || n == 1000 {
				time.Sleep(3 * timeout / 2)
			}
			return nil
		})
		if err != nil || info.Rows != 2000 || n != 2000 {
			t.Errorf("%+v after %d records: %v", info, n, err)
		}
	})
}

func TestCancelledByTheCaller(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	server.PutAll(dataset.GenerateAnalyses(1, "S1", 1000)...)
	server.Fail(testkit.Fault{StallAfter: 100_000, Release: make(chan struct{})})
	c := client(t, server, song.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := c.Page(ctx, "S1", 0, 1000, func(core.Record) error {
		cancel()
		return nil
	})
	if core.CodeOf(err) != core.CodeUnavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("%v with code %q", err, core.CodeOf(err))
	}
	if _, err = c.Record(ctx, "S1", "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("record: %v", err)
	}
}

func TestRecordOverTheLimit(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	a := dataset.GenerateAnalyses(1, "S1", 1)[0]
	server.PutAll(a)
	c := client(t, server, song.Config{Config: upstream.Config{MaxRecordBytes: 1000}})
	record, err := c.Record(t.Context(), "S1", a.ID)
	if err != nil || record.TooLarge == nil || record.TooLarge.Size < 1000 {
		t.Fatalf("%+v, %v", record, err)
	}
	want := core.Record{ID: a.ID, Organization: "S1", State: "PUBLISHED", Indexable: true, TooLarge: record.TooLarge}
	if d := cmp.Diff(want, record, cmpopts.IgnoreFields(core.Record{}, "Shape")); d != "" {
		t.Errorf("record (-want +got):\n%s", d)
	}
	rows, info, err := read(t, c, "S1", 0, 1)
	if d := cmp.Diff([]core.Record{want}, rows, cmpopts.IgnoreFields(core.Record{}, "Shape")); err != nil || info.Total != 1 || d != "" {
		t.Errorf("%v, %+v, page (-want +got):\n%s", err, info, d)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	server := serve(t, testkit.SongConfig{})
	server.AddStudy("S1")
	c := client(t, server, song.Config{Config: upstream.Config{Repository: "ca", Metrics: upstream.NewMetrics(registry)}})
	expect := func(calls uint64, up float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil || len(families) != 2 {
			t.Fatalf("%v, %v", families, err)
		}
		if n := families[0].GetMetric()[0].GetHistogram().GetSampleCount(); n != calls || families[0].GetName() != "tutti_fetch_duration_seconds" {
			t.Errorf("%s counts %d calls, want %d", families[0].GetName(), n, calls)
		}
		gauge := families[1].GetMetric()[0]
		if gauge.GetGauge().GetValue() != up || gauge.GetLabel()[0].GetValue() != "ca" || families[1].GetName() != "tutti_upstream_up" {
			t.Errorf("%s: %v, want %v", families[1].GetName(), gauge, up)
		}
	}
	if _, _, err := read(t, c, "S1", 0, 1); err != nil {
		t.Fatal(err)
	}
	expect(1, 1)
	server.Fail(testkit.Fault{Status: 500, Times: 1})
	server.Fail(testkit.Fault{Truncate: 3, Times: 1})
	_, _, _ = read(t, c, "S1", 0, 1) // both fail, tested above
	expect(2, 0)
	if _, err := c.Record(t.Context(), "S1", "a"); err == nil {
		t.Error("no error")
	}
	expect(3, 0) // the truncated error document is a 404 that is not known to be Song's own
	if _, err := c.Record(t.Context(), "S1", "a"); core.CodeOf(err) != core.CodeAbsent {
		t.Errorf("%v, want absent", err)
	}
	expect(4, 1)
	server.Fail(testkit.Fault{Status: 404, ContentType: "text/html", Body: "<h1>404</h1>", Times: 1})
	if _, err := c.Record(t.Context(), "S1", "a"); !errors.Is(err, core.ErrForeignNotFound) {
		t.Error(err)
	}
	expect(5, 0)
}
