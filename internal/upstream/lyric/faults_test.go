package lyric_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
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

func TestRecordOverTheLimit(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	generated := dataset.GenerateRecords(1, "O1", 1)[0]
	server.PutAll(generated)
	c := client(t, server, lyric.Config{Config: upstream.Config{MaxRecordBytes: 500}, ValidOnly: true})
	record, err := c.Record(t.Context(), "O1", generated.SystemID)
	if err != nil || record.TooLarge == nil || record.TooLarge.Size < 500 {
		t.Fatalf("%+v, %v", record, err)
	}
	want := core.Record{ID: generated.SystemID, Organization: "O1", Indexable: true, TooLarge: record.TooLarge}
	if d := cmp.Diff(want, record, cmpopts.IgnoreFields(core.Record{}, "Shape")); d != "" {
		t.Errorf("record (-want +got):\n%s", d)
	}
	rows, info, err := read(t, c, "O1", 0, 1)
	if d := cmp.Diff([]core.Record{want}, rows, cmpopts.IgnoreFields(core.Record{}, "Shape")); err != nil || info.Total != 1 || d != "" {
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
