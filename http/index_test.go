package http_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
)

const (
	repositoryPath   = "/index/repository/song.ca"
	organizationPath = repositoryPath + "/organization/PACA-CA"
	recordPath       = organizationPath + "/id/A1"
)

func TestIndexAccepts(t *testing.T) {
	for name, tt := range map[string]struct {
		ask  ask
		call string
		jobs bool
	}{
		"post record":          {ask{method: "POST", target: recordPath}, "record index song.ca PACA-CA A1 req-1", false},
		"delete record":        {ask{method: "DELETE", target: recordPath}, "record remove song.ca PACA-CA A1 req-1", false},
		"post organization":    {ask{method: "POST", target: organizationPath, body: "{}"}, "run organization song.ca PACA-CA false rest req-1", true},
		"post repository":      {ask{method: "POST", target: repositoryPath}, "run repository song.ca  false rest req-1", true},
		"force":                {ask{method: "POST", target: organizationPath + "?force=true"}, "run organization song.ca PACA-CA true rest req-1", true},
		"rebuild":              {ask{method: "POST", target: repositoryPath + "?rebuild=true"}, "run repository song.ca  false rebuild rest req-1", true},
		"no force":             {ask{method: "POST", target: repositoryPath + "?force=false&rebuild=false"}, "run repository song.ca  false rest req-1", true},
		"escaped slash":        {ask{method: "POST", target: organizationPath + "/id/a%2Fb"}, "record index song.ca PACA-CA a/b req-1", false},
		"escaped percent":      {ask{method: "POST", target: organizationPath + "/id/a%252Fb"}, "record index song.ca PACA-CA a%2Fb req-1", false},
		"lone percent":         {ask{method: "POST", target: organizationPath + "/id/100%25"}, "record index song.ca PACA-CA 100% req-1", false},
		"climb in a segment":   {ask{method: "POST", target: organizationPath + "/id/..%2F..%2Fadmin"}, "record index song.ca PACA-CA ../../admin req-1", false},
		"question mark":        {ask{method: "POST", target: organizationPath + "/id/a%3Fb%23c"}, "record index song.ca PACA-CA a?b#c req-1", false},
		"space and plus":       {ask{method: "POST", target: organizationPath + "/id/a%20b+c"}, "record index song.ca PACA-CA a b+c req-1", false},
		"emoji":                {ask{method: "POST", target: organizationPath + "/id/%F0%9F%A7%AC"}, "record index song.ca PACA-CA 🧬 req-1", false},
		"emoji as it is":       {ask{method: "POST", target: organizationPath + "/id/🧬"}, "record index song.ca PACA-CA 🧬 req-1", false},
		"quotes":               {ask{method: "POST", target: organizationPath + "/id/a%22'b"}, `record index song.ca PACA-CA a"'b req-1`, false},
		"braces":               {ask{method: "POST", target: organizationPath + "/id/%7Bid%7D"}, "record index song.ca PACA-CA {id} req-1", false},
		"three dots":           {ask{method: "POST", target: organizationPath + "/id/..."}, "record index song.ca PACA-CA ... req-1", false},
		"512 bytes":            {ask{method: "POST", target: organizationPath + "/id/" + strings.Repeat("x", 512)}, "record index song.ca PACA-CA " + strings.Repeat("x", 512) + " req-1", false},
		"object of members":    {ask{method: "POST", target: repositoryPath, body: ` {"a":[1]} `}, "run repository song.ca  false rest req-1", true},
		"blank body as text":   {ask{method: "POST", target: repositoryPath, body: "\r\n", header: contentType("text/plain")}, "run repository song.ca  false rest req-1", true},
		"JSON with parameters": {ask{method: "POST", target: repositoryPath, body: "{}", header: contentType("Application/JSON; charset=utf-8")}, "run repository song.ca  false rest req-1", true},
		"no content":           {ask{method: "POST", target: repositoryPath, header: contentType("text/html")}, "run repository song.ca  false rest req-1", true},
	} {
		t.Run(name, func(t *testing.T) {
			var call string
			p := working()
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
			res, body := do(t, newHandler(t, p, api.Config{}), tt.ask)
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

func contentType(v string) http.Header { return http.Header{"Content-Type": {v}} }

func TestIndexRefusesBadInput(t *testing.T) {
	long := strings.Repeat("x", 513)
	for name, tt := range map[string]struct {
		ask    ask
		status int
		code   string
		text   string
	}{
		"broken JSON":              {ask{method: "POST", target: repositoryPath, body: "{"}, 400, "invalid", "not valid JSON"},
		"two values":               {ask{method: "POST", target: repositoryPath, body: "{}{}"}, 400, "invalid", "not valid JSON"},
		"array":                    {ask{method: "POST", target: repositoryPath, body: "[]"}, 400, "invalid", "not a JSON object"},
		"null":                     {ask{method: "POST", target: organizationPath, body: "null"}, 400, "invalid", "not a JSON object"},
		"string on DELETE":         {ask{method: "DELETE", target: recordPath, body: `"x"`}, 400, "invalid", "not a JSON object"},
		"byte order mark":          {ask{method: "POST", target: recordPath, body: "\ufeff{}"}, 400, "invalid", "not valid JSON"},
		"form":                     {ask{method: "POST", target: repositoryPath, body: "{}", header: contentType("application/x-www-form-urlencoded")}, 415, "unsupported_media_type", "not declared as JSON"},
		"broken content type":      {ask{method: "POST", target: repositoryPath, body: "{}", header: contentType("json;;=")}, 415, "unsupported_media_type", "not declared as JSON"},
		"gzip":                     {ask{method: "POST", target: repositoryPath, body: "{}", header: http.Header{"Content-Encoding": {"gzip"}}}, 415, "unsupported_media_type", "not declared as JSON"},
		"too large":                {ask{method: "POST", target: repositoryPath, body: `{"a":"` + strings.Repeat("x", 100) + `"}`}, 413, "too_large", "over the limit of 64 bytes"},
		"bad force":                {ask{method: "POST", target: repositoryPath + "?force=maybe"}, 400, "invalid", "force must be true or false"},
		"capital force":            {ask{method: "POST", target: repositoryPath + "?force=TRUE"}, 400, "invalid", "force must be true or false"},
		"force twice":              {ask{method: "POST", target: repositoryPath + "?force=true&force=true"}, 400, "invalid", "force is given 2 times"},
		"force on a record":        {ask{method: "POST", target: recordPath + "?force=true"}, 400, "invalid", "force does not apply to one record"},
		"rebuild an organization":  {ask{method: "POST", target: organizationPath + "?rebuild=true"}, 400, "invalid", "whole repository only"},
		"bad rebuild":              {ask{method: "POST", target: repositoryPath + "?rebuild=1"}, 400, "invalid", "rebuild must be true or false"},
		"malformed query":          {ask{method: "POST", target: repositoryPath + "?force=%zz"}, 400, "invalid", "query string is malformed"},
		"semicolon query":          {ask{method: "POST", target: repositoryPath + "?a;force=true"}, 400, "invalid", "query string is malformed"},
		"parent":                   {ask{method: "POST", target: repositoryPath + "/organization/%2E%2E"}, 400, "invalid", "organization must not be a relative path segment"},
		"parent as it is":          {ask{method: "POST", target: repositoryPath + "/organization/../id/x"}, 400, "invalid", "organization must not be a relative path segment"},
		"same":                     {ask{method: "POST", target: organizationPath + "/id/%2e"}, 400, "invalid", "id must not be a relative path segment"},
		"long id":                  {ask{method: "POST", target: organizationPath + "/id/" + long}, 400, "invalid", "id has 513 bytes"},
		"long code":                {ask{method: "POST", target: "/index/repository/" + long}, 400, "invalid", "repositoryCode has 513 bytes"},
		"line feed":                {ask{method: "DELETE", target: organizationPath + "/id/a%0Ab"}, 400, "invalid", "control character"},
		"null byte":                {ask{method: "POST", target: organizationPath + "/id/a%00b"}, 400, "invalid", "control character"},
		"C1 control":               {ask{method: "POST", target: organizationPath + "/id/a%C2%85b"}, 400, "invalid", "control character"},
		"bad UTF-8":                {ask{method: "POST", target: organizationPath + "/id/%E0%A4%41"}, 400, "invalid", "not valid UTF-8"},
		"empty code":               {ask{method: "POST", target: "/index/repository//organization/S"}, 400, "invalid", "repositoryCode is empty"},
		"empty organization":       {ask{method: "POST", target: repositoryPath + "/organization//id/A"}, 400, "invalid", "organization is empty"},
		"empty id":                 {ask{method: "POST", target: organizationPath + "/id/"}, 400, "invalid", "last segment of the path is empty"},
		"empty last code":          {ask{method: "POST", target: "/index/repository/"}, 400, "invalid", "last segment of the path is empty"},
		"unknown below index":      {ask{method: "POST", target: "/index/everything"}, 404, "not_found", "no resource has this path"},
		"delete organization":      {ask{method: "DELETE", target: organizationPath}, 405, "method_not_allowed", "does not support this method"},
		"delete repository":        {ask{method: "DELETE", target: repositoryPath}, 405, "method_not_allowed", "does not support this method"},
		"get organization":         {ask{method: "GET", target: organizationPath}, 405, "method_not_allowed", "does not support this method"},
		"not acceptable":           {ask{method: "POST", target: recordPath, header: http.Header{"Accept": {"text/html"}}}, 406, "not_acceptable", "JSON only"},
		"escaped slash in a route": {ask{method: "POST", target: "/index%2Frepository/song.ca"}, 404, "not_found", "no resource has this path"},
	} {
		t.Run(name, func(t *testing.T) {
			p := working()
			p.RecordFn = func(core.Kind, core.RecordRef, string) (string, error) {
				t.Error("a record was asked for")
				return "", nil
			}
			p.RunFn = func(core.Scope, string, string, core.RunFlags, core.Cause, string) (core.Job, error) {
				t.Error("a run was asked for")
				return core.Job{}, nil
			}
			res, body := do(t, newHandler(t, p, api.Config{MaxBodyBytes: 64}), tt.ask)
			got := wantProblem(t, res, body, tt.status, tt.code, tt.text)
			if strings.HasPrefix(tt.ask.target, "/index%2F") {
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
			p := working()
			p.RecordFn = func(core.Kind, core.RecordRef, string) (string, error) { return "", tt.err }
			p.RunFn = func(core.Scope, string, string, core.RunFlags, core.Cause, string) (core.Job, error) {
				return core.Job{}, tt.err
			}
			h := newHandler(t, p, api.Config{})
			for _, target := range []string{recordPath, organizationPath, repositoryPath} {
				res, body := do(t, h, ask{method: "POST", target: target})
				wantProblem(t, res, body, tt.status, tt.code, tt.text)
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
	h := newHandler(t, working(), api.Config{BasePath: "/base/"})
	res, _ := do(t, h, ask{method: "POST", target: "/base" + repositoryPath})
	if res.StatusCode != 202 || res.Header.Get("Location") != "/base/jobs/job-1" {
		t.Errorf("got %d, location %q", res.StatusCode, res.Header.Get("Location"))
	}
	res, body := do(t, h, ask{method: "POST", target: repositoryPath})
	wantProblem(t, res, body, 404, "not_found", "no resource has this path")
	res, body = do(t, h, ask{method: "POST", target: "/base" + repositoryPath + "?force=x"})
	if p := wantProblem(t, res, body, 400, "invalid", "force"); p.Instance != "/base"+repositoryPath || p.Successful == nil {
		t.Errorf("got %s", body)
	}
	_, body = do(t, h, ask{method: "GET", target: "/base/openapi.json"})
	if !strings.Contains(string(body), `"servers":[{"url":"/base"}]`) {
		t.Error("the document's server is not the base path")
	}
}

func TestGoldenProblems(t *testing.T) {
	p := working()
	p.RunFn = func(core.Scope, string, string, core.RunFlags, core.Cause, string) (core.Job, error) {
		return core.Job{}, &core.Error{Code: core.CodeNotFound, Message: `repository "song.xx" is not configured`, Hint: "use the code of a configured repository"}
	}
	h := newHandler(t, p, api.Config{})
	_, body := do(t, h, ask{method: "POST", target: "/index/repository/song.xx"})
	golden(t, "problem_index", body)
	_, body = do(t, h, ask{method: "GET", target: "/nowhere/%7E"})
	golden(t, "problem", body)
}
