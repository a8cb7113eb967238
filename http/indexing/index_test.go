package indexing_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

func TestIndexAccepts(t *testing.T) {
	for name, tt := range map[string]struct {
		ask  apitest.Ask
		call string
		jobs bool
	}{
		"post record":          {apitest.Ask{Method: "POST", Target: apitest.RecordPath}, "record index song.ca PACA-CA A1 req-1", false},
		"delete record":        {apitest.Ask{Method: "DELETE", Target: apitest.RecordPath}, "record remove song.ca PACA-CA A1 req-1", false},
		"post organization":    {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath, Body: "{}"}, "run organization song.ca PACA-CA false rest req-1", true},
		"post repository":      {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath}, "run repository song.ca  false rest req-1", true},
		"force":                {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "?force=true"}, "run organization song.ca PACA-CA true rest req-1", true},
		"rebuild":              {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "?rebuild=true"}, "run repository song.ca  false rebuild rest req-1", true},
		"no force":             {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "?force=false&rebuild=false"}, "run repository song.ca  false rest req-1", true},
		"escaped slash":        {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/a%2Fb"}, "record index song.ca PACA-CA a/b req-1", false},
		"escaped percent":      {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/a%252Fb"}, "record index song.ca PACA-CA a%2Fb req-1", false},
		"lone percent":         {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/100%25"}, "record index song.ca PACA-CA 100% req-1", false},
		"climb in a segment":   {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/..%2F..%2Fadmin"}, "record index song.ca PACA-CA ../../admin req-1", false},
		"question mark":        {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/a%3Fb%23c"}, "record index song.ca PACA-CA a?b#c req-1", false},
		"space and plus":       {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/a%20b+c"}, "record index song.ca PACA-CA a b+c req-1", false},
		"emoji":                {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/%F0%9F%A7%AC"}, "record index song.ca PACA-CA 🧬 req-1", false},
		"emoji as it is":       {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/🧬"}, "record index song.ca PACA-CA 🧬 req-1", false},
		"quotes":               {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/a%22'b"}, `record index song.ca PACA-CA a"'b req-1`, false},
		"braces":               {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/%7Bid%7D"}, "record index song.ca PACA-CA {id} req-1", false},
		"three dots":           {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/..."}, "record index song.ca PACA-CA ... req-1", false},
		"512 bytes":            {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/" + strings.Repeat("x", 512)}, "record index song.ca PACA-CA " + strings.Repeat("x", 512) + " req-1", false},
		"object of members":    {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Body: ` {"a":[1]} `}, "run repository song.ca  false rest req-1", true},
		"blank body as text":   {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Body: "\r\n", Header: apitest.ContentType("text/plain")}, "run repository song.ca  false rest req-1", true},
		"JSON with parameters": {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Body: "{}", Header: apitest.ContentType("Application/JSON; charset=utf-8")}, "run repository song.ca  false rest req-1", true},
		"no content":           {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Header: apitest.ContentType("text/html")}, "run repository song.ca  false rest req-1", true},
	} {
		t.Run(name, func(t *testing.T) {
			var call string
			p := apitest.Working()
			p.RecordFn = func(kind core.Kind, record core.RecordRef, requestID string) (string, error) {
				call = fmt.Sprint("record ", kind, " ", record.Repository(), " ", record.Organization(), " ", record.ID(), " ", requestID)
				return "analyses", nil
			}
			p.RunFn = func(scope core.Scope, repository, organization string, flags core.RunFlags, cause core.Cause, requestID string) (core.Job, error) {
				rebuild := ""
				if flags.Rebuild {
					rebuild = "rebuild "
				}
				call = fmt.Sprintf("run %s %s %s %t %s%s %s", scope, repository, organization, flags.Force, rebuild, cause, requestID)
				return core.Job{ID: "job-1", IndexName: "analyses"}, nil
			}
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), tt.ask)
			if call != tt.call {
				t.Errorf("call: got %q, want %q", call, tt.call)
			}
			want, location := `{"successful":true,"indexName":"analyses","requestId":"req-1"}`, ""
			if tt.jobs {
				want, location = `{"successful":true,"indexName":"analyses","requestId":"req-1","jobId":"job-1"}`, "/jobs/job-1"
			}
			if res.StatusCode != http.StatusAccepted || string(body) != want {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
			if got := res.Header.Get("Location"); got != location {
				t.Errorf("location: got %q, want %q", got, location)
			}
		})
	}
}

func TestIndexRefusesBadInput(t *testing.T) {
	long := strings.Repeat("x", 513)
	for name, tt := range map[string]struct {
		ask    apitest.Ask
		status int
		code   string
		text   string
	}{
		"broken JSON":              {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Body: "{"}, 400, "invalid", "not valid JSON"},
		"two values":               {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Body: "{}{}"}, 400, "invalid", "not valid JSON"},
		"array":                    {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Body: "[]"}, 400, "invalid", "not a JSON object"},
		"null":                     {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath, Body: "null"}, 400, "invalid", "not a JSON object"},
		"string on DELETE":         {apitest.Ask{Method: "DELETE", Target: apitest.RecordPath, Body: `"x"`}, 400, "invalid", "not a JSON object"},
		"byte order mark":          {apitest.Ask{Method: "POST", Target: apitest.RecordPath, Body: "\ufeff{}"}, 400, "invalid", "not valid JSON"},
		"form":                     {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Body: "{}", Header: apitest.ContentType("application/x-www-form-urlencoded")}, 415, "unsupported_media_type", "not declared as JSON"},
		"broken content type":      {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Body: "{}", Header: apitest.ContentType("json;;=")}, 415, "unsupported_media_type", "not declared as JSON"},
		"gzip":                     {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Body: "{}", Header: http.Header{"Content-Encoding": {"gzip"}}}, 415, "unsupported_media_type", "not declared as JSON"},
		"too large":                {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath, Body: `{"a":"` + strings.Repeat("x", 100) + `"}`}, 413, "too_large", "over the limit of 64 bytes"},
		"bad force":                {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "?force=maybe"}, 400, "invalid", "force must be true or false"},
		"capital force":            {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "?force=TRUE"}, 400, "invalid", "force must be true or false"},
		"force twice":              {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "?force=true&force=true"}, 400, "invalid", "force is given 2 times"},
		"force on a record":        {apitest.Ask{Method: "POST", Target: apitest.RecordPath + "?force=true"}, 400, "invalid", "force does not apply to one record"},
		"rebuild an organization":  {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "?rebuild=true"}, 400, "invalid", "whole repository only"},
		"bad rebuild":              {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "?rebuild=1"}, 400, "invalid", "rebuild must be true or false"},
		"malformed query":          {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "?force=%zz"}, 400, "invalid", "query string is malformed"},
		"semicolon query":          {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "?a;force=true"}, 400, "invalid", "query string is malformed"},
		"parent":                   {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "/organization/%2E%2E"}, 400, "invalid", "organization must not be a relative path segment"},
		"parent as it is":          {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "/organization/../id/x"}, 400, "invalid", "organization must not be a relative path segment"},
		"same":                     {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/%2e"}, 400, "invalid", "id must not be a relative path segment"},
		"long id":                  {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/" + long}, 400, "invalid", "id has 513 bytes"},
		"long code":                {apitest.Ask{Method: "POST", Target: "/index/repository/" + long}, 400, "invalid", "repositoryCode has 513 bytes"},
		"line feed":                {apitest.Ask{Method: "DELETE", Target: apitest.OrganizationPath + "/id/a%0Ab"}, 400, "invalid", "control character"},
		"null byte":                {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/a%00b"}, 400, "invalid", "control character"},
		"C1 control":               {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/a%C2%85b"}, 400, "invalid", "control character"},
		"bad UTF-8":                {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/%E0%A4%41"}, 400, "invalid", "not valid UTF-8"},
		"empty code":               {apitest.Ask{Method: "POST", Target: "/index/repository//organization/S"}, 400, "invalid", "repositoryCode is empty"},
		"empty organization":       {apitest.Ask{Method: "POST", Target: apitest.RepositoryPath + "/organization//id/A"}, 400, "invalid", "organization is empty"},
		"empty id":                 {apitest.Ask{Method: "POST", Target: apitest.OrganizationPath + "/id/"}, 400, "invalid", "last segment of the path is empty"},
		"empty last code":          {apitest.Ask{Method: "POST", Target: "/index/repository/"}, 400, "invalid", "last segment of the path is empty"},
		"unknown below index":      {apitest.Ask{Method: "POST", Target: "/index/everything"}, 404, "not_found", "no resource has this path"},
		"delete organization":      {apitest.Ask{Method: "DELETE", Target: apitest.OrganizationPath}, 405, "method_not_allowed", "does not support this method"},
		"delete repository":        {apitest.Ask{Method: "DELETE", Target: apitest.RepositoryPath}, 405, "method_not_allowed", "does not support this method"},
		"get organization":         {apitest.Ask{Method: "GET", Target: apitest.OrganizationPath}, 405, "method_not_allowed", "does not support this method"},
		"not acceptable":           {apitest.Ask{Method: "POST", Target: apitest.RecordPath, Header: http.Header{"Accept": {"text/html"}}}, 406, "not_acceptable", "JSON only"},
		"escaped slash in a route": {apitest.Ask{Method: "POST", Target: "/index%2Frepository/song.ca"}, 404, "not_found", "no resource has this path"},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			p.RecordFn = func(core.Kind, core.RecordRef, string) (string, error) {
				t.Error("a record was asked for")
				return "", nil
			}
			p.RunFn = func(core.Scope, string, string, core.RunFlags, core.Cause, string) (core.Job, error) {
				t.Error("a run was asked for")
				return core.Job{}, nil
			}
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{MaxBodyBytes: 64}), tt.ask)
			got := apitest.WantProblem(t, res, body, tt.status, tt.code, tt.text)
			if strings.HasPrefix(tt.ask.Target, "/index%2F") {
				return
			}
			if got.Successful == nil || *got.Successful || got.Message == nil || *got.Message != got.Detail || got.Details == nil {
				t.Errorf("not an answer of the indexing service: %s", body)
			}
		})
	}
}

func TestIndexErrorsOfTheService(t *testing.T) {
	secret := errors.New("dial tcp 10.0.0.7:4222: token=s3cret")
	for name, tt := range map[string]struct {
		err        error
		status     int
		code, text string
		retryAfter string
	}{
		"unknown repository": {core.NewError(core.CodeNotFound, `repository "x" is not configured`), 404, "not_found", "not configured", ""},
		"queue full":         {&core.Error{Code: core.CodeOverloaded, Message: "the queue is full", RetryAfter: 1500 * time.Millisecond}, 503, "overloaded", "queue is full", "2"},
		"queue gone":         {fmt.Errorf("publishing: %w", core.WrapError(core.CodeUnavailable, "the queue does not answer", secret)), 503, "unavailable", "the queue does not answer", "2"},
		"unknown fault":      {secret, 500, "internal", "an internal error occurred", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			p.RecordFn = func(core.Kind, core.RecordRef, string) (string, error) { return "", tt.err }
			p.RunFn = func(core.Scope, string, string, core.RunFlags, core.Cause, string) (core.Job, error) {
				return core.Job{}, tt.err
			}
			h := apitest.NewHandler(t, p, api.Config{})
			for _, target := range []string{apitest.RecordPath, apitest.OrganizationPath, apitest.RepositoryPath} {
				res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: target})
				apitest.WantProblem(t, res, body, tt.status, tt.code, tt.text)
				if got := res.Header.Get("Retry-After"); got != tt.retryAfter {
					t.Errorf("retry-after: got %q, want %q", got, tt.retryAfter)
				}
				if res.Header.Get("Location") != "" {
					t.Error("a refusal has a Location")
				}
				if strings.Contains(string(body), "s3cret") || strings.Contains(string(body), "10.0.0.7") {
					t.Errorf("the cause is shown: %s", body)
				}
			}
		})
	}
}

func TestBasePathPrefixesEverything(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{BasePath: "/base/"})
	res, _ := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/base" + apitest.RepositoryPath})
	if res.StatusCode != 202 || res.Header.Get("Location") != "/base/jobs/job-1" {
		t.Errorf("got %d, location %q", res.StatusCode, res.Header.Get("Location"))
	}
	res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: apitest.RepositoryPath})
	apitest.WantProblem(t, res, body, 404, "not_found", "no resource has this path")
	res, body = apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/base" + apitest.RepositoryPath + "?force=x"})
	if p := apitest.WantProblem(t, res, body, 400, "invalid", "force"); p.Instance != "/base"+apitest.RepositoryPath || p.Successful == nil {
		t.Errorf("got %s", body)
	}
	_, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/base/openapi.json"})
	if !strings.Contains(string(body), `"servers":[{"url":"/base"}]`) {
		t.Error("the document's server is not the base path")
	}
}

func TestGoldenProblems(t *testing.T) {
	p := apitest.Working()
	p.RunFn = func(core.Scope, string, string, core.RunFlags, core.Cause, string) (core.Job, error) {
		return core.Job{}, &core.Error{Code: core.CodeNotFound, Message: `repository "song.xx" is not configured`, Hint: "use the code of a configured repository"}
	}
	h := apitest.NewHandler(t, p, api.Config{})
	_, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/index/repository/song.xx"})
	apitest.Golden(t, "problem_index", body)
	_, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/nowhere/%7E"})
	apitest.Golden(t, "problem", body)
}
