package app_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// TestRecord: one record follows its upstream: added, changed, unpublished, published again, gone.
func TestRecord(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	id := w.fill("S1", 1)[0]
	for i, change := range []func(){
		func() {},
		func() { w.put("S1", id, `"experiment":{"changed":true}`) },
		func() { w.song.SetState(id, "UNPUBLISHED") },
		func() { w.song.SetState(id, "PUBLISHED") },
		func() { w.song.Delete(id) },
	} {
		change()
		w.trigger("S1", id)
		w.awaitConverged(wait)
		t.Logf("change %d arrived", i)
	}
	// Removal on request touches the document only.
	w.put("S1", id, "")
	w.trigger("S1", id)
	w.awaitConverged(wait)
	w.removal("S1", id)
	w.eventually(wait, func() (bool, string) { return len(w.documents()) == 0, "the document is still there" })
	if _, ok := w.song.Analysis(id); !ok {
		t.Error("the removal reached the upstream")
	}
}

// TestRefusals: an invalid request is refused and reaches neither the queue nor the upstream.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	for _, tc := range []struct {
		method, path string
		status       int
	}{
		{http.MethodPost, "/index/repository/unknown", http.StatusNotFound},
		{http.MethodPost, "/index/repository/unknown/organization/S1", http.StatusNotFound},
		{http.MethodPost, "/index/repository/unknown/organization/S1/id/a", http.StatusNotFound},
		{http.MethodDelete, "/index/repository/unknown/organization/S1/id/a", http.StatusNotFound},
		{http.MethodDelete, runPath("S1"), http.StatusMethodNotAllowed},
		{http.MethodDelete, runPath(""), http.StatusMethodNotAllowed},
		{http.MethodPost, runPath("S1") + "/id/" + strings.Repeat("x", 513), http.StatusBadRequest},
		{http.MethodPost, runPath("S1") + "/id/%2E%2E", http.StatusBadRequest},
		{http.MethodPost, runPath("S1") + "/id/a%00b", http.StatusBadRequest},
		{http.MethodGet, "/jobs/unknown", http.StatusNotFound},
	} {
		a := w.mustRequest(tc.method, tc.path, tc.status)
		if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
			t.Errorf("%s %s: content type %q", tc.method, tc.path, ct)
		}
	}
	if n := w.metric("tutti_requests_published_total"); n != 0 {
		t.Errorf("%v requests were published", n)
	}
	if n := len(w.song.RawPaths()); n != 0 {
		t.Errorf("the upstream received %d requests", n)
	}
}

// TestPathsStayInTheirSegment: an id cannot change the path of the request to the upstream.
func TestPathsStayInTheirSegment(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{song: testkit.SongConfig{BasePath: "/song"}})
	w.fill("S1", 1)
	for _, tc := range []struct{ study, id, want string }{
		{"S1", "..%2F..%2Fall", "/song/studies/S1/analysis/..%2F..%2Fall"},
		{"..%2FS1", "a", "/song/studies/..%2FS1/analysis/a"},
		{"S1", "%252e%252e%252Fb", "/song/studies/S1/analysis/%252e%252e%252Fb"},
		{"S1", "a%3Fb=c%23d", "/song/studies/S1/analysis/a%3Fb=c%23d"},
		{"S1", "a;b=c&d+e", "/song/studies/S1/analysis/a;b=c&d+e"},
	} {
		before := len(w.song.RawPaths())
		w.mustRequest(http.MethodPost, "/index/repository/"+code+"/organization/"+tc.study+"/id/"+tc.id, http.StatusAccepted)
		w.eventually(wait, func() (bool, string) {
			paths := w.song.RawPaths()[before:]
			return slices.ContainsFunc(paths, func(p string) bool { return samePath(p, tc.want) }), fmt.Sprintf("%q, want %q", paths, tc.want)
		})
	}
	for _, path := range w.song.RawPaths() {
		segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
		if path != "/song/studies/all" && path != "/song/schemas" && (len(segments) != 5 || segments[1] != "studies" || segments[3] != "analysis") {
			t.Errorf("the upstream received a request for %s", path)
		}
	}
}

// samePath compares paths segment by segment, decoded once: %3B and ; in a segment are the same.
func samePath(a, b string) bool {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	return slices.EqualFunc(x, y, func(a, b string) bool {
		a, errA := url.PathUnescape(a)
		b, errB := url.PathUnescape(b)
		return errA == nil && errB == nil && a == b
	})
}

// TestOtherOrganization: a request to index or remove a record of study B under study A changes nothing, whether the upstream refuses
// to return it, as Song does, or returns it.
func TestOtherOrganization(t *testing.T) {
	t.Parallel()
	for _, lenient := range []bool{false, true} {
		t.Run(fmt.Sprintf("lenient %t", lenient), func(t *testing.T) {
			t.Parallel()
			w := startWorld(t, settings{song: testkit.SongConfig{Lenient: lenient}})
			w.song.AddStudy("A")
			id := w.fill("B", 1)[0]
			w.trigger("B", id)
			w.awaitConverged(wait)

			w.trigger("A", id)
			w.awaitOutcomes(core.OutcomeMismatch, 1)
			w.removal("A", id)
			w.awaitOutcomes(core.OutcomeMismatch, 2)
			w.wantConverged()

			// A list of A that holds a record of B does not write it either.
			stray, _ := w.song.Analysis(id)
			if err := w.song.Put("A", slices.Clone(stray.Body)); err != nil {
				t.Fatal(err)
			}
			w.run("A", "", core.JobSucceeded)
			w.awaitOutcomes(core.OutcomeMismatch, 3)
			if indexed, removed := w.outcomes(core.OutcomeIndexed), w.outcomes(core.OutcomeRemoved); indexed != 1 || removed != 0 {
				t.Errorf("%d documents were written and %d removed, want 1 and none", indexed, removed)
			}
			if got := w.documents()[id]; got != string(stray.Body) {
				t.Errorf("the document changed: %s", got)
			}
			if !strings.Contains(strings.Join(w.logs.all(), ""), "record belongs to another organization") {
				t.Error("the mismatch is not in the log")
			}
		})
	}
}

// TestIDs: ids of any shape go through REST, the queue, the upstream and the index, and come back.
func TestIDs(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{pageSize: 4})
	ids := []string{
		`with "quotes" and 'more'`, `back\slash`, "with/slash", "/", "with space", " leading and trailing ", "100%", "%2F", "%",
		"a?b=c&d#e", "a+b", "emoji 🧬👩‍🔬", "e\u0301 and é", "<script>", "...", "_id", "-", "*", "a,b", "{}", "\u2028",
		strings.Repeat("x", 512), strings.Repeat("🧬", 128), "null", "0",
	}
	for i, id := range ids {
		w.put(`study "1"/A %`, id, fmt.Sprintf(`"experiment":{"number":%d}`, i))
	}
	for _, id := range ids {
		w.trigger(`study "1"/A %`, id)
	}
	w.awaitConverged(wait)
	for _, id := range ids {
		w.removal(`study "1"/A %`, id)
	}
	w.eventually(wait, func() (bool, string) { n := len(w.documents()); return n == 0, fmt.Sprint(n, " documents left") })
	w.run(`study "1"/A %`, "", core.JobSucceeded)
	w.wantConverged()
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// TestBadDocuments: of a study with 1 % bad documents exactly those are dead letters, with the engine's reason; once fixed,
// they are indexed and their dead letters removed.
func TestBadDocuments(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 495)
	faults := []string{
		`"analysisType":"a string, not an object"`, `"files":[{"fileSize":"not a number"}]`, `"createdAt":"not a date"`,
		`"analysisType":{"name":{"not":"a keyword"}}`, `"samples":["not an object"]`,
		`"info":` + strings.Repeat(`{"a":`, 2000) + `1` + strings.Repeat(`}`, 2000), // which ends some engines
	}
	bad := map[string]bool{}
	for i, fault := range faults {
		id := fmt.Sprintf("bad-%d", i)
		bad[id] = true
		body := fmt.Sprintf(`{"analysisId":%q,"studyId":"S1","analysisState":"PUBLISHED",%s}`, id, fault)
		if err := w.song.Insert("S1", i*97, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	job := w.run("S1", "", core.JobPartial)
	if indexed, rejected := job.Get("totals.indexed").Int(), job.Get("totals.rejected").Int(); indexed != 495 || rejected != 6 {
		t.Errorf("%d indexed and %d rejected, want 495 and 6: %s", indexed, rejected, job.Raw)
	}
	if c := job.Get("error.code").String(); c != core.JobErrorRecordsRejected {
		t.Errorf("error.code is %q, want %q", c, core.JobErrorRecordsRejected)
	}
	for id, l := range w.deadLettersByRecord() {
		if !bad[id] {
			t.Errorf("%s is a dead letter: %+v", id, l)
		}
		if l.Reason != core.ReasonRejected || l.EngineType == "" || l.EngineReason == "" || l.JobID != job.Get("id").String() || l.Size == 0 {
			t.Errorf("dead letter of %s lacks something: %+v", id, l)
		}
		t.Logf("%s: %s: %s", id, l.EngineType, l.EngineReason)
	}
	if n := len(w.deadLettersByRecord()); n != len(bad) {
		t.Errorf("%d dead letters, want %d", n, len(bad))
	}
	got := w.documents()
	for _, id := range ids {
		if got[id] == "" {
			t.Errorf("the good document %s is missing", id)
		}
	}
	if len(got) != len(ids) {
		t.Errorf("%d documents, want %d", len(got), len(ids))
	}
	for id := range bad {
		w.put("S1", id, `"analysisType":{"name":"fixed","version":1}`)
		w.trigger("S1", id)
	}
	w.eventually(wait, func() (bool, string) {
		n := len(w.deadLettersByRecord())
		return n == 0, fmt.Sprint(n, " dead letters left")
	})
	w.wantConverged()
}
