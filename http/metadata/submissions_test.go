package metadata_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/tools/apitest"
)

// calls are ports that write down what they are asked for.
func calls(got *string) *apitest.Ports {
	return apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.SubmitFn = func(study string, body []byte, allowDuplicates bool) (string, error) {
			*got = fmt.Sprint("submit ", study, " ", string(body), " ", allowDuplicates)
			return "A1", nil
		}
		m.ReplaceFn = func(study, id string, body []byte) error {
			*got = fmt.Sprint("replace ", study, " ", id, " ", string(body))
			return nil
		}
		m.MergeFn = func(study, id string, patch []byte) error {
			*got = fmt.Sprint("merge ", study, " ", id, " ", string(patch))
			return nil
		}
		m.SetStateFn = func(study, id string, state datamodel.AnalysisState, ignoreUndefinedMD5 bool) error {
			*got = fmt.Sprint("state ", study, " ", id, " ", state, " ", ignoreUndefinedMD5)
			return nil
		}
	})
}

func TestSubmissions(t *testing.T) {
	const one = "/studies/S/analysis/A%2F1"
	const updated = `{"message":"AnalysisId A/1 successfully updated"}`
	for name, tt := range map[string]struct {
		ask        apitest.Ask
		call, body string
	}{
		"submit":           {apitest.Ask{Method: "POST", Target: "/submit/S", Body: `{"a": 1}`}, `submit S {"a": 1} false`, `{"analysisId":"A1","status":"OK"}`},
		"with duplicates":  {apitest.Ask{Method: "POST", Target: "/submit/S?allowDuplicates=True", Body: `{}`}, `submit S {} true`, `{"analysisId":"A1","status":"OK"}`},
		"replace":          {apitest.Ask{Method: "PUT", Target: one, Body: `{}`}, "replace S A/1 {}", updated},
		"merge":            {apitest.Ask{Method: "PATCH", Target: one, Body: `{"a":null}`}, `merge S A/1 {"a":null}`, updated},
		"merge as a patch": {apitest.Ask{Method: "PATCH", Target: one, Body: `{}`, Header: http.Header{"Content-Type": {"application/merge-patch+json"}}}, "merge S A/1 {}", updated},
		"publish":          {apitest.Ask{Method: "PUT", Target: "/studies/S/analysis/publish/A%251?ignoreUndefinedMd5=true"}, "state S A%1 PUBLISHED true", `{"message":"AnalysisId A%1 successfully published"}`},
		"unpublish":        {apitest.Ask{Method: "PUT", Target: "/studies/S/analysis/unpublish/A1", Body: "{}"}, "state S A1 UNPUBLISHED false", `{"message":"AnalysisId A1 successfully unpublished"}`},
		"publish, null":    {apitest.Ask{Method: "PUT", Target: "/studies/S/analysis/publish/A1", Body: "null", Header: http.Header{"Content-Type": {"application/json"}}}, "state S A1 PUBLISHED false", `{"message":"AnalysisId A1 successfully published"}`},
		"suppress, null":   {apitest.Ask{Method: "PUT", Target: "/studies/S/analysis/suppress/A1", Body: " null\n"}, "state S A1 SUPPRESSED false", `{"message":"AnalysisId A1 was suppressed"}`},
		"suppress":         {apitest.Ask{Method: "PUT", Target: "/studies/S/analysis/suppress/A1"}, "state S A1 SUPPRESSED false", `{"message":"AnalysisId A1 was suppressed"}`},
		"one called files": {apitest.Ask{Method: "PUT", Target: "/studies/S/analysis/files", Body: `{}`}, "replace S files {}", `{"message":"AnalysisId files successfully updated"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			res, body := apitest.Do(t, apitest.NewHandler(t, calls(&got), api.Config{}), tt.ask)
			if res.StatusCode != 200 || string(body) != tt.body || got != tt.call {
				t.Errorf("got %d %s for %s", res.StatusCode, body, got)
			}
		})
	}
}

// TestNotIndexed: a header says that no index gets an analysis, when it is submitted and published, and only then.
func TestNotIndexed(t *testing.T) {
	for _, why := range []string{"no index gets it", ""} {
		ports := apitest.WithMetadata(func(m *apitest.MetadataMock) { m.NotIndexed = why })
		h := apitest.NewHandler(t, ports, api.Config{})
		for _, c := range []struct {
			ask   apitest.Ask
			warns bool
		}{
			{apitest.Ask{Method: "POST", Target: "/submit/S", Body: "{}"}, true},
			{apitest.Ask{Method: "PUT", Target: "/studies/S/analysis/publish/A1"}, true},
			{apitest.Ask{Method: "PUT", Target: "/studies/S/analysis/unpublish/A1"}, false},
		} {
			want := ""
			if c.warns && why != "" {
				want = `299 tutti "no index gets it"`
			}
			if res, _ := apitest.Do(t, h, c.ask); res.StatusCode != 200 || res.Header.Get("Warning") != want {
				t.Errorf("%s: status %d, warning %q, want %q", c.ask.Target, res.StatusCode, res.Header.Get("Warning"), want)
			}
		}
	}
}

func TestSubmissionsRefuse(t *testing.T) {
	refuse := func(id string, code core.Code) error {
		return fmt.Errorf("deep below: %w", &core.Error{Code: code, ErrorID: id, Message: "refused as " + id})
	}
	kinds := map[string]core.Code{
		"payload.parsing": core.CodeInvalid, "schema.violation": core.CodeInvalid, "study.id.does.not.exist": core.CodeNotFound,
		"analysis.id.not.found": core.CodeNotFound, "duplicate.file": core.CodeConflict, "suppressed.state.transition": core.CodeConflict,
	}
	statuses := map[string]int{
		"payload.parsing": 422, "schema.violation": 400, "study.id.does.not.exist": 404, "analysis.id.not.found": 404,
		"duplicate.file": 409, "suppressed.state.transition": 409,
	}
	for id, code := range kinds {
		p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
			m.SubmitFn = func(string, []byte, bool) (string, error) { return "", refuse(id, code) }
			m.ReplaceFn = func(string, string, []byte) error { return refuse(id, code) }
			m.MergeFn = m.ReplaceFn
			m.SetStateFn = func(string, string, datamodel.AnalysisState, bool) error { return refuse(id, code) }
		})
		h := apitest.NewHandler(t, p, api.Config{})
		for _, a := range []apitest.Ask{
			{Method: "POST", Target: "/submit/S", Body: "["},
			{Method: "PUT", Target: "/studies/S/analysis/A", Body: "["},
			{Method: "PATCH", Target: "/studies/S/analysis/A", Body: "["},
			{Method: "PUT", Target: "/studies/S/analysis/publish/A"},
		} {
			if strings.Contains(a.Target, "publish") && (statuses[id] == 422 || statuses[id] == 400) {
				continue // there is no payload
			}
			t.Run(id+" "+a.Method+a.Target, func(t *testing.T) {
				res, body := apitest.Do(t, h, a)
				if p := apitest.WantProblem(t, res, body, statuses[id], string(code), "refused as "+id); p.ErrorID != id || p.HTTPStatusCode != statuses[id] {
					t.Errorf("got %+v", p)
				}
			})
		}
	}
}

// TestPayloadsThatNobodyReads are refused before any port is asked.
func TestPayloadsThatNobodyReads(t *testing.T) {
	var got string
	h := apitest.NewHandler(t, calls(&got), api.Config{MaxBodyBytes: 64})
	text := http.Header{"Content-Type": {"text/plain"}}
	for name, tt := range map[string]struct {
		body   string
		header http.Header
		status int
		code   string
		id     string
		text   string
	}{
		"empty":     {"", nil, 422, "invalid", "payload.parsing", "the body is empty"},
		"blank":     {"\n", nil, 422, "invalid", "payload.parsing", "the body is empty"},
		"text":      {"{}", text, 415, "unsupported_media_type", "unsupported.media.type", "not declared as JSON"},
		"too large": {strings.Repeat(" ", 65), nil, 413, "too_large", "payload.too.large", "64 bytes"},
	} {
		for _, a := range []apitest.Ask{
			{Method: "POST", Target: "/submit/S"},
			{Method: "PUT", Target: "/studies/S/analysis/A"},
			{Method: "PATCH", Target: "/studies/S/analysis/A"},
		} {
			t.Run(name+" "+a.Method, func(t *testing.T) {
				a.Body, a.Header = tt.body, tt.header
				res, body := apitest.Do(t, h, a)
				if p := apitest.WantProblem(t, res, body, tt.status, tt.code, tt.text); p.ErrorID != tt.id {
					t.Errorf("errorId: got %q", p.ErrorID)
				}
			})
		}
	}
	for target, text := range map[string]string{
		"/submit/S?allowDuplicates=maybe":                        `allowDuplicates must be true or false, not "maybe"`,
		"/submit/%2E%2E":                                         "study must not be a relative path segment",
		"/studies/S/analysis/publish/A?ignoreUndefinedMd5=maybe": `ignoreUndefinedMd5 must be true or false, not "maybe"`,
	} {
		method := "PUT"
		if strings.HasPrefix(target, "/submit") {
			method = "POST"
		}
		t.Run(target, func(t *testing.T) {
			res, body := apitest.Do(t, h, apitest.Ask{Method: method, Target: target, Body: "{}"})
			apitest.WantProblem(t, res, body, 400, "invalid", text)
		})
	}
	if got != "" {
		t.Errorf("asked for %s", got)
	}
}
