package api_test

import (
	"log/slog"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/tools/apitest"
)

// TestLenientRoutes: Spring's routes take a final slash and ignore unknown query parameters, so those that clients of Song and Maestro
// use do.
func TestLenientRoutes(t *testing.T) {
	var log strings.Builder
	h := apitest.NewHandler(t, apitest.Working(), api.Config{BasePath: "/base", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, tt := range []struct {
		method, target, body string
		status               int
	}{
		{"GET", "/schemas", "", 200},
		{"POST", "/schemas", "{}", 200},
		{"GET", "/schemas/registration", "", 200},
		{"GET", "/schemas/variant_call", "", 200},
		{"GET", "/schemas/variant_call/versions/1", "", 200},
		{"GET", "/studies/all", "", 200},
		{"GET", "/studies/S", "", 200},
		{"POST", "/studies/S", `{"studyId":"S"}`, 200},
		{"GET", "/studies/S/analysis", "", 200},
		{"GET", "/studies/S/analysis/A", "", 200},
		{"PUT", "/studies/S/analysis/publish/A", "", 200},
		{"POST", "/submit/S", "{}", 200},
		{"GET", "/isAlive", "", 200},
		{"GET", "/health", "", 200},
		{"POST", apitest.RepositoryPath, "", 202},
		{"POST", apitest.OrganizationPath, "", 202},
		{"POST", apitest.RecordPath, "", 202},
		{"DELETE", apitest.RecordPath, "", 202},
	} {
		for _, target := range []string{tt.target, tt.target + "/", tt.target + "?nobody=secret", tt.target + "/?nobody=other"} {
			a := apitest.Ask{Method: tt.method, Target: "/base" + target, Body: tt.body}
			if _, res, body := apitest.Exchange(t, h, a); res.StatusCode != tt.status {
				t.Errorf("%s %s: got %d %s", tt.method, target, res.StatusCode, body)
			}
		}
		if n := strings.Count(log.String(), "ignored_query=nobody"); n != 1 {
			t.Errorf("%s %s: the parameter was logged %d times", tt.method, tt.target, n)
		}
		log.Reset()
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("the value of a parameter is in the log")
	}
	for _, target := range []string{apitest.RepositoryPath + "?force=true&difference=true", apitest.OrganizationPath + "?difference=true", apitest.RecordPath + "?difference=false"} {
		apitest.Exchange(t, h, apitest.Ask{Method: "POST", Target: "/base" + target, Body: "{}"})
		if strings.Contains(log.String(), "ignored_query") {
			t.Errorf("%s: %s", target, log.String())
		}
		log.Reset()
	}
}

// TestStrictPathsKeepTheirSlash: no other route takes a final slash.
func TestStrictPathsKeepTheirSlash(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for _, target := range []string{"/jobs/", "/ping/", "/keys/", "/schemas//", "/studies/", "/studies//"} {
		if _, res, body := apitest.Exchange(t, h, apitest.Ask{Method: "GET", Target: target}); res.StatusCode != 404 && res.StatusCode != 400 {
			t.Errorf("%s: got %d %s", target, res.StatusCode, body)
		}
	}
	_, res, body := apitest.Exchange(t, h, apitest.Ask{Method: "DELETE", Target: "/schemas/"})
	apitest.WantProblem(t, res, body, 405, "method_not_allowed", "does not support this method")
}
