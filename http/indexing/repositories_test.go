package indexing_test

import (
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// statuses returns a repository in each state, with figures.
func statuses() ([]core.RepositoryStatus, error) {
	var all []core.RepositoryStatus
	for _, state := range core.RepositoryStates() {
		ended := apitest.Noon
		age := int64(60)
		all = append(all, core.RepositoryStatus{
			Code: string(state), Type: core.TypeSong, IndexName: "analyses", State: state, LastSuccess: &ended, FreshnessSeconds: &age,
			RepositoryFigures: &core.RepositoryFigures{
				LastRun:     &core.RepositoryRun{JobID: "j", State: core.JobFailed, QueuedAt: apitest.Noon, EndedAt: &ended, Error: &core.JobError{Code: "internal", Message: "m"}},
				DeadLetters: 2, Pending: 3, Drift: &core.RepositoryDrift{JobID: "j", EndedAt: apitest.Noon, Drift: core.Drift{Missing: 1}},
			},
		})
	}
	return all, nil
}

// TestRepositories: every state is one of the document, and only callers that may see all organizations get figures.
func TestRepositories(t *testing.T) {
	p := apitest.Working()
	p.RepositoriesFn = statuses
	res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/repositories"})
	if res.StatusCode != 200 || gjson.GetBytes(body, "repositories.#").Int() != 5 || gjson.GetBytes(body, "repositories.3.deadLetters").Int() != 2 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	res, body = apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{}), apitest.Ask{Method: "GET", Target: "/repositories"})
	if res.StatusCode != 200 || string(body) != `{"repositories":[]}` {
		t.Errorf("none: %d %s", res.StatusCode, body)
	}

	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	h := apitest.GuardedHandler(t, p, d, api.Config{})
	for who, figures := range map[string]bool{apitest.SystemRight: true, apitest.WriteRight: false, apitest.ReadRight: false} {
		for kind, header := range d.Headers[who] {
			got := apitest.RequestWith(t, h, http.MethodGet, "/repositories", header)
			if got.StatusCode != http.StatusOK || gjson.Get(string(got.Content), "repositories.0.deadLetters").Exists() != figures ||
				(gjson.Get(string(got.Content), "repositories.3.state").String() == "attention") != figures {
				t.Errorf("%s, %s: %d %s", who, kind, got.StatusCode, got.Content)
			}
		}
	}
}

// TestRepositoriesUnavailable: a queue that does not answer is an error, not an empty list.
func TestRepositoriesUnavailable(t *testing.T) {
	p := apitest.Working()
	p.RepositoriesFn = func() ([]core.RepositoryStatus, error) {
		return nil, core.NewError(core.CodeUnavailable, "the queue does not answer")
	}
	res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/repositories"})
	apitest.WantProblem(t, res, body, 503, "unavailable", "the queue does not answer")
}
