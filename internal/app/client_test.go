package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// answer is what tutti said to one request.
type answer struct {
	status int
	header http.Header
	raw    []byte
}

func (a answer) get(path string) gjson.Result { return gjson.GetBytes(a.raw, path) }

// request sends one request without a body; path is percent-encoded already.
func (w *world) request(method, path string) (answer, error) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(w.t.Context()), method, w.url+path, nil)
	if err != nil {
		return answer{}, err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, raw: raw}, err
}

// mustRequest sends one request, and fails the test unless the answer has a status.
func (w *world) mustRequest(method, path string, status int) answer {
	w.t.Helper()
	a, err := w.request(method, path)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	if a.status != status {
		w.t.Fatalf("%s %s: status %d, want %d: %s", method, path, a.status, status, a.raw)
	}
	return a
}

func recordPath(study, id string) string {
	return "/index/repository/" + code + "/organization/" + url.PathEscape(study) + "/id/" + url.PathEscape(id)
}

// runPath is the path of a run over a study, or over the repository for "".
func runPath(study string) string {
	if study == "" {
		return "/index/repository/" + code
	}
	return "/index/repository/" + code + "/organization/" + url.PathEscape(study)
}

func (w *world) trigger(study, id string) {
	w.t.Helper()
	w.mustRequest(http.MethodPost, recordPath(study, id), http.StatusAccepted)
}

func (w *world) removal(study, id string) {
	w.t.Helper()
	w.mustRequest(http.MethodDelete, recordPath(study, id), http.StatusAccepted)
}

// startRun begins a run and returns its job's id.
func (w *world) startRun(study, query string) string {
	w.t.Helper()
	a := w.mustRequest(http.MethodPost, runPath(study)+query, http.StatusAccepted)
	id := a.get("jobId").String()
	if id == "" || a.header.Get("Location") != "/jobs/"+id {
		w.t.Fatalf("no job in %s, Location %q", a.raw, a.header.Get("Location"))
	}
	return id
}

func (w *world) job(id string) gjson.Result {
	w.t.Helper()
	return gjson.ParseBytes(w.mustRequest(http.MethodGet, "/jobs/"+id, http.StatusOK).raw)
}

// awaitJob waits until a job has ended, and returns it.
func (w *world) awaitJob(id string) gjson.Result {
	w.t.Helper()
	var job gjson.Result
	w.eventually(2*time.Minute, func() (bool, string) {
		job = w.job(id)
		return core.JobState(job.Get("state").String()).Final(), job.Raw
	})
	return job
}

// run runs over a study, or the repository for "", and fails the test unless the job ends in a state.
func (w *world) run(study, query string, state core.JobState) gjson.Result {
	w.t.Helper()
	job := w.awaitJob(w.startRun(study, query))
	if job.Get("state").String() != string(state) {
		w.t.Fatalf("job ended %s, want %s: %s", job.Get("state"), state, job.Raw)
	}
	return job
}

// eventually calls done until it returns true, and fails the test with its text when the time is up.
func (w *world) eventually(limit time.Duration, done func() (bool, string)) {
	w.t.Helper()
	eventually(w.t, limit, done)
}

func eventually(t *testing.T, limit time.Duration, done func() (bool, string)) {
	t.Helper()
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		began := time.Now()
		ok, state := done()
		if ok {
			return
		}
		select {
		case <-time.After(max(5*time.Millisecond, 2*time.Since(began))): // looking takes a third of the time at most
		case <-end.C:
			t.Fatalf("not within %s: %s", limit, state)
		}
	}
}

// total returns a metric of GET /metrics summed over the lines of one process that contain all labels.
func (w *world) total(name string, labels ...string) int {
	w.t.Helper()
	sum := 0.0
	for line := range strings.Lines(string(w.mustRequest(http.MethodGet, "/metrics", http.StatusOK).raw)) {
		if after, found := strings.CutPrefix(line, name); !found || after[0] != '{' && after[0] != ' ' || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(line, l) }) {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
		if err != nil {
			w.t.Fatalf("%s: %v", line, err)
		}
		sum += v
	}
	return int(sum)
}

// metric sums up a metric's values over all its labels that fit; a histogram returns its count.
func (w *world) metric(name string, labels ...string) float64 {
	w.t.Helper()
	families, err := w.app.Registry().Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	var sum float64
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if fits(m, labels) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// fits reports whether a metric has the labels, listed as name, value, name, value.
func fits(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

// outcomes counts the documents that had an outcome.
func (w *world) outcomes(o core.Outcome) int {
	w.t.Helper()
	return int(w.metric("tutti_documents_total", "index", w.alias, "outcome", o.String()))
}

// awaitOutcomes waits until n documents have had an outcome.
func (w *world) awaitOutcomes(o core.Outcome, n int) {
	w.t.Helper()
	w.eventually(time.Minute, func() (bool, string) {
		got := w.outcomes(o)
		return got >= n, fmt.Sprintf("%d documents were %s, want %d", got, o, n)
	})
}

// waitFor waits until release is closed, or the test ends: a server of the test, which waits for its requests, can be closed then.
func waitFor(t *testing.T, release <-chan struct{}) {
	select {
	case <-release:
	case <-t.Context().Done():
	}
}

// deadLettersByRecord returns all dead letters by their record ids.
func (w *world) deadLettersByRecord() map[string]core.DeadLetter {
	w.t.Helper()
	letters, next, err := w.app.Queue().DeadLetters().List(w.t.Context(), core.DeadLetterFilter{Repository: code, Limit: 1000})
	if err != nil || next != "" {
		w.t.Fatalf("listing dead letters: %v, cursor %q", err, next)
	}
	byRecord := make(map[string]core.DeadLetter, len(letters))
	for _, l := range letters {
		if _, twice := byRecord[l.RecordID]; twice {
			w.t.Errorf("record %q has two dead letters", l.RecordID)
		}
		byRecord[l.RecordID] = l
	}
	return byRecord
}

// pagesOf selects the calls for a study's pages.
func pagesOf(study string) *regexp.Regexp {
	return regexp.MustCompile(`/studies/` + regexp.QuoteMeta(study) + `/analysis/paginated`)
}

// wait is how long a test waits for what usually takes less than a second.
const wait = 3 * time.Minute
