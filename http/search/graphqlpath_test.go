package search_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// TestGraphQLPathsOfACatalogue: its id, a documentType that is its alone, and nothing while it is the only one.
func TestGraphQLPathsOfACatalogue(t *testing.T) {
	odd := apitest.Plain("a b/ü")
	odd.DocumentType = "graphql"
	for name, tt := range map[string]struct {
		base, target, want string
		all                []*core.Catalogue
	}{
		"id":                {"", "/participants/graphql", "participants", []*core.Catalogue{apitest.Participants(), odd}},
		"tag":               {"", "/participants/graphql/Arranger-Table", "participants", []*core.Catalogue{apitest.Participants(), odd}},
		"document type":     {"", "/participant/graphql", "participants", []*core.Catalogue{apitest.Participants(), odd}},
		"id before type":    {"", "/record/graphql", "record", []*core.Catalogue{apitest.Plain("record"), apitest.Plain("other")}},
		"escaped":           {"", "/participant%73/graphql", "participants", []*core.Catalogue{apitest.Participants(), odd}},
		"odd id":            {"/base", "/base/a%20b%2F%C3%BC/graphql", "a b/ü", []*core.Catalogue{apitest.Participants(), odd}},
		"only":              {"", "/graphql", "participants", []*core.Catalogue{apitest.Participants()}},
		"only, tag":         {"/base", "/base/graphql/a%20b", "participants", []*core.Catalogue{apitest.Participants()}},
		"only, by its id":   {"", "/participants/graphql", "participants", []*core.Catalogue{apitest.Participants()}},
		"only, of any type": {"", "/graphql", "a b/ü", []*core.Catalogue{odd}},
		"beside a failed":   {"", "/participants/graphql", "participants", []*core.Catalogue{apitest.Participants(), apitest.Biosamples()}},
	} {
		t.Run(name, func(t *testing.T) {
			h, _, last := apitest.Searched(t, api.Config{BasePath: tt.base}, tt.all...)
			res, body := apitest.Post(t, h, tt.target, apitest.Typename)
			if res.StatusCode != 200 || string(body) != apitest.Answered || last.Catalogue != tt.want {
				t.Errorf("got %d %s of %q", res.StatusCode, body, last.Catalogue)
			}
			if strings.Contains(tt.target, "/Arranger-Table") || strings.Contains(tt.target, "a%20b") && tt.want == "participants" {
				return
			}
			*last = apitest.Seen{}
			res, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: tt.target + "?query=%7B__typename%7D"})
			if res.StatusCode != 200 || string(body) != apitest.Answered || last.Catalogue != tt.want {
				t.Errorf("by GET: got %d %s of %q", res.StatusCode, body, last.Catalogue)
			}
		})
	}
}

// TestGraphQLPathsThatAreNone: where no catalogue is meant, and where another route begins.
func TestGraphQLPathsThatAreNone(t *testing.T) {
	many := []*core.Catalogue{apitest.Participants(), apitest.Plain("jobs-of")}
	for i := range 11 {
		many = append(many, apitest.Plain(fmt.Sprintf("c%02d", i)))
	}
	misnamed := apitest.Plain("typed")
	misnamed.DocumentType = "jobs"
	for name, tt := range map[string]struct {
		method, target string
		all            []*core.Catalogue
		status         int
		code           string
		detail, hint   string
		allow          string
	}{
		"unknown": {
			"POST", "/donors/graphql",
			[]*core.Catalogue{apitest.Participants()},
			404, "not_found",
			"catalogue not found", "GET /introspection lists all catalogues", "",
		},
		"several": {
			"POST", "/graphql",
			[]*core.Catalogue{apitest.Participants(), apitest.Plain("a b")},
			404, "not_found",
			"this path exists only with exactly one catalogue; there are 2",
			"use the path of a catalogue: /a%20b/graphql, /participants/graphql", "",
		},
		"several, tag": {
			"POST", "/graphql/t",
			[]*core.Catalogue{apitest.Participants(), apitest.Plain("b")},
			404, "not_found",
			"this path exists only with exactly one catalogue; there are 2",
			"use the path of a catalogue: /b/graphql, /participants/graphql", "",
		},
		"several, download": {
			"POST", "/download",
			[]*core.Catalogue{apitest.Participants(), apitest.Plain("b")},
			404, "not_found",
			"this path exists only with exactly one catalogue; there are 2",
			"use the path of a catalogue: /b/download, /participants/download", "",
		},
		"many": {
			"GET", "/graphql", many, 404, "not_found", "; there are 13",
			"use the path of a catalogue: /c00/graphql, /c01/graphql, /c02/graphql, /c03/graphql, /c04/graphql, /c05/graphql, " +
				"/c06/graphql, /c07/graphql, /c08/graphql, /c09/graphql and others, which GET /introspection lists", "",
		},
		"none":           {"POST", "/graphql", nil, 404, "not_found", "; there is none", "", ""},
		"shared type":    {"GET", "/record/graphql", many, 409, "ambiguous_document_type", `12 catalogues have the documentType "record"`, "use the id of a catalogue: c00, c01, c02, c03, c04, c05, c06, c07, c08, c09", ""},
		"relative":       {"POST", "/%2e%2e/graphql", many, 400, "invalid", "catalogueId", "", ""},
		"control":        {"POST", "/a%00/graphql", many, 400, "invalid", "catalogueId", "", ""},
		"long":           {"POST", "/" + strings.Repeat("x", 513) + "/graphql", many, 400, "invalid", "catalogueId", "", ""},
		"tag control":    {"POST", "/participants/graphql/%01", many, 400, "invalid", "tag contains a control character", "", ""},
		"tag by GET":     {"GET", "/participants/graphql/t?query=x", many, 405, "method_not_allowed", "does not support this method", "use POST", "POST"},
		"other method":   {"PUT", "/participants/graphql", many, 405, "method_not_allowed", "does not support this method", "use GET, HEAD, POST", "GET, HEAD, POST"},
		"get a download": {"GET", "/participants/download", many, 405, "method_not_allowed", "does not support this method", "use POST", "POST"},
		"a job":          {"POST", "/jobs/graphql", []*core.Catalogue{misnamed}, 405, "method_not_allowed", "does not support this method", "use GET, HEAD, DELETE", "GET, HEAD, DELETE"},
		"a detail":       {"POST", "/introspection/graphql", many, 405, "method_not_allowed", "does not support this method", "use GET, HEAD", "GET, HEAD"},
		"below a route":  {"POST", "/ping/graphql", many, 404, "not_found", "no resource has this path", "all paths are in /openapi.json", ""},
		"below, tag":     {"POST", "/ready/graphql/t", many, 404, "not_found", "no resource has this path", "all paths are in /openapi.json", ""},
		"below, GET":     {"GET", "/submit/graphql", many, 405, "method_not_allowed", "does not support this method", "use POST", "POST"},
		"empty":          {"POST", "//graphql", many, 404, "not_found", "no resource has this path", "all paths are in /openapi.json", ""},
		"empty tag":      {"POST", "/participants/graphql/", many, 400, "invalid", "the last segment of the path is empty", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, _, last := apitest.Searched(t, api.Config{}, tt.all...)
			header := http.Header{"Content-Type": {"application/json"}}
			res, body := apitest.Do(t, h, apitest.Ask{Method: tt.method, Target: tt.target, Body: apitest.Typename, Header: header})
			p := apitest.WantProblem(t, res, body, tt.status, tt.code, tt.detail)
			if p.Hint != tt.hint || res.Header.Get("Allow") != tt.allow || last.Catalogue != "" {
				t.Errorf("hint %q, allow %q, asked of %q", p.Hint, res.Header.Get("Allow"), last.Catalogue)
			}
		})
	}
}
