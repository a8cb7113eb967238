package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/tools/apitest"
)

// jobShelf answers List from jobs; a cursor is the number of the next one. It counts its calls.
func jobShelf(jobs []core.Job, calls *int) func(core.JobFilter) ([]core.Job, string, error) {
	return func(f core.JobFilter) ([]core.Job, string, error) {
		*calls++
		from, err := strconv.Atoi("0" + f.Cursor)
		if err != nil {
			return nil, "", core.NewError(core.CodeInvalid, "the cursor is not one of this list")
		}
		to := min(len(jobs), from+f.Limit)
		if to == len(jobs) {
			return jobs[from:to], "", nil
		}
		return jobs[from:to], strconv.Itoa(to), nil
	}
}

// page is the body of a list of jobs or dead letters.
type page struct {
	Jobs        []struct{ ID string }
	DeadLetters []struct{ ID string }
	NextCursor  string
}

func (p page) ids() []string {
	ids := []string{}
	for _, e := range append(p.Jobs, p.DeadLetters...) {
		ids = append(ids, e.ID)
	}
	return ids
}

// walk reads a list to its end and returns the ids of every page.
func walk(t *testing.T, h apitest.Handler, target string, header []string) [][]string {
	t.Helper()
	var pages [][]string
	cursor := ""
	for range 100 {
		got := apitest.RequestWith(t, h, "GET", target+cursor, header)
		if got.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", got.StatusCode, got.Content)
		}
		var p page
		if err := json.Unmarshal(got.Content, &p); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, p.ids())
		if p.NextCursor == "" {
			return pages
		}
		cursor = "&cursor=" + p.NextCursor
	}
	t.Fatal("the list has no end")
	return nil
}

// TestJobsAreListedToThoseWhoMayWrite: a page is filled with what the caller sees, wherever in the list it is, and no page
// costs more than a few calls.
func TestJobsAreListedToThoseWhoMayWrite(t *testing.T) {
	var jobs []core.Job
	for i := range 40 {
		job := apitest.OrganizationJob("job-"+strconv.Itoa(i), "S2")
		switch i {
		case 3, 4, 30:
			job.Organization = "S1"
		case 5:
			job.Scope, job.Organization = core.ScopeRepository, ""
		case 6:
			job.Scope, job.Organization = core.ScopeRepository, "S1" // a repository's is never an organization's
		}
		jobs = append(jobs, job)
	}
	p := apitest.Working()
	var calls int
	p.ListFn = jobShelf(jobs, &calls)
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	h := apitest.GuardedHandler(t, p, d, api.Config{})
	all := func(pages [][]string) (ids []string) {
		for _, page := range pages {
			ids = append(ids, page...)
		}
		return ids
	}
	for _, limit := range []int{1, 2, 7, 50} {
		target := fmt.Sprintf("/jobs?limit=%d", limit)
		t.Run(target, func(t *testing.T) {
			for _, header := range d.Headers[apitest.WriteRight] {
				calls = 0
				pages := walk(t, h, target, header)
				if diff := cmp.Diff([]string{"job-3", "job-4", "job-30"}, all(pages)); diff != "" {
					t.Error(diff)
				}
				if calls > 8*len(pages) {
					t.Errorf("%d calls for %d pages", calls, len(pages))
				}
				for i, page := range pages {
					if len(page) > limit {
						t.Errorf("page %d holds %d", i, len(page))
					}
				}
			}
			if pages := walk(t, h, target, d.Header(apitest.ReadRight)); len(all(pages)) > 0 {
				t.Errorf("a reader sees %v", pages)
			}
			if n := len(all(walk(t, h, target, d.Header(apitest.SystemRight)))); n != len(jobs) {
				t.Errorf("the system sees %d", n)
			}
		})
	}
}

// TestForeignLooksLikeUnknown: the answer to what is there but another's is that to what is not there, in everything.
func TestForeignLooksLikeUnknown(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	missing := apitest.Working()
	gone := core.NewError(core.CodeNotFound, "no such thing in the bucket")
	missing.GetFn = func(string) (core.Job, error) { return core.Job{}, gone }
	repository := apitest.OfS1()
	repository.GetFn = func(id string) (core.Job, error) { return apitest.QueuedJob(id), nil }
	repository.Letters.GetFn = func(string) (core.DeadLetter, error) {
		return core.DeadLetter{ID: "x1", Repository: "song.ca", Reason: core.ReasonUpstream}, nil
	}
	for _, route := range []api.Route{
		{Method: "GET", Pattern: "/jobs/x1"},
		{Method: "DELETE", Pattern: "/jobs/x1"},
		{Method: "GET", Pattern: "/jobs/x1/events"},
		{Method: "GET", Pattern: "/dead-letters/x1"},
		{Method: "POST", Pattern: "/dead-letters/x1/retry"},
	} {
		t.Run(route.Method+" "+route.Pattern, func(t *testing.T) {
			answer := func(p *apitest.Ports, who string) string {
				got := apitest.RequestWith(t, apitest.GuardedHandler(t, p, d, api.Config{}), route.Method, route.Pattern, d.Header(who))
				return fmt.Sprint(got.StatusCode, got.Header, string(got.Content))
			}
			want := answer(missing, apitest.ForeignRight)
			if !strings.HasPrefix(want, "404 ") {
				t.Errorf("unknown: %s", want)
			}
			if diff := cmp.Diff(want, answer(apitest.OfS1(), apitest.ForeignRight)); diff != "" {
				t.Errorf("another organization's: %s", diff)
			}
			if diff := cmp.Diff(want, answer(repository, apitest.WriteRight)); diff != "" {
				t.Errorf("a repository's: %s", diff)
			}
		})
	}
}

// TestNothingHappensToWhatIsNotSeen: neither a cancel nor a retry gets through.
func TestNothingHappensToWhatIsNotSeen(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	p := apitest.OfS1()
	p.CancelFn = func(string) (core.Job, error) {
		t.Error("cancelled")
		return core.Job{}, nil
	}
	p.Letters.RetryFn = func(string, string) (core.DeadLetter, error) {
		t.Error("retried")
		return core.DeadLetter{}, nil
	}
	p.WatchFn = func(context.Context, string, func(core.JobChange) error) error {
		t.Error("watched")
		return nil
	}
	h := apitest.GuardedHandler(t, p, d, api.Config{})
	apitest.RequestWith(t, h, "DELETE", "/jobs/x1", d.Header(apitest.ForeignRight))
	apitest.RequestWith(t, h, "POST", "/dead-letters/x1/retry", d.Header(apitest.ReadRight))
	apitest.RequestWith(t, h, "GET", "/jobs/x1/events", d.Header(apitest.ReadRight))
}

// lettersOf returns one letter of every kind; those that the writer of S1 sees have an id that begins with "own".
func lettersOf() []core.DeadLetter {
	letter := func(id, organization string, request *core.Request) core.DeadLetter {
		if request != nil {
			request.ID, request.Kind, request.Repository, request.Cause = "r1", core.KindIndex, "song.ca", core.CauseREST
		}
		return core.DeadLetter{
			ID: id, Repository: "song.ca", Organization: organization, RecordID: "r", Reason: core.ReasonRejected, Request: request,
			Document: []byte(`{"of":"` + id + `"}`),
		}
	}
	message := letter("message", "S1", nil)
	message.Source = "webhook"
	return []core.DeadLetter{
		letter("foreign", "S2", nil),
		letter("own-record", "S1", &core.Request{Scope: core.ScopeRecord, Organization: "S1", RecordID: "r"}),
		letter("repository", "", &core.Request{Scope: core.ScopeRepository}),
		letter("runs the repository", "S1", &core.Request{Scope: core.ScopeRepository}),
		letter("names another", "S1", &core.Request{Scope: core.ScopeRecord, Organization: "S2"}),
		message,
		letter("own-page", "S1", &core.Request{Scope: core.ScopePage, Organization: "S1"}),
		letter("own-bare", "S1", nil),
	}
}

// TestLettersAreShownToThoseWhoMayWrite in lists, exports and one by one.
func TestLettersAreShownToThoseWhoMayWrite(t *testing.T) {
	letters := lettersOf()
	for i := range 20 {
		letters = append(letters, core.DeadLetter{ID: "late-" + strconv.Itoa(i), Repository: "song.ca", Organization: "S2", RecordID: "r", Reason: core.ReasonRejected})
	}
	p := apitest.Working()
	p.DeadLetters = letters
	calls := 0
	p.Letters.ListFn = func(_ context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
		calls++
		from, err := strconv.Atoi("0" + f.Cursor)
		if err != nil {
			return nil, "", err
		}
		to := min(len(letters), from+min(f.Limit, 2)) // shorter pages than asked for are no end
		if to == len(letters) {
			return letters[from:to], "", nil
		}
		return letters[from:to], strconv.Itoa(to), nil
	}
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	h := apitest.GuardedHandler(t, p, d, api.Config{})
	own := []string{"own-record", "own-page", "own-bare"}
	for _, limit := range []int{1, 3, 50} {
		t.Run(fmt.Sprintf("list by %d", limit), func(t *testing.T) {
			var ids []string
			calls = 0
			pages := walk(t, h, fmt.Sprintf("/dead-letters?limit=%d", limit), d.Header(apitest.WriteRight))
			if calls > 8*len(pages) {
				t.Errorf("%d calls for %d pages", calls, len(pages))
			}
			for _, page := range pages {
				if len(page) > limit {
					t.Errorf("a page holds %d", len(page))
				}
				ids = append(ids, page...)
			}
			if diff := cmp.Diff(own, ids); diff != "" {
				t.Error(diff)
			}
		})
	}
	export := func(t *testing.T, who, target string) ([]string, http.Header) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), "GET", target, nil)
		r.Header.Set("Accept", "application/x-ndjson")
		r.Header["Authorization"] = d.Header(who)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		ids := []string{}
		for line := range strings.Lines(w.Body.String()) {
			var l struct{ ID string }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			ids = append(ids, l.ID)
		}
		return ids, w.Result().Trailer
	}
	t.Run("export", func(t *testing.T) {
		got, _ := export(t, apitest.WriteRight, "/dead-letters")
		if diff := cmp.Diff(own, got); diff != "" {
			t.Error(diff)
		}
		if got, _ = export(t, apitest.ReadRight, "/dead-letters"); len(got) > 0 {
			t.Errorf("a reader gets %v", got)
		}
		if got, _ = export(t, apitest.SystemRight, "/dead-letters"); len(got) != len(letters) {
			t.Errorf("the system gets %v", got)
		}
	})
	t.Run("export with a limit", func(t *testing.T) {
		got, trailer := export(t, apitest.WriteRight, "/dead-letters?limit=2")
		if diff := cmp.Diff(own[:2], got); diff != "" {
			t.Error(diff)
		}
		if trailer.Get("Next-Cursor") != "7" {
			t.Errorf("trailer %v", trailer)
		}
	})
	t.Run("one by one", func(t *testing.T) {
		for _, l := range letters {
			want := 404
			if strings.HasPrefix(l.ID, "own") {
				want = 200
			}
			target := "/dead-letters/" + strings.ReplaceAll(l.ID, " ", "%20")
			if got := apitest.RequestWith(t, h, "GET", target, d.Header(apitest.WriteRight)); got.StatusCode != want {
				t.Errorf("%s: %d, want %d", l.ID, got.StatusCode, want)
			}
			if got := apitest.RequestWith(t, h, "GET", target, d.Header(apitest.SystemRight)); got.StatusCode != 200 {
				t.Errorf("%s: the system gets %d", l.ID, got.StatusCode)
			}
		}
	})
}

// TestUnpublishedAnalysesNeedTheReadScope: with tokens, what is not published is shown to those who may read the study alone;
// those who may change it are told which scope they lack.
func TestUnpublishedAnalysesNeedTheReadScope(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	p := apitest.OfS1()
	p.Metadata.AnalysisFn = func(study, id string) (datamodel.Analysis, error) {
		return apitest.NewAnalysis(study, id, datamodel.StateUnpublished), nil
	}
	h := apitest.GuardedHandler(t, p, d, api.Config{})
	const list = "/studies/S1/analysis"
	for _, tc := range []struct {
		name, target string
		refused      int
		anonymous    int
	}{
		{"list", list + "?analysisStates=PUBLISHED,UNPUBLISHED", 403, 401},
		{"page", list + "/paginated?analysisStates=SUPPRESSED", 403, 401},
		{"one", list + "/A", 404, 200}, // only its state
		{"its files", list + "/A/files", 404, 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for who, want := range map[string]int{apitest.Anonymous: tc.anonymous, apitest.ForeignRight: tc.refused, apitest.WriteRight: 200, apitest.ReadRight: 200, apitest.SystemRight: 200} {
				if got := apitest.RequestWith(t, h, "GET", tc.target, d.Header(who)); got.StatusCode != want {
					t.Errorf("%s: %d, want %d: %s", who, got.StatusCode, want, got.Content)
				}
			}
		})
	}
}
