package indexing_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/tools/apitest"
)

const (
	ndjsonType = "application/x-ndjson"
)

// TestListOfIDs: both formats and both paths name the records; a line that repeats one counts once.
func TestListOfIDs(t *testing.T) {
	for name, tt := range map[string]struct {
		target, mediaType, body string
		call, counts            string
	}{
		"text":         {apitest.RepositoryPath, apitest.TextType, "B\tb 1\nA\ta/1\n\nB\tb 1\r\nA\tb 1", "song.ca  [{B [b 1]} {A [a/1 b 1]}] req-1", `"ids":3,"duplicates":1`},
		"objects":      {apitest.RepositoryPath, ndjsonType, `{"organization":"A","id":"\u0061"}` + "\n" + `{"id":"a","organization":"A"}`, "song.ca  [{A [a]}] req-1", `"ids":1,"duplicates":1`},
		"organization": {apitest.OrganizationPath, apitest.TextType, "\ufeffa\tb\r\n", "", ""},
		"text of one":  {apitest.OrganizationPath, apitest.TextType, "\ufeffa b\r\nc", "song.ca PACA-CA [{PACA-CA [a b c]}] req-1", `"ids":2,"duplicates":0`},
		"objects of one": {
			apitest.OrganizationPath, ndjsonType, `{"id":"a"}` + "\n" + `{"id":"b","organization":"PACA-CA"}` + "\n", "song.ca PACA-CA [{PACA-CA [a b]}] req-1", `"ids":2,"duplicates":0`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var call string
			p := apitest.Working()
			p.IDsFn = func(repository, organization string, list []idlist.List, requestID string) (core.Job, error) {
				call = fmt.Sprint(repository, " ", organization, " ", list, " ", requestID)
				return core.Job{ID: "job/1", IndexName: "analyses"}, nil
			}
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "POST", Target: tt.target + "/ids", Body: tt.body, Header: apitest.ContentType(tt.mediaType)})
			if call != tt.call {
				t.Errorf("call: got %q, want %q", call, tt.call)
			}
			if tt.call == "" {
				if res.StatusCode != http.StatusBadRequest {
					t.Errorf("a control character: got %d %s", res.StatusCode, body)
				}
				return
			}
			want := `{"successful":true,"indexName":"analyses","requestId":"req-1","jobId":"job/1",` + tt.counts + `}`
			if res.StatusCode != http.StatusAccepted || string(body) != want || res.Header.Get("Location") != "/jobs/job%2F1" {
				t.Errorf("got %d %s %s", res.StatusCode, res.Header.Get("Location"), body)
			}
		})
	}
}

// TestListOfIDsRefused: the answer names the first line that is not valid, and nothing is requested.
func TestListOfIDsRefused(t *testing.T) {
	lines := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i) + "\n")
		}
		return b.String()
	}
	for name, tt := range map[string]struct {
		target, mediaType, body string
		status                  int
		text                    string
	}{
		"empty":             {apitest.RepositoryPath, apitest.TextType, "", 400, "the list of ids is empty"},
		"blank":             {apitest.RepositoryPath, "", " \r\n\n", 400, "the list of ids is empty"},
		"byte order mark":   {apitest.RepositoryPath, apitest.TextType, "\ufeff\r\n", 400, "the list of ids is empty"},
		"UTF-16":            {apitest.OrganizationPath, apitest.TextType, "\xff\xfea\x00\n\x00", 400, "line 1: id is not valid UTF-8"},
		"more than objects": {apitest.OrganizationPath, ndjsonType, "{\"id\":\"a\"}\n{\"id\":\"b\"}]", 400, "line 2: it is not an object"},
		"no type":           {apitest.RepositoryPath, "", "A\ta", 415, "text/plain or application/x-ndjson"},
		"JSON":              {apitest.RepositoryPath, "application/json", `[]`, 415, "text/plain or application/x-ndjson"},
		"no tab":            {apitest.RepositoryPath, apitest.TextType, "A\ta\n\nA a\nA\t", 400, "line 3: no tab separates"},
		"no id":             {apitest.RepositoryPath, apitest.TextType, "A\ta\nA\t", 400, "line 2: id is empty"},
		"no organization":   {apitest.RepositoryPath, apitest.TextType, "\ta", 400, "line 1: organization is empty"},
		"two tabs":          {apitest.RepositoryPath, apitest.TextType, "A\ta\tb", 400, "line 1: id contains a control character"},
		"long id":           {apitest.OrganizationPath, apitest.TextType, strings.Repeat("x", 513), 400, "line 1: id has 513 bytes, the limit is 512"},
		"long line":         {apitest.OrganizationPath, apitest.TextType, "a\n" + strings.Repeat("x", 9000), 400, "line 2: it has 9000 bytes, the limit is 8192"},
		"dots":              {apitest.OrganizationPath, apitest.TextType, "..", 400, "line 1: id must not be"},
		"not UTF-8":         {apitest.OrganizationPath, apitest.TextType, "a\n\xff", 400, "line 2: id is not valid UTF-8"},
		"not an object":     {apitest.OrganizationPath, ndjsonType, "{\"id\":\"a\"}\n\"b\"", 400, "line 2: it is not an object"},
		"two objects":       {apitest.OrganizationPath, ndjsonType, `{"id":"a"}{"id":"b"}`, 400, "line 1: it is not an object"},
		"unknown member":    {apitest.OrganizationPath, ndjsonType, `{"id":"a","remove":true}`, 400, "line 1: it is not an object with the members"},
		"object without id": {apitest.OrganizationPath, ndjsonType, `{"organization":"PACA-CA"}`, 400, "line 1: id is empty"},
		"other organization": {
			apitest.OrganizationPath, ndjsonType, `{"id":"a","organization":"B"}`, 400, "line 1: its organization is not the one of the path",
		},
		"too many ids": {
			apitest.OrganizationPath, apitest.TextType, lines(idlist.MaxIDs+2, func(i int) string { return fmt.Sprint("id-", max(1, i)) }), 413,
			"line 100002: a list has at most 100000 ids",
		},
		"too many organizations": {
			apitest.RepositoryPath, apitest.TextType, lines(idlist.MaxOrganizations+1, func(i int) string { return fmt.Sprintf("O%d\ta", i) }), 413,
			"line 1001: a list has ids of at most 1000 organizations",
		},
		"large body": {apitest.OrganizationPath, apitest.TextType, strings.Repeat("x\n", 6<<20), 413, "the body is over the limit of 10485760 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			p.IDsFn = func(string, string, []idlist.List, string) (core.Job, error) {
				t.Error("a list that is not valid was requested")
				return core.Job{}, nil
			}
			header := http.Header{}
			if tt.mediaType != "" {
				header = apitest.ContentType(tt.mediaType)
			}
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{MaxBodyBytes: 10 << 20}), apitest.Ask{Method: "POST", Target: tt.target + "/ids", Body: tt.body, Header: header})
			if res.StatusCode != tt.status || !strings.Contains(string(body), tt.text) {
				t.Errorf("got %d %.300s, want %d %s", res.StatusCode, body, tt.status, tt.text)
			}
		})
	}
}

// TestIDsOfAJob: the ids of all organizations follow each other; those that were not processed are queued, or skipped at the end.
func TestIDsOfAJob(t *testing.T) {
	one, two := 0, 1
	p := apitest.Working()
	job := apitest.QueuedJob("j")
	job.Scope, job.State = core.ScopeIDs, core.JobRunning
	p.GetFn = func(string) (core.Job, error) { return job, nil }
	p.OrganizationsFn = func(string) ([]core.OrganizationRun, error) {
		return []core.OrganizationRun{{Organization: "A", LastPage: &two}, {Organization: "B", LastPage: &one}}, nil
	}
	p.IDPageFn = func(_, organization string, page int) ([]idlist.ID, error) {
		listed := idlist.ID{ID: fmt.Sprint(organization, page)}
		if page == 0 {
			listed.Outcome, listed.Reason, listed.Hint = idlist.DeadLettered, "rejected", "fix <it>"
		}
		return []idlist.ID{listed}, nil
	}
	for state, left := range map[core.JobState]string{core.JobRunning: "queued", core.JobCancelled: "skipped"} {
		job.State = state
		res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs/j/ids"})
		want := `{"organization":"A","id":"A0","outcome":"deadLettered","reason":"rejected","hint":"fix <it>"}` + "\n" +
			`{"organization":"A","id":"A1","outcome":"` + left + `"}` + "\n" +
			`{"organization":"B","id":"B0","outcome":"deadLettered","reason":"rejected","hint":"fix <it>"}` + "\n"
		if res.StatusCode != 200 || string(body) != want {
			t.Errorf("%s: %d %s", state, res.StatusCode, body)
		}
	}
	job.Scope = core.ScopeRepository
	if res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs/j/ids"}); res.StatusCode != 200 || len(body) > 0 {
		t.Errorf("a job over a repository: %d %s", res.StatusCode, body)
	}
	p.GetFn = func(string) (core.Job, error) { return core.Job{}, core.NewError(core.CodeNotFound, "no such job") }
	if res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs/j/ids"}); res.StatusCode != 404 {
		t.Errorf("an unknown job: %d %s", res.StatusCode, body)
	}
}
