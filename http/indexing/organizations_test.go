package indexing_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// TestJobOrganizations: the organizations of a job are listed by page, with the numbers of all of them.
func TestJobOrganizations(t *testing.T) {
	p := apitest.Working()
	p.GetFn = func(id string) (core.Job, error) {
		if id != "j" {
			return core.Job{}, core.NewError(core.CodeNotFound, "no such job")
		}
		return apitest.QueuedJob("j"), nil
	}
	p.OrganizationsFn = func(string) ([]core.OrganizationRun, error) {
		return []core.OrganizationRun{
			{Organization: "A", State: core.JobSucceeded}, {Organization: "B", State: core.JobFailed}, {Organization: "C", State: core.JobRunning},
		}, nil
	}
	h := apitest.NewHandler(t, p, api.Config{})
	for query, want := range map[string]string{
		"":                       "B C A",
		"?limit=1":               "B",
		"?limit=1&cursor=1":      "C",
		"?state=succeeded":       "A",
		"?state=paused&limit=10": "",
	} {
		_, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs/j/organizations" + query})
		var got struct {
			Organizations      []struct{ Organization string }
			OrganizationsTotal int
			OrganizationStates map[core.JobState]int
			NextCursor         string
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range got.Organizations {
			names = append(names, o.Organization)
		}
		if strings.Join(names, " ") != want || got.OrganizationsTotal != 3 || got.OrganizationStates[core.JobFailed] != 1 || len(got.OrganizationStates) != 3 {
			t.Errorf("%s: %s", query, body)
		}
	}
	for query, text := range map[string]string{"?limit=1001": "from 1 to 1000", "?state=lost": "state must be one of"} {
		res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs/j/organizations" + query})
		apitest.WantProblem(t, res, body, 400, "invalid", text)
	}
	res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs/k/organizations"})
	apitest.WantProblem(t, res, body, 404, "not_found", "")
}
