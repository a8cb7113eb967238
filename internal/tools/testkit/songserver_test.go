package testkit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

func serve(t *testing.T, cfg testkit.SongConfig) *testkit.SongServer {
	t.Helper()
	s, err := testkit.NewSong(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// get requests a path on its own connection, so that none is left open.
func get(t *testing.T, url string) (status int, body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	return res.StatusCode, string(content), err
}

func analysis(id, study, state string) []byte {
	return fmt.Appendf(nil, `{ "analysisId":%q, "studyId":%q, "analysisState":%q }`, id, study, state)
}

func TestSongServerData(t *testing.T) {
	t.Parallel()
	s := serve(t, testkit.SongConfig{})
	ids := func(states ...string) string {
		var list []string
		for _, a := range s.Analyses("S", states...) {
			list = append(list, a.ID)
		}
		return strings.Join(list, ",")
	}
	for _, id := range []string{"a", "b", "c"} {
		if err := s.Put("S", analysis(id, "S", "PUBLISHED")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Insert("S", 1, analysis("x", "S", "UNPUBLISHED")); err != nil || ids() != "a,x,b,c" || ids("PUBLISHED") != "a,b,c" {
		t.Errorf("inserted: %s, %v", ids(), err)
	}
	if err := s.Put("S", analysis("b", "other", "PUBLISHED")); err != nil || ids() != "a,x,b,c" {
		t.Errorf("replaced: %s, %v", ids(), err)
	}
	if !s.SetState("b", "SUPPRESSED") || s.SetState("nobody", "x") {
		t.Error("states")
	}
	if a, ok := s.Analysis("b"); !ok || string(a.Body) != string(analysis("b", "other", "SUPPRESSED")) || a.State != "SUPPRESSED" {
		t.Errorf("state of b: %s", a.Body)
	}
	if !s.Delete("x") || s.Delete("x") || ids() != "a,b,c" {
		t.Errorf("deleted: %s", ids())
	}
	if err := s.Put("T", analysis("c", "T", "PUBLISHED")); err != nil || ids() != "a,b" {
		t.Errorf("moved: %s, %v", ids(), err)
	}
	if err := s.Put("S", []byte(`{"analysisId":"q"}`)); !errors.Is(err, dataset.ErrNoAnalysis) {
		t.Errorf("no analysis: %v", err)
	}
	s.DropStudy("S")
	if d := cmp.Diff([]string{"T"}, s.Studies()); d != "" || ids() != "" {
		t.Errorf("dropped (-want +got):\n%s", d)
	}
}

func TestSongServerAnswers(t *testing.T) {
	t.Parallel()
	s := serve(t, testkit.SongConfig{BasePath: "/song"})
	for i := range 5 {
		if err := s.Put("S/1", analysis(fmt.Sprint(i), "S/1", "PUBLISHED")); err != nil {
			t.Fatal(err)
		}
	}
	s.SetState("2", "UNPUBLISHED")
	s.AddStudy("E")
	row := func(i int) string { return string(analysis(fmt.Sprint(i), "S/1", "PUBLISHED")) }
	for path, want := range map[string]string{
		"/isAlive":     "true",
		"/studies/all": `["S/1","E"]`,
		"/studies/S%2F1/analysis/paginated?limit=2&offset=1":                      `{"analyses":[` + row(1) + `,` + row(3) + `],"totalAnalyses":4,"currentTotalAnalyses":2}`,
		"/studies/S%2F1/analysis/paginated?limit=2&offset=9":                      `{"analyses":[],"totalAnalyses":4,"currentTotalAnalyses":0}`,
		"/studies/E/analysis/paginated":                                           `{"analyses":[],"totalAnalyses":0,"currentTotalAnalyses":0}`,
		"/studies/S%2F1/analysis/paginated?analysisStates=UNPUBLISHED,SUPPRESSED": `{"analyses":[` + string(analysis("2", "S/1", "UNPUBLISHED")) + `],"totalAnalyses":1,"currentTotalAnalyses":1}`,
		"/studies/S%2F1/analysis/2":                                               string(analysis("2", "S/1", "UNPUBLISHED")),
	} {
		if status, body, err := get(t, s.URL()+path); err != nil || status != http.StatusOK || body != want {
			t.Errorf("%s: %d %s %v, want %s", path, status, body, err, want)
		}
	}
	for path, want := range map[string]string{
		"/studies/S%2F1/analysis/9":             "404 analysis.id.not.found NOT_FOUND",
		"/studies/X/analysis/1":                 "404 study.id.does.not.exist NOT_FOUND",
		"/studies/X/analysis/paginated":         "404 study.id.does.not.exist NOT_FOUND",
		"/studies/E/analysis/1":                 "400 entity.not.related.to.study BAD_REQUEST",
		"/studies/E/analysis/paginated?limit=x": "400 malformed.parameter BAD_REQUEST",
		"/studies/S/1/analysis/1":               "404 unknown.error NOT_FOUND",
		"/other":                                "404 unknown.error NOT_FOUND",
	} {
		status, body, err := get(t, s.URL()+path)
		var doc struct {
			ErrorID, HTTPStatusName, Message, RequestURL string
			HTTPStatusCode                               int
			Timestamp                                    int64
		}
		if err := errors.Join(err, json.Unmarshal([]byte(body), &doc)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got := fmt.Sprintf("%d %s %s", status, doc.ErrorID, doc.HTTPStatusName)
		if got != want || doc.HTTPStatusCode != status || doc.Message == "" || !strings.HasSuffix(doc.RequestURL, path) || doc.Timestamp == 0 {
			t.Errorf("%s: %s %+v, want %s", path, got, doc, want)
		}
	}
	if s.Requests(testkit.RouteAlive) != 1 || s.RecordRequests("9") != 1 || len(s.PageCalls()) != 6 || len(s.RawPaths()) != 14 {
		t.Errorf("counts: %d alive, %d of 9, %d pages, %d paths", s.Requests(testkit.RouteAlive), s.RecordRequests("9"), len(s.PageCalls()), len(s.RawPaths()))
	}
}

func TestSongServerFaults(t *testing.T) {
	t.Parallel()
	s := serve(t, testkit.SongConfig{})
	s.Fail(testkit.Fault{Path: regexp.MustCompile("^/isAlive$"), Skip: 1, Times: 2, Status: http.StatusServiceUnavailable})
	var got []int
	for range 5 {
		status, _, err := get(t, s.URL()+"/isAlive")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, status)
	}
	if d := cmp.Diff([]int{200, 503, 503, 200, 200}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	s.Fail(testkit.Fault{Times: 1, Cut: 2})
	if _, body, err := get(t, s.URL()+"/isAlive"); err == nil {
		t.Errorf("cut: %q", body)
	}
	s.Fail(testkit.Fault{Times: 1, Truncate: 2})
	if _, body, err := get(t, s.URL()+"/isAlive"); err != nil || body != "tr" {
		t.Errorf("truncated: %q, %v", body, err)
	}
	release := make(chan struct{})
	s.Fail(testkit.Fault{Times: 1, StallAfter: 1, Release: release})
	done := make(chan string)
	go func() {
		_, body, _ := get(t, s.URL()+"/isAlive")
		done <- body
	}()
	select {
	case body := <-done:
		t.Errorf("was not held up: %q", body)
	default:
	}
	close(release)
	if body := <-done; body != "true" {
		t.Errorf("released: %q", body)
	}
}

// TestSongServerCloseEndsHeldCalls hangs if Close waits for the fault.
func TestSongServerCloseEndsHeldCalls(t *testing.T) {
	t.Parallel()
	s := serve(t, testkit.SongConfig{})
	s.Fail(testkit.Fault{Release: make(chan struct{})})
	done := make(chan error)
	go func() {
		_, _, err := get(t, s.URL()+"/isAlive")
		done <- err
	}()
	s.Close()
	if err := <-done; err == nil {
		t.Error("the held call was answered")
	}
}

func TestSongServerBeforePage(t *testing.T) {
	t.Parallel()
	s := serve(t, testkit.SongConfig{BeforePage: func(s *testkit.SongServer, n int, call testkit.PageCall) {
		if n == 1 {
			s.Delete(fmt.Sprintf("%s-gone", call.Study))
		}
	}})
	if err := s.Put("S", analysis("S-gone", "S", "PUBLISHED")); err != nil {
		t.Fatal(err)
	}
	for n, total := range []string{`"totalAnalyses":1`, `"totalAnalyses":0`} {
		if _, body, err := get(t, s.URL()+"/studies/S/analysis/paginated"); err != nil || !strings.Contains(body, total) {
			t.Errorf("page %d: %s, %v", n, body, err)
		}
	}
}
