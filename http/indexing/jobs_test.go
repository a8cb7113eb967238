package indexing_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

func runningJob() (core.Job, []core.OrganizationRun) {
	started := apitest.Noon.Add(-10 * time.Second)
	job := apitest.QueuedJob("job-1")
	job.State, job.StartedAt, job.QueuedAt = core.JobRunning, &started, started.In(time.FixedZone("CEST", 7200))
	job.StartVersion, job.Returned, job.RequestID = 17, 2, "not shown"
	job.ExpectedOrganizations = new(2)
	return job, []core.OrganizationRun{
		{
			Organization: "LIRI-JP", State: core.JobPartial, Totals: core.Totals{Expected: 10, Fetched: 10, Indexed: 8, Rejected: 2},
			Error: &core.JobError{Code: core.JobErrorPruneGuard, Message: "8 of 20 documents were not seen"}, DoneThrough: 3,
		},
		{Organization: "PACA-CA", State: core.JobRunning, Totals: core.Totals{Expected: 1000, Fetched: 40, Indexed: 39, Stale: 1, Retried: 3}},
	}
}

func TestGoldenJob(t *testing.T) {
	job, runs := runningJob()
	p := apitest.Working()
	p.GetFn = func(id string) (core.Job, error) {
		if id != "a/b" {
			t.Errorf("id: got %q", id)
		}
		return job, nil
	}
	p.OrganizationsFn = func(string) ([]core.OrganizationRun, error) { return runs, nil }
	res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs/a%2Fb"})
	if res.StatusCode != 200 {
		t.Errorf("status %d", res.StatusCode)
	}
	apitest.Golden(t, "job_running", body)

	ended := job.StartedAt.Add(4 * time.Second)
	job.State, job.EndedAt, job.Organization, job.Scope = core.JobFailed, &ended, "PACA-CA", core.ScopeOrganization
	job.Totals = core.Totals{Expected: 100, Fetched: 50, Indexed: 50}
	job.Error = &core.JobError{Code: "unavailable", Message: "the upstream does not answer"}
	_, body = apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs/a%2Fb"})
	apitest.Golden(t, "job_failed", body)
}

func TestQueuedJobHasNoRate(t *testing.T) {
	_, body := apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs/j"})
	apitest.Golden(t, "job_queued", body)
}

func TestJobRateAndETA(t *testing.T) {
	at := func(d time.Duration) *time.Time { tm := apitest.Noon.Add(d); return &tm }
	for name, tt := range map[string]struct {
		state          core.JobState
		started, ended *time.Time
		totals         core.Totals
		rate           string
		eta            string
	}{
		"queued":             {core.JobQueued, nil, nil, core.Totals{}, "0", "null"},
		"just started":       {core.JobRunning, at(0), nil, core.Totals{Expected: 5}, "0", "null"},
		"clock stepped back": {core.JobRunning, at(time.Second), nil, core.Totals{Expected: 5, Fetched: 1}, "0", "null"},
		"running":            {core.JobRunning, at(-3 * time.Second), nil, core.Totals{Expected: 20, Fetched: 10}, "3.333", "4"},
		"nothing expected":   {core.JobRunning, at(-time.Second), nil, core.Totals{Fetched: 10}, "10", "null"},
		"more than expected": {core.JobRunning, at(-time.Second), nil, core.Totals{Expected: 5, Fetched: 10}, "10", "0"},
		"ended":              {core.JobSucceeded, at(-9 * time.Second), at(-4 * time.Second), core.Totals{Expected: 10, Fetched: 10}, "2", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			p.GetFn = func(id string) (core.Job, error) {
				job := apitest.QueuedJob(id)
				job.State, job.StartedAt, job.EndedAt, job.Totals, job.ExpectedOrganizations = tt.state, tt.started, tt.ended, tt.totals, new(0)
				return job, nil
			}
			_, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs/j"})
			var got struct{ RatePerSecond, ETASeconds json.RawMessage }
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			if string(got.RatePerSecond) != tt.rate || string(got.ETASeconds) != tt.eta {
				t.Errorf("got %s/s, eta %s, want %s/s, eta %s", got.RatePerSecond, got.ETASeconds, tt.rate, tt.eta)
			}
		})
	}
}

// TestExpectedIsNullUntilCounted: a part of the organizations says nothing of all records, nor of the time that is left.
func TestExpectedIsNullUntilCounted(t *testing.T) {
	counted := core.OrganizationRun{Organization: "A", State: core.JobRunning, Totals: core.Totals{Expected: 20, Fetched: 10}}
	empty := core.OrganizationRun{Organization: "B", State: core.JobRunning, LastPage: new(0)}
	shorter := core.OrganizationRun{Organization: "B", State: core.JobSucceeded, Totals: core.Totals{Expected: 11}, Listed: new(int64(9))}
	waits := core.OrganizationRun{Organization: "B", State: core.JobQueued}
	for name, tt := range map[string]struct {
		organizations      *int
		runs               []core.OrganizationRun
		expected, eta, row string
	}{
		"not listed":      {nil, []core.OrganizationRun{counted}, "null", "null", "20"},
		"one is not told": {new(2), []core.OrganizationRun{counted}, "null", "null", "20"},
		"one waits":       {new(2), []core.OrganizationRun{counted, waits}, "null", "null", "null"},
		"one is empty":    {new(2), []core.OrganizationRun{counted, empty}, "20", "4", "0"},
		"all are counted": {new(1), []core.OrganizationRun{counted}, "20", "4", "20"},
		"one has fallen":  {new(2), []core.OrganizationRun{counted, shorter}, "31", "7", "9"},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			p.GetFn = func(id string) (core.Job, error) {
				job := apitest.QueuedJob(id)
				started := apitest.Noon.Add(-3 * time.Second)
				job.State, job.StartedAt, job.ExpectedOrganizations = core.JobRunning, &started, tt.organizations
				return job, nil
			}
			p.OrganizationsFn = func(string) ([]core.OrganizationRun, error) { return tt.runs, nil }
			_, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs/j"})
			got := gjson.ParseBytes(body)
			if expected, eta := got.Get("totals.expected").Raw, got.Get("etaSeconds").Raw; expected != tt.expected || eta != tt.eta {
				t.Errorf("expected %s, eta %s, want %s and %s", expected, eta, tt.expected, tt.eta)
			}
			if row := got.Get(fmt.Sprintf("organizations.%d.totals.expected", len(tt.runs)-1)).Raw; row != tt.row {
				t.Errorf("the last organization expects %s, want %s", row, tt.row)
			}
		})
	}
}

func TestListJobs(t *testing.T) {
	for name, tt := range map[string]struct{ query, call string }{
		"defaults": {"", `"" "" 50 ""`},
		"all":      {"?repository=song.ca&state=running&limit=200&cursor=c%2B1", `"song.ca" "running" 200 "c+1"`},
		"least":    {"?limit=1&state=", `"" "" 1 ""`},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			p.ListFn = func(f core.JobFilter) ([]core.Job, string, error) {
				if call := fmt.Sprintf("%q %q %d %q", f.Repository, f.State, f.Limit, f.Cursor); call != tt.call {
					t.Errorf("call: got %s, want %s", call, tt.call)
				}
				return []core.Job{apitest.QueuedJob("job-2"), apitest.QueuedJob("job-1")}, "job-1", nil
			}
			p.OrganizationsFn = func(id string) ([]core.OrganizationRun, error) {
				return []core.OrganizationRun{{Organization: "of " + id, State: core.JobQueued}}, nil
			}
			_, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs" + tt.query})
			apitest.Golden(t, "jobs", body)
		})
	}
}

func TestListShowsTheFirstOrganizations(t *testing.T) {
	for _, n := range []int{0, 10, 11, 100, 101, 1000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			p := apitest.Working()
			listed := apitest.QueuedJob("j")
			listed.State, listed.ExpectedOrganizations = core.JobRunning, &n
			p.GetFn = func(string) (core.Job, error) { return listed, nil }
			p.ListFn = func(core.JobFilter) ([]core.Job, string, error) {
				return []core.Job{listed}, "", nil
			}
			p.OrganizationsFn = func(string) ([]core.OrganizationRun, error) {
				runs := make([]core.OrganizationRun, n)
				for i := range runs {
					runs[i] = core.OrganizationRun{
						Organization: strconv.Itoa(i), State: core.JobRunning, Totals: core.Totals{Expected: 1},
					}
				}
				return runs, nil
			}
			type job struct {
				Organizations      []struct{ Organization string }
				OrganizationsTotal int
				Totals             core.Totals
			}
			h := apitest.NewHandler(t, p, api.Config{})
			check := func(j job, shown int) {
				t.Helper()
				if len(j.Organizations) != shown || j.OrganizationsTotal != n || j.Totals.Expected != int64(n) {
					t.Errorf("%d shown, %d in total, %d expected; want %d, %d, %d",
						len(j.Organizations), j.OrganizationsTotal, j.Totals.Expected, shown, n, n)
				}
				for i, o := range j.Organizations {
					if o.Organization != strconv.Itoa(i) {
						t.Fatalf("organization %d is %q", i, o.Organization)
					}
				}
			}
			_, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs"})
			var list struct{ Jobs []job }
			if err := json.Unmarshal(body, &list); err != nil || len(list.Jobs) != 1 {
				t.Fatalf("%v: %s", err, body)
			}
			check(list.Jobs[0], min(n, 10))
			_, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs/j"})
			var one job
			if err := json.Unmarshal(body, &one); err != nil {
				t.Fatal(err)
			}
			check(one, min(n, 100))
		})
	}
}

func TestListJobsIsEmptyNotNull(t *testing.T) {
	_, body := apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs"})
	if string(body) != `{"jobs":[]}` {
		t.Errorf("got %s", body)
	}
}

func TestListJobsRefusesBadInput(t *testing.T) {
	for name, tt := range map[string]struct{ query, text string }{
		"limit zero":      {"limit=0", "from 1 to 200"},
		"limit too high":  {"limit=201", "from 1 to 200"},
		"limit a word":    {"limit=ten", "from 1 to 200"},
		"limit empty":     {"limit=", "from 1 to 200"},
		"limit twice":     {"limit=1&limit=2", "given 2 times"},
		"state":           {"state=sleeping", "state must be one of"},
		"repository":      {"repository=..", "repository must not be"},
		"cursor too long": {"cursor=" + strings.Repeat("x", 1025), "cursor"},
		"escape":          {"cursor=%zz", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{}), apitest.Ask{Method: "GET", Target: "/jobs?" + tt.query})
			if p := apitest.WantProblem(t, res, body, 400, "invalid", tt.text); p.Successful != nil {
				t.Error("a problem of /jobs has a member of /index")
			}
		})
	}
}

func TestJobErrors(t *testing.T) {
	notFound := core.NewError(core.CodeNotFound, "job not found")
	ended := core.NewError(core.CodeConflict, "the job has already ended")
	down := core.NewError(core.CodeUnavailable, "the queue does not answer")
	p := apitest.Working()
	p.GetFn = func(string) (core.Job, error) { return core.Job{}, notFound }
	p.CancelFn = func(string) (core.Job, error) { return core.Job{}, ended }
	p.ListFn = func(core.JobFilter) ([]core.Job, string, error) { return nil, "", down }
	h := apitest.NewHandler(t, p, api.Config{})
	res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs/none"})
	apitest.WantProblem(t, res, body, 404, "not_found", "job not found")
	res, body = apitest.Do(t, h, apitest.Ask{Method: "DELETE", Target: "/jobs/done"})
	apitest.WantProblem(t, res, body, 409, "conflict", "already ended")
	res, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs"})
	apitest.WantProblem(t, res, body, 503, "unavailable", "does not answer")
	res, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs/%2E%2E"})
	apitest.WantProblem(t, res, body, 400, "invalid", "relative path")
	res, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs/"})
	apitest.WantProblem(t, res, body, 400, "invalid", "empty")

	p = apitest.Working()
	p.ListFn = func(core.JobFilter) ([]core.Job, string, error) {
		return []core.Job{apitest.QueuedJob("j")}, "", nil
	}
	p.OrganizationsFn = func(string) ([]core.OrganizationRun, error) { return nil, down }
	h = apitest.NewHandler(t, p, api.Config{})
	for _, a := range []apitest.Ask{{Method: "GET", Target: "/jobs"}, {Method: "GET", Target: "/jobs/j"}, {Method: "DELETE", Target: "/jobs/j"}} {
		res, body = apitest.Do(t, h, a)
		apitest.WantProblem(t, res, body, 503, "unavailable", "does not answer")
	}
}

func TestCancelGivesTheJob(t *testing.T) {
	p := apitest.Working()
	p.CancelFn = func(id string) (core.Job, error) {
		job := apitest.QueuedJob(id)
		end := apitest.Noon
		job.State, job.EndedAt = core.JobCancelled, &end
		return job, nil
	}
	res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "DELETE", Target: "/jobs/j"})
	if res.StatusCode != 200 || !strings.Contains(string(body), `"state":"cancelled"`) {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

func TestCancelRefusesABodyThatIsNone(t *testing.T) {
	for name, tt := range map[string]struct {
		body, contentType string
		status            int
		code, text        string
	}{
		"none":           {"", "", 200, "", ""},
		"empty object":   {"{}", "application/json", 200, "", ""},
		"no JSON":        {"{", "application/json", 400, "invalid", "not valid JSON"},
		"no object":      {"[]", "application/json", 400, "invalid", "not a JSON object"},
		"another type":   {"{}", "text/plain", 415, "unsupported_media_type", "not declared as JSON"},
		"over the limit": {`{"a":"` + strings.Repeat("x", 64) + `"}`, "application/json", 413, "too_large", "64 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			cancelled := false
			p.CancelFn = func(id string) (core.Job, error) {
				cancelled = true
				return apitest.QueuedJob(id), nil
			}
			h := apitest.NewHandler(t, p, api.Config{MaxBodyBytes: 64})
			header := http.Header{}
			if tt.contentType != "" {
				header.Set("Content-Type", tt.contentType)
			}
			res, body := apitest.Do(t, h, apitest.Ask{Method: "DELETE", Target: "/jobs/j", Header: header, Body: tt.body})
			if tt.status == 200 {
				if res.StatusCode != 200 {
					t.Errorf("got %d %s", res.StatusCode, body)
				}
			} else {
				apitest.WantProblem(t, res, body, tt.status, tt.code, tt.text)
			}
			if cancelled != (tt.status == 200) {
				t.Errorf("cancelled: %v", cancelled)
			}
		})
	}
}
