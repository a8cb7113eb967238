package http_test

import (
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/internal/core"
)

// statuses returns a repository in each state, with figures.
func statuses() ([]core.RepositoryStatus, error) {
	var all []core.RepositoryStatus
	for _, state := range core.RepositoryStates() {
		ended := noon
		age := int64(60)
		all = append(all, core.RepositoryStatus{
			Code: string(state), Type: core.TypeSong, IndexName: "analyses", State: state, LastSuccess: &ended, FreshnessSeconds: &age,
			RepositoryFigures: &core.RepositoryFigures{
				LastRun:     &core.RepositoryRun{JobID: "j", State: core.JobFailed, QueuedAt: noon, EndedAt: &ended, Error: &core.JobError{Code: "internal", Message: "m"}},
				DeadLetters: 2, Pending: 3, Drift: &core.RepositoryDrift{JobID: "j", EndedAt: noon, Drift: core.Drift{Missing: 1}},
			},
		})
	}
	return all, nil
}

// TestRepositories: every state is one of the document, and only callers that may see all organizations get figures.
func TestRepositories(t *testing.T) {
	p := working()
	p.RepositoriesFn = statuses
	res, body := do(t, newHandler(t, p, api.Config{}), ask{method: "GET", target: "/repositories"})
	if res.StatusCode != 200 || gjson.GetBytes(body, "repositories.#").Int() != 5 || gjson.GetBytes(body, "repositories.3.deadLetters").Int() != 2 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	res, body = do(t, newHandler(t, working(), api.Config{}), ask{method: "GET", target: "/repositories"})
	if res.StatusCode != 200 || string(body) != `{"repositories":[]}` {
		t.Errorf("none: %d %s", res.StatusCode, body)
	}

	d := newTokenIssuer(t, &memoryKeyStore{})
	h := guardedHandler(t, p, d, api.Config{})
	for who, figures := range map[string]bool{systemRight: true, writeRight: false, readRight: false} {
		for kind, header := range d.headers[who] {
			got := requestWith(t, h, http.MethodGet, "/repositories", header)
			if got.StatusCode != http.StatusOK || gjson.Get(string(got.body), "repositories.0.deadLetters").Exists() != figures ||
				(gjson.Get(string(got.body), "repositories.3.state").String() == "attention") != figures {
				t.Errorf("%s, %s: %d %s", who, kind, got.StatusCode, got.body)
			}
		}
	}
}

// TestRepositoriesUnavailable: a queue that does not answer is an error, not an empty list.
func TestRepositoriesUnavailable(t *testing.T) {
	p := working()
	p.RepositoriesFn = func() ([]core.RepositoryStatus, error) {
		return nil, core.NewError(core.CodeUnavailable, "the queue does not answer")
	}
	res, body := do(t, newHandler(t, p, api.Config{}), ask{method: "GET", target: "/repositories"})
	wantProblem(t, res, body, 503, "unavailable", "the queue does not answer")
}
