package app_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/report/recordtrace"
	"tutti/internal/tools/testkit"
)

// postIDs sends a list of ids as text, and fails the test unless the answer has a status.
func (w *world) postIDs(path, list string, status int) answer {
	w.t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(w.t.Context()), http.MethodPost, w.url+path+"/ids", strings.NewReader(list))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/plain")
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		w.t.Fatalf("%s: status %d, want %d: %s %v", path, resp.StatusCode, status, raw, err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, raw: raw}
}

// idOutcomes returns the outcomes of a job's ids, by organization and id, and the lines of those with a reason.
func (w *world) idOutcomes(job string) (outcomes map[string]string, reasons []gjson.Result) {
	w.t.Helper()
	a := w.mustRequest(http.MethodGet, "/jobs/"+job+"/ids", http.StatusOK)
	outcomes = map[string]string{}
	gjson.ForEachLine(string(a.raw), func(line gjson.Result) bool {
		key := line.Get("organization").String() + " " + line.Get("id").String()
		if _, twice := outcomes[key]; twice {
			w.t.Errorf("%s is listed twice", key)
		}
		outcomes[key] = line.Get("outcome").String()
		if line.Get("reason").Exists() {
			reasons = append(reasons, line)
		}
		return true
	})
	return outcomes, reasons
}

// TestListOfIDs: 1,000 ids of two studies, some unknown, some that the index rejects, some of the other study, some twice: each has its
// outcome, the job counts each once, and no other record is touched.
func TestListOfIDs(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids, others := w.fill("S1", 960), w.fill("S2", 30)
	want := map[string]string{}
	var list strings.Builder
	add := func(study, id, outcome string) {
		want[study+" "+id] = outcome
		fmt.Fprintf(&list, "%s\t%s\n", study, id)
	}
	for _, id := range ids[:940] {
		add("S1", id, "indexed")
	}
	for _, id := range others[:10] {
		add("S2", id, "indexed")
	}
	for i := range 20 {
		id := fmt.Sprintf("bad %d", i)
		w.put("S1", id, broken)
		add("S1", id, "deadLettered")
	}
	for i := range 20 {
		add("S1", fmt.Sprintf("unknown/%d", i), "removed")
	}
	for _, id := range others[20:] {
		add("S1", id, "mismatch")
	}
	list.WriteString("S2\t" + others[0] + "\r\n\n")
	a := w.postIDs(runPath(""), list.String(), http.StatusAccepted)
	if a.get("ids").Int() != 1000 || a.get("duplicates").Int() != 1 || a.header.Get("Location") != "/jobs/"+a.get("jobId").String() {
		t.Errorf("%s %v", a.raw, a.header)
	}
	job := w.awaitJob(a.get("jobId").String())
	outcomes, reasons := w.idOutcomes(job.Get("id").String())
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Error(diff)
	}
	if len(reasons) != 20 || !strings.HasPrefix(reasons[0].Get("reason").String(), "rejected: ") {
		t.Errorf("%d reasons: %s", len(reasons), reasons)
	}
	for path, value := range map[string]string{
		"scope": "ids", "state": "partial", "error.code": core.JobErrorIDsNotIndexed, "organizationsTotal": "2", "totals.expected": "1000",
		"totals.fetched": "1000", "totals.indexed": "950", "totals.removed": "20", "totals.rejected": "20",
		"organizations.0.totals.expected": "990", "organizations.1.state": "succeeded",
	} {
		if got := job.Get(path).String(); got != value {
			t.Errorf("%s is %q, want %q: %s", path, got, value, job.Raw)
		}
	}
	if got := len(w.documents()); got != 950 {
		t.Errorf("%d documents", got)
	}
	trace := w.mustRequest(http.MethodGet, recordPath("S1", ids[0]), http.StatusOK)
	if last := trace.get("jobs.lastEnded"); last.Get("id").String() != job.Get("id").String() || last.Get("outcome").String() != "indexed" {
		t.Errorf("the list is not the last job that touched a record of it: %s", trace.raw)
	}
	trace = w.mustRequest(http.MethodGet, recordPath("S1", ids[950]), http.StatusOK)
	if trace.get("jobs.status").String() != recordtrace.StatusNone {
		t.Errorf("the list touched a record that it does not have: %s", trace.raw)
	}
	w.mustRequest(http.MethodGet, "/jobs/unknown/ids", http.StatusNotFound)
}

// TestListOfIDsNotStored: for a line that is not valid, and for a list that the queue does not take, nothing is requested or remembered.
func TestListOfIDsNotStored(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{faulty: true, maxPending: 20})
	ids := w.fill("S1", 25)
	a := w.postIDs(runPath("S1"), strings.Join(ids[:3], "\n")+"\na\tb", http.StatusBadRequest)
	if !strings.Contains(a.get("detail").String(), "line 4: id contains a control character") {
		t.Errorf("%s", a.raw)
	}
	w.postIDs("/index/repository/unknown", "S1\ta", http.StatusNotFound)
	w.engine.setDown(true)
	stored := 0
	for i, id := range ids[:24] {
		if i == 1 {
			w.awaitPaused(true) // soon, for the first record
		}
		if w.tryPost(recordPath("S1", id)) {
			stored++
		}
	}
	if stored < 19 || stored == 24 {
		t.Fatalf("%d requests were stored", stored)
	}
	if a = w.postIDs(runPath("S1"), ids[24], http.StatusServiceUnavailable); a.header.Get("Retry-After") == "" {
		t.Errorf("%v", a.header)
	}
	if jobs := w.mustRequest(http.MethodGet, "/jobs", http.StatusOK); jobs.get("jobs.#").Int() != 0 {
		t.Errorf("%s", jobs.raw)
	}
}

// TestListOfIDsKilled: a tutti that is killed in the middle of a list continues after its next start, and each id is counted once.
func TestListOfIDsKilled(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings{batchBytes: 32 << 10, concurrency: 2})
			ids := w.fill("S1", 600)
			process := w.startChild()
			a := w.postIDs(runPath("S1"), strings.Join(append(ids, "unknown"), "\n"), http.StatusAccepted)
			until := 1 + rand.IntN(500)
			w.eventually(wait, func() (bool, string) {
				n := w.song.Requests(testkit.RouteRecord)
				return n >= until, fmt.Sprintf("%d records read", n)
			})
			process.kill()
			t.Logf("killed after %d records", w.song.Requests(testkit.RouteRecord))
			w.start()
			job := w.awaitJob(a.get("jobId").String())
			if job.Get("state").String() != "succeeded" || job.Get("totals.indexed").Int() != 600 || job.Get("totals.removed").Int() != 1 {
				t.Errorf("%s", job.Raw)
			}
			outcomes, _ := w.idOutcomes(job.Get("id").String())
			for _, id := range ids {
				if outcomes["S1 "+id] != "indexed" {
					t.Errorf("%s is %q", id, outcomes["S1 "+id])
				}
			}
			w.awaitConverged(wait)
		})
	}
}
