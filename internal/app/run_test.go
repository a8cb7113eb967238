package app_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// TestRunReadsEveryPage: a study of 500 in pages of 100 costs six calls, since pages overlap by a row, and returns 500
// documents that are the upstream's bytes.
func TestRunReadsEveryPage(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.fill("S1", 500)
	job := w.run("S1", "", core.JobSucceeded)
	for path, want := range map[string]int64{
		"totals.expected": 500, "totals.fetched": 500, "totals.indexed": 500, "totals.removed": 0, "totals.rejected": 0,
		"totals.stale": 0, "organizations.#": 1, "organizations.0.totals.indexed": 500,
	} {
		if got := job.Get(path).Int(); got != want {
			t.Errorf("%s is %d, want %d: %s", path, got, want, job.Raw)
		}
	}
	if calls := w.song.PageCalls(); len(calls) < 5 || len(calls) > 6 {
		t.Errorf("%d calls for pages, want 5 or 6: %v", len(calls), calls)
	}
	w.wantConverged()
	if n := len(w.deadLettersByRecord()); n != 0 {
		t.Errorf("%d dead letters, want none", n)
	}
}

// TestRunKeepsBytes: a document is the record's own bytes, whatever a re-encoding would do to them. Members without a
// value stay once an earlier record had a value for them: until then, Elasticsearch does not receive them.
func TestRunKeepsBytes(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.song.Register("bytes", `{"properties":{"big":{"type":"integer"}}}`)
	w.put("S1", "types", `"null":"a","empty":"b","list":["c"],"object":{"d":"e"}`)
	w.run("S1", "", core.JobSucceeded)
	for i, members := range []string{
		`"n":1.0`, `"n":1E+2`, `"n": 0.10000000000000000000001`, `"big":12345678901234567`, `"text":"\u0041\/\u2028\ud83d\ude00"`,
		`"text":"é ü 国 😀"`, `"null":null,"empty":"","list":[],"object":{}`, "\t\"spaces\" :  [ 1 ,\t2 ]  ", "\"lines\"\n:\n[\n1\r\n]",
		`"repositories":[{"code":"a liar"}]`, `"<&>":"<&>"`,
	} {
		w.put("S1", fmt.Sprintf("bytes-%d", i), members)
	}
	w.run("S1", "", core.JobSucceeded)
	want := w.upstreamDocuments()
	want["bytes-9"] = strings.Replace(want["bytes-9"], `,"repositories":[{"code":"a liar"}]`, "", 1)
	if fault := difference(want, w.documents()); fault != "" {
		t.Error(fault)
	}
}

// TestRunPageFails: a page that fails once is read again; one that always fails ends the job with the reason, and
// nothing is swept.
func TestRunPageFails(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{repository: "upstream: {giveUpAfter: 1ms}"})
	ids := w.fill("S1", 500)
	pages := regexp.MustCompile(`/paginated`)

	w.song.Fail(testkit.Fault{Path: pages, Skip: 2, Times: 1, Status: http.StatusInternalServerError})
	job := w.run("S1", "", core.JobSucceeded)
	w.wantConverged()
	if n := w.song.Requests(testkit.RoutePage); n != 7 {
		t.Errorf("%d calls for pages, want 6 and one repeated: %s", n, job.Raw)
	}

	// Unpublished, so that a sweep would fetch it.
	w.song.SetState(ids[499], "UNPUBLISHED")
	w.song.ClearFaults()
	w.song.Fail(testkit.Fault{Path: regexp.MustCompile(`/paginated.*offset=198\b`), Status: http.StatusInternalServerError})
	job = w.run("S1", "", core.JobFailed)
	for _, path := range []string{"error.message", "organizations.0.error.message"} {
		if text := job.Get(path).String(); !strings.Contains(text, "page 2 (rows from 198)") || !strings.Contains(text, "500") ||
			!strings.Contains(text, "start the run again once it does") {
			t.Errorf("%s does not contain the reason: %s", path, job.Raw)
		}
	}
	if state := job.Get("organizations.0.state").String(); state != string(core.JobFailed) {
		t.Errorf("the organization is %s, want failed", state)
	}
	if n := len(w.documents()); n != 500 {
		t.Errorf("%d documents after a failed run, want all 500: nothing may be swept", n)
	}
	if asked := w.song.RecordRequests(ids[499]); asked != 0 {
		t.Errorf("the failed run fetched the record it did not see %d times", asked)
	}
	if !strings.Contains(strings.Join(w.logs.all(), ""), "organization could not be read") {
		t.Error("the log does not say that the organization could not be read")
	}

	w.song.ClearFaults()
	w.run("S1", "", core.JobSucceeded)
	w.wantConverged()
}

// TestRunPagesTooLarge: a list whose pages are returned up to a size, by the repository or a gateway in front of it, is read in smaller ones,
// each record once.
func TestRunPagesTooLarge(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]testkit.Fault{
		"413":                {Status: http.StatusRequestEntityTooLarge, ContentType: "text/html", Body: "<h1>Too large</h1>"},
		"500":                {Status: http.StatusInternalServerError},
		"502":                {Status: http.StatusBadGateway, ContentType: "text/html", Body: "<h1>Bad gateway</h1>"},
		"503":                {Status: http.StatusServiceUnavailable},
		"504":                {Status: http.StatusGatewayTimeout},
		"not in time":        {Wait: time.Minute},
		"stops in time":      {Wait: time.Minute, StallAfter: 9_000},
		"a body that is cut": {Cut: 9_000},
		"a body that ends":   {Truncate: 9_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault.Path = regexp.MustCompile(`/paginated.*limit=(100|50)\b`)
			w := startWorld(t, settings{repository: "timeout: 1s"})
			w.fill("S1", 300)
			w.song.Fail(fault)
			counted(t, w.run("S1", "", core.JobSucceeded), map[string]int64{"totals.expected": 300, "totals.fetched": 300, "totals.indexed": 300})
			w.wantConverged()
			large := slices.DeleteFunc(w.song.PageCalls(), func(c testkit.PageCall) bool { return c.Limit <= 25 })
			if n := len(large); n < 2 || n > 3 { // the first is requested once more where it is not answered
				t.Errorf("large pages were requested as %+v", large)
			}
			if !strings.Contains(strings.Join(w.logs.all(), ""), "a page is requested again with fewer rows") {
				t.Error("the log does not say that pages are smaller")
			}
		})
	}
}

// TestRunUnavailable: the pages of a repository that answers nothing for a while stay as large as they were.
func TestRunUnavailable(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.fill("S1", 300)
	w.song.Fail(testkit.Fault{Path: regexp.MustCompile(`/studies/`), Skip: 1, Status: http.StatusServiceUnavailable})
	id := w.startRun("S1", "")
	w.eventually(wait, func() (bool, string) {
		j := w.job(id)
		return j.Get("state").String() == string(core.JobPaused), j.Raw
	})
	w.song.ClearFaults()
	if j := w.awaitJob(id); j.Get("state").String() != string(core.JobSucceeded) {
		t.Errorf("the job is %s", j.Raw)
	}
	w.wantConverged()
	for _, c := range w.song.PageCalls() {
		if c.Limit != 100 {
			t.Errorf("a page was requested as %+v", c)
		}
	}
}

// TestRunListShifts: rows that leave or join the list while it is read cost no other row.
func TestRunListShifts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		removed, joined int
	}{
		{"one row removed above the cursor", 1, 0},
		{"forty rows removed above the cursor", 40, 0},
		{"more than a page removed above the cursor", 130, 0},
		{"thirty rows inserted above the cursor", 0, 30},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			shift := func(s *testkit.SongServer, n int, _ testkit.PageCall) {
				if n != 3 {
					return
				}
				for _, a := range s.Analyses("S1")[:tc.removed] {
					s.Delete(a.ID)
				}
				for i, a := range dataset.GenerateAnalyses(2, "S1", tc.joined) {
					if err := s.Insert("S1", i, a.Body); err != nil {
						t.Error(err)
					}
				}
			}
			w := startWorld(t, settings{song: testkit.SongConfig{BeforePage: shift}})
			w.fill("S1", 500)
			first := w.song.Analyses("S1")
			job := w.awaitJob(w.startRun("S1", ""))
			got := w.documents()
			for _, a := range first[tc.removed:] {
				if got[a.ID] != string(a.Body) {
					t.Errorf("%s was lost: %s", a.ID, job.Raw)
				}
			}
			// The next run handles what was removed or added behind the cursor.
			w.run("S1", "?force=true", core.JobSucceeded)
			w.wantConverged()
		})
	}
}

// TestRunSweeps: the next run removes what the upstream no longer has; a mass removal needs force; a run over the repository removes a
// study that no longer exists.
func TestRunSweeps(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 120)
	w.fill("S2", 30)
	w.fill("S3", 5)
	w.run("", "", core.JobSucceeded)
	w.wantConverged()

	w.song.Delete(ids[0])
	w.song.SetState(ids[1], "SUPPRESSED")
	job := w.run("S1", "", core.JobSucceeded)
	if n := job.Get("totals.removed").Int(); n != 2 {
		t.Errorf("removed %d, want 2: %s", n, job.Raw)
	}
	w.wantConverged()

	for _, id := range ids[2:50] {
		w.song.SetState(id, "UNPUBLISHED")
	}
	before := w.documents()
	for _, scope := range []string{"S1", ""} {
		job = w.run(scope, "", core.JobPartial)
		if c := job.Get("error.code").String(); c != core.JobErrorPruneGuard {
			t.Errorf("error.code is %q, want %q: %s", c, core.JobErrorPruneGuard, job.Raw)
		}
	}
	if fault := difference(before, w.documents()); fault != "" {
		t.Errorf("the guard did not hold: %s", fault)
	}
	job = w.run("S1", "?force=true", core.JobSucceeded)
	if n := job.Get("totals.removed").Int(); n != 48 {
		t.Errorf("removed %d, want 48: %s", n, job.Raw)
	}
	w.wantConverged()

	w.song.DropStudy("S3")
	job = w.run("", "", core.JobSucceeded)
	if n := job.Get("totals.removed").Int(); n != 5 {
		t.Errorf("removed %d, want the 5 of the study that vanished: %s", n, job.Raw)
	}
	w.wantConverged()

	// A list that comes back empty is no reason to remove everything.
	for _, a := range w.song.Analyses("S2") {
		w.song.SetState(a.ID, "UNPUBLISHED")
	}
	w.run("S2", "", core.JobPartial)
	w.run("S2", "?force=true", core.JobSucceeded)
	w.wantConverged()
}

// TestRunAgainstProxyPages: a 404 that is not the upstream's own, such as a proxy's page, removes nothing, in a run or for one record.
// The run is paused, with the reason in its job and in /ready, and succeeds once the upstream answers.
func TestRunAgainstProxyPages(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 20)
	w.run("S1", "", core.JobSucceeded)
	before := w.documents()
	w.song.Fail(testkit.Fault{
		Status: http.StatusNotFound, ContentType: "text/html", Body: "<html><body><h1>404 Not Found</h1></body></html>",
	})
	id := w.startRun("S1", "?force=true")
	w.eventually(wait, func() (bool, string) {
		job := w.job(id)
		return job.Get("state").String() == string(core.JobPaused) && strings.Contains(job.Get("paused").String(), "404"), job.Raw
	})
	ready := w.ready()
	if ready.get("components.upstream").String() != "degraded" || !strings.Contains(ready.get("paused.0.reason").String(), "404") {
		t.Errorf("/ready does not say why: %s", ready.raw)
	}
	if up := w.metric("upstream_up"); up != 0 {
		t.Errorf("upstream_up is %v, want 0", up)
	}
	w.trigger("S1", ids[0])
	w.awaitOutcomes(core.OutcomeRetry, 2)
	if letters := w.deadLettersByRecord(); len(letters) > 0 {
		t.Errorf("a proxy's page has made dead letters: %v", letters)
	}
	if fault := difference(before, w.documents()); fault != "" {
		t.Errorf("a proxy's page changed the index: %s", fault)
	}

	w.song.ClearFaults()
	if job := w.awaitJob(id); job.Get("state").String() != string(core.JobSucceeded) {
		t.Errorf("after the proxy's pages: %s", job.Raw)
	}
	w.wantConverged()
}

// TestEndedRunCanBeSearched: as soon as a job has succeeded, the index counts all that it has written.
func TestEndedRunCanBeSearched(t *testing.T) {
	t.Parallel()
	const records = 3000
	w := startWorld(t, settings{})
	w.fill("S1", records)
	w.run("S1", "", core.JobSucceeded)
	n, err := w.app.Index().Count(t.Context(), w.alias, core.IndexScope{})
	if err != nil || n != records {
		t.Errorf("%d of %d documents are found (%v)", n, records, err)
	}
}
