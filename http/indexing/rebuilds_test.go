package indexing_test

import (
	"net/http"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// TestRebuildRoutes checks the routes for the index before a rebuild, and the errors of their port.
func TestRebuildRoutes(t *testing.T) {
	p := apitest.Working()
	var calls []string
	p.RollbackFn = func(repository, requestID string) (core.Job, error) {
		calls = append(calls, "rollback "+repository+" "+requestID)
		return core.Job{ID: "job-1", IndexName: "analyses"}, nil
	}
	p.DropPreviousFn = func(repository string) error {
		calls = append(calls, "drop "+repository)
		return nil
	}
	h := apitest.NewHandler(t, p, api.Config{})
	id := http.Header{"X-Request-Id": {"req-1"}}
	res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "/rollback", Header: id})
	if res.StatusCode != http.StatusAccepted || res.Header.Get("Location") != "/jobs/job-1" ||
		string(body) != `{"successful":true,"indexName":"analyses","requestId":"req-1","jobId":"job-1"}` {
		t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
	}
	if res, body := apitest.Do(t, h, apitest.Ask{Method: "DELETE", Target: apitest.RepositoryPath + "/previous"}); res.StatusCode != http.StatusNoContent || len(body) > 0 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: apitest.RepositoryPath + "/mapping"}); res.StatusCode != http.StatusOK ||
		string(body) != `{"repository":"song.ca","indexName":"","state":"absent","summary":"absent","fields":[],"difference":true,"limits":[]}` {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if len(calls) != 2 || calls[0] != "rollback song.ca req-1" || calls[1] != "drop song.ca" {
		t.Errorf("calls %q", calls)
	}
	p.RollbackFn = func(string, string) (core.Job, error) {
		return core.Job{}, core.NewError(core.CodeConflict, "the index is being rebuilt")
	}
	p.DropPreviousFn = func(string) error {
		return core.NewError(core.CodeNotFound, "no index from before a rebuild is kept")
	}
	res, body = apitest.Do(t, h, apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "/rollback"})
	apitest.WantProblem(t, res, body, http.StatusConflict, "conflict", "the index is being rebuilt")
	res, body = apitest.Do(t, h, apitest.Ask{Method: "DELETE", Target: apitest.RepositoryPath + "/previous"})
	apitest.WantProblem(t, res, body, http.StatusNotFound, "not_found", "no index from before a rebuild is kept")
}
