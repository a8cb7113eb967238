package app_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// metricNames are those of a run.
func metricNames() []string {
	return []string{
		"requests_received_total", "requests_published_total", "consumer_pending_messages", "consumer_redeliveries_total",
		"fetch_duration_seconds", "fetched_records_total", "documents_total", "bulk_requests_total",
		"bulk_request_duration_seconds", "bulk_request_bytes", "bulk_in_flight", "request_to_index_seconds", "dead_letters",
		"dead_letters_total", "jobs", "job_progress_ratio", "upstream_up", "http_request_duration_seconds", "build_info",
	}
}

// TestMetrics: after a run the counters agree with the job's totals, every metric is there, and all are well-formed.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 220)
	w.put("S1", "bad", `"analysisType":"not an object"`)
	job := w.run("S1", "", core.JobPartial)
	for name, want := range map[string]float64{
		"documents_total indexed":  job.Get("totals.indexed").Float(),
		"documents_total rejected": job.Get("totals.rejected").Float(),
		"documents_total removed":  0,
		"documents_total retried":  0,
		"fetched_records_total":    job.Get("totals.fetched").Float(),
		"dead_letters_total":       1,
		"dead_letters":             1,
		"requests_received_total":  1,
		"upstream_up":              1,
		"bulk_in_flight":           0,
		"fetch_duration_seconds":   4, // the schemas, and the pages
	} {
		metric, outcome, byOutcome := strings.Cut(name, " ")
		var labels []string
		if byOutcome {
			labels = []string{"outcome", outcome}
		}
		if got := w.metric("tutti_"+metric, labels...); got != want {
			t.Errorf("%s is %v, want %v: %s", name, got, want, job.Raw)
		}
	}
	if job.Get("totals.indexed").Int() != 220 || job.Get("totals.fetched").Int() != 221 {
		t.Errorf("totals: %s", job.Raw)
	}

	// An upstream that fails for a moment makes its Request come again.
	w.song.Fail(testkit.Fault{Path: regexp.MustCompile("/analysis/" + ids[0]), Times: 1, Status: http.StatusServiceUnavailable})
	w.put("S1", ids[0], `"experiment":{"changed":true}`)
	w.trigger("S1", ids[0])
	w.awaitOutcomes(core.OutcomeIndexed, 221)
	w.song.SetState(ids[1], "UNPUBLISHED")
	w.trigger("S1", ids[1])
	w.awaitOutcomes(core.OutcomeRemoved, 1)
	if n := w.metric("tutti_consumer_redeliveries_total", "consumer", code+"/records"); n < 1 {
		t.Errorf("%v redeliveries, want at least 1", n)
	}
	w.eventually(wait, func() (bool, string) {
		n := w.metric("tutti_request_to_index_seconds", "scope", "record")
		return n == 2, fmt.Sprintf("%v observations of request_to_index_seconds", n)
	})

	w.eventually(wait, func() (bool, string) {
		n := w.metric("tutti_job_progress_ratio", "repository", code)
		return n == 1, fmt.Sprintf("job_progress_ratio is %v", n)
	})
	w.eventually(wait, func() (bool, string) { // the consumers' lag is measured every few seconds
		text := string(w.mustRequest(http.MethodGet, "/metrics", http.StatusOK).raw)
		missing := slices.DeleteFunc(metricNames(), func(name string) bool {
			return strings.Contains(text, "\n# TYPE tutti_"+name+" ")
		})
		return len(missing) == 0, fmt.Sprintf("GET /metrics lacks %q", missing)
	})
	problems, err := testutil.GatherAndLint(w.app.Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestLogsHoldNoBodies: whatever fails, no log line contains a part of a record or a token.
func TestLogsHoldNoBodies(t *testing.T) {
	t.Parallel()
	const marker, token = "PATIENT-MARKER-4711", "secret-token-0815"
	w := startWorld(t, settings{
		faulty: true, pageSize: 20, song: testkit.SongConfig{Token: token}, repository: "token: " + token,
		rates: testkit.FaultRates{TooManyRequests: 0.2, Unavailable: 0.2, ResetResponse: 0.1, Cut: 0.1},
	})
	for i := range 60 {
		w.put("S1", fmt.Sprintf("good-%d", i), `"info":{"patient":"`+marker+`"},"experiment":{"note":"`+marker+`"}`)
	}
	for i, fault := range []string{
		`"analysisType":"` + marker + `"`, `"files":[{"fileSize":"` + marker + `"}]`, `"createdAt":"` + marker + `"`,
		`"experiment":{"note":{"` + marker + `":"` + marker + `"}}`, `"samples":"` + marker + `"`,
	} {
		w.put("S1", fmt.Sprintf("bad-%d", i), fault)
	}
	w.put("S1", strings.Repeat("x", 600), `"experiment":{"note":"`+marker+`"}`)
	w.song.Fail(testkit.Fault{Skip: 1, Times: 1, Cut: 900})
	w.song.Fail(testkit.Fault{Skip: 1, Times: 1, Truncate: 1500})
	w.song.Fail(testkit.Fault{
		Skip: 2, Times: 1, Status: http.StatusInternalServerError, ContentType: "application/json", Body: `{"message":"` + marker + `"}`,
	})
	w.engine.injectFaults(true)
	job := w.startRun("S1", "")
	w.triggerUntilFaults(8, "good-0")
	w.engine.injectFaults(false)
	w.awaitJob(job)
	w.engine.injectFaults(true)
	for i := range 5 {
		w.trigger("S1", fmt.Sprintf("good-%d", i))
		w.trigger("S1", fmt.Sprintf("bad-%d", i))
	}
	w.song.ClearFaults()
	w.song.Fail(testkit.Fault{Times: 1, ContentType: "text/html", Status: http.StatusNotFound, Body: "<html>" + marker + "</html>"})
	w.song.Fail(testkit.Fault{Times: 1, Cut: 60})
	w.song.Fail(testkit.Fault{Times: 1, ContentType: "application/json", Status: http.StatusOK, Body: `["` + marker + `"`})
	w.song.AddStudy("S2")
	empty, whole := w.startRun("S2", ""), w.startRun("", "")
	w.triggerUntilFaults(16, "good-1")
	w.engine.injectFaults(false)
	w.awaitJob(empty)
	w.awaitJob(whole)
	w.song.ClearFaults() // of which the records may have got all
	w.song.Fail(testkit.Fault{
		Path: regexp.MustCompile("/paginated"), Times: 1, Status: http.StatusInternalServerError, ContentType: "application/json",
		Body: `{"message":"` + marker + `"}`,
	})
	w.run("S1", "", core.JobPartial) // with those that are rejected
	if n := len(w.deadLettersByRecord()); n < 6 {
		t.Errorf("%d dead letters: too little failed to prove anything", n)
	}
	w.stop()
	lines := w.logs.all()
	for _, line := range lines {
		for _, secret := range []string{marker, token} {
			if strings.Contains(line, secret) {
				t.Errorf("the log holds %s: %s", secret, line)
			}
		}
	}
	for _, said := range []string{"record moved to the dead letters", "reading a page", "job ended"} {
		if !strings.Contains(strings.Join(lines, ""), said) {
			t.Errorf("the log does not say %q: too little was logged to prove anything", said)
		}
	}
}

// triggerUntilFaults triggers a record of S1 until n requests to the engine had a fault.
func (w *world) triggerUntilFaults(n int64, id string) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		w.trigger("S1", id)
		whole, items := w.engine.faults()
		return whole >= n, fmt.Sprintf("%d requests and %d documents had a fault, want %d requests", whole, items, n)
	})
}

// TestStopLeavesNothing: a stopped app has no goroutine left, whether it was idle, busy, or never came up.
func TestStopLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("busy", func(t *testing.T) {
		w := startWorld(t, settings{})
		w.fill("S1", 300)
		w.startRun("", "")
		w.stop()
	})
	t.Run("refused", func(t *testing.T) {
		w := startWorld(t, settings{})
		if err := w.newApp().Start(t.Context()); err == nil {
			t.Error("a second app on the same folder started")
		}
	})
	t.Run("never started", func(t *testing.T) {
		if err := newWorld(t, settings{}).newApp().Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	goleak.VerifyNone(t, before)
}
