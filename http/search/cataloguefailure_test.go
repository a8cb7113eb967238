package search_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/http/search"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// TestEveryPathOfAFailedCatalogue answers with why it failed, by any method.
func TestEveryPathOfAFailedCatalogue(t *testing.T) {
	h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants(), apitest.Biosamples())
	for _, target := range []string{
		"/biosamples", "/biosamples/", "/biosamples/graphql", "/biosamples/graphql/", "/biosamples/download", "/biosamples/introspection", "/biosamples/a/b/c",
		"/biosamples/graphql?query=%7B__typename%7D", "/biosamples/graphql/Arranger-Table", "/biosamples/download/x", "/introspection/biosamples/anything", "/introspection/biosamples/",
		"/introspection/biosamples/a/b", "/biosample", "/biosample/graphql", "/introspection/biosample/x", "/bio%73amples/graphql",
		"/biosamples/%2e%2e/graphql", "/biosamples//",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
			t.Run(method+target, func(t *testing.T) {
				apitest.WantFailure(t, h, apitest.Ask{Method: method, Target: target, Body: `{"query":"{__typename}"}`}, apitest.BiosamplesFailure)
			})
		}
	}
	t.Run("golden", func(t *testing.T) {
		_, _, body := apitest.Exchange(t, h, apitest.Ask{Method: "POST", Target: "/biosamples/graphql"})
		apitest.GoldenInOrder(t, "catalogue_failed_elsewhere", body)
	})
}

func TestWhereNoCatalogueHasFailed(t *testing.T) {
	shared := []*core.Catalogue{
		{ID: "a", DocumentType: "shared", Problem: apitest.Biosamples().Problem}, {ID: "b", DocumentType: "shared", Problem: apitest.Biosamples().Problem},
	}
	const nothing, unknown = "no resource has this path", "catalogue not found"
	for name, tt := range map[string]struct {
		base, target string
		all          []*core.Catalogue
		detail       string
	}{
		"available":                 {"", "/participants/anything", []*core.Catalogue{apitest.Participants(), apitest.Biosamples()}, nothing},
		"available, by its type":    {"", "/participant/anything", []*core.Catalogue{apitest.Participants(), apitest.Biosamples()}, nothing},
		"unknown":                   {"", "/donors/graphql", []*core.Catalogue{apitest.Participants(), apitest.Biosamples()}, unknown},
		"unknown, elsewhere":        {"", "/donors/anything", []*core.Catalogue{apitest.Participants(), apitest.Biosamples()}, nothing},
		"another case":              {"", "/Biosamples/graphql", []*core.Catalogue{apitest.Participants(), apitest.Biosamples()}, unknown},
		"encoded twice":             {"", "/bio%2573amples", []*core.Catalogue{apitest.Biosamples()}, nothing},
		"encoded twice, GraphQL":    {"", "/bio%2573amples/graphql", []*core.Catalogue{apitest.Biosamples()}, unknown},
		"a part of an id":           {"", "/biosamplesx/graphql", []*core.Catalogue{apitest.Biosamples()}, unknown},
		"below another":             {"", "/x/biosamples/graphql", []*core.Catalogue{apitest.Biosamples()}, nothing},
		"root":                      {"", "/", []*core.Catalogue{apitest.Biosamples()}, nothing},
		"an empty segment":          {"", "//biosamples", []*core.Catalogue{apitest.Biosamples()}, nothing},
		"a shared type, elsewhere":  {"", "/shared/anything", shared, nothing},
		"no document type":          {"", "//graphql", []*core.Catalogue{apitest.Broken("donors")}, nothing},
		"no document type, tag":     {"", "//graphql/x", []*core.Catalogue{apitest.Broken("donors")}, nothing},
		"graphql of several":        {"", "/graphql", []*core.Catalogue{apitest.Participants(), apitest.Biosamples()}, "exists only with exactly one catalogue; there are 2"},
		"graphql of none":           {"", "/graphql", nil, "exists only with exactly one catalogue; there is none"},
		"download of several":       {"", "/download", []*core.Catalogue{apitest.Participants(), apitest.Biosamples()}, "exists only with exactly one catalogue; there are 2"},
		"below graphql of several":  {"", "/graphql/x/y", []*core.Catalogue{apitest.Participants(), apitest.Biosamples()}, nothing},
		"below download of one":     {"", "/download/x", []*core.Catalogue{apitest.Participants()}, nothing},
		"below the fields of one":   {"", "/introspection/fields/x", []*core.Catalogue{apitest.Biosamples()}, nothing},
		"without the base path":     {"/base", "/biosamples/graphql", []*core.Catalogue{apitest.Biosamples()}, nothing},
		"a longer base path":        {"/base", "/basebiosamples/graphql", []*core.Catalogue{apitest.Biosamples()}, nothing},
		"an empty id in the detail": {"", "/introspection//x", []*core.Catalogue{apitest.Biosamples()}, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{BasePath: tt.base}, tt.all...)
			res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: tt.target, Body: "{}", Header: http.Header{"Content-Type": {"application/json"}}})
			apitest.WantProblem(t, res, body, 404, "not_found", tt.detail)
		})
	}
	t.Run("a shared type", func(t *testing.T) {
		h, _ := apitest.Catalogued(t, api.Config{}, shared...)
		res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/shared/graphql"})
		apitest.WantProblem(t, res, body, 409, "ambiguous_document_type", `2 catalogues have the documentType "shared"`)
		wantMember(t, body, []any{"a", "b"}, "matchingCatalogueIds")
	})
}

// TestGraphQLOfTheOnlyCatalogue: while it has failed, the paths without its id tell so too.
func TestGraphQLOfTheOnlyCatalogue(t *testing.T) {
	h, s := apitest.Catalogued(t, api.Config{}, apitest.Biosamples())
	for _, target := range []string{"/graphql", "/graphql?query=x", "/graphql/Arranger-Table", "/graphql/a/b", "/download", "/download/x", "/graphql/"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "OPTIONS"} {
			apitest.WantFailure(t, h, apitest.Ask{Method: method, Target: target}, apitest.BiosamplesFailure)
		}
	}
	s.Put(apitest.Biosamples(), apitest.Participants())
	for _, target := range []string{"/graphql", "/graphql/Arranger-Table", "/download"} {
		res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: target})
		apitest.WantProblem(t, res, body, 404, "not_found", "there are 2")
	}
}

// TestFailureEndsWithTheFailure at once, and comes back with the next.
func TestFailureEndsWithTheFailure(t *testing.T) {
	h, s := apitest.Catalogued(t, api.Config{}, apitest.Participants(), apitest.Biosamples())
	healed := apitest.Biosamples()
	healed.Problem = nil
	for range 3 {
		s.Put(apitest.Participants(), apitest.Biosamples())
		apitest.WantFailure(t, h, apitest.Ask{Method: "POST", Target: "/biosamples/graphql"}, apitest.BiosamplesFailure)
		s.Put(apitest.Participants(), healed)
		if res, body := apitest.Post(t, h, "/biosamples/graphql", apitest.Typename); res.StatusCode != 200 || string(body) != apitest.Answered {
			t.Errorf("got %d %s", res.StatusCode, body)
		}
		if got := apitest.MemberOf(t, apitest.Introspect(t, h, "/introspection/biosamples", 200), "catalogId"); got != "biosamples" {
			t.Errorf("the detail is that of %v", got)
		}
	}
}

func TestFailureUnderABasePath(t *testing.T) {
	c := apitest.Biosamples()
	c.ID = "a b/ü"
	h, _ := apitest.Catalogued(t, api.Config{BasePath: "/base"}, c, apitest.Participants())
	want := strings.NewReplacer(`"catalogueId":"biosamples"`, `"catalogueId":"a b/ü"`,
		"/introspection/biosamples", "/base/introspection/a%20b%2F%C3%BC").Replace(apitest.BiosamplesFailure)
	apitest.WantFailure(t, h, apitest.Ask{Method: "POST", Target: "/base/a%20b%2F%C3%BC/graphql"}, want)
	apitest.WantFailure(t, h, apitest.Ask{Method: "POST", Target: "/base/introspection/a%20b%2f%c3%bc/graphql"}, want)
	apitest.Introspect(t, h, "/base/introspection/a%20b%2F%C3%BC", 200)
}

// TestFailureOfWhatIsBarelyKnown has no description, and an empty document type.
func TestFailureOfWhatIsBarelyKnown(t *testing.T) {
	h, _ := apitest.Catalogued(t, api.Config{}, apitest.Broken("donors"))
	apitest.WantFailure(t, h, apitest.Ask{Method: "GET", Target: "/donors/graphql"}, `{"catalogueId":"donors","documentType":"","status":"failed",`+
		`"error":{"code":"schema_build_error","message":"base.json is not JSON."},"details":"/introspection/donors"}`)
}

// TestFailureIsAnAnswerLikeOthers: what is asked of every request holds there too.
func TestFailureIsAnAnswerLikeOthers(t *testing.T) {
	var log bytes.Buffer
	h, _ := apitest.Catalogued(t, api.Config{
		CORSOrigins: []string{apitest.Portal}, CheckHost: true, MaxBodyBytes: 64, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}, apitest.Biosamples())
	const target = "/biosamples/graphql"
	t.Run("another host", func(t *testing.T) {
		res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: target, Host: "evil.example"})
		apitest.WantProblem(t, res, body, 421, "misdirected_request", "Host header")
	})
	t.Run("another origin", func(t *testing.T) {
		header := http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}
		res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: target, Header: header})
		apitest.WantProblem(t, res, body, 403, "forbidden", "another origin")
	})
	t.Run("a listed origin", func(t *testing.T) {
		header := http.Header{"Origin": {apitest.Portal}, "Sec-Fetch-Site": {"cross-site"}}
		_, res, body := apitest.Exchange(t, h, apitest.Ask{Method: "POST", Target: target, Header: header})
		if res.StatusCode != 404 || string(body) != apitest.BiosamplesFailure || res.Header.Get("Access-Control-Allow-Origin") != apitest.Portal {
			t.Errorf("got %d, %v", res.StatusCode, res.Header)
		}
	})
	t.Run("a large body", func(t *testing.T) {
		res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: target, Body: strings.Repeat("x", 65)})
		apitest.WantProblem(t, res, body, 413, "too_large", "64 bytes")
	})
	t.Run("accept", func(t *testing.T) {
		header := http.Header{"Accept": {"application/graphql-response+json"}}
		apitest.WantFailure(t, h, apitest.Ask{Method: "POST", Target: target, Header: header}, apitest.BiosamplesFailure)
	})
	t.Run("headers and log", func(t *testing.T) {
		log.Reset()
		_, res, _ := apitest.Exchange(t, h, apitest.Ask{Method: "GET", Target: target})
		if res.Header.Get("X-Request-Id") != apitest.TestRequestID || res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("ETag") != "" {
			t.Errorf("got %v", res.Header)
		}
		if line := log.String(); !strings.Contains(line, `err="the catalogue has failed: The configured index does not exist."`) ||
			!strings.Contains(line, "status=404") {
			t.Errorf("logged: %s", line)
		}
	})
}

// TestReservedIDsAreThoseOfTheRoutes and those of the routes to come.
func TestReservedIDsAreThoseOfTheRoutes(t *testing.T) {
	h, _ := apitest.Catalogued(t, api.Config{BasePath: "/base"})
	want := []string{"console"}
	for _, r := range h.Routes() {
		segments := strings.Split(strings.TrimPrefix(r.Pattern, "/"), "/")
		if segments[0] == "introspection" && len(segments) > 1 {
			segments = segments[:2]
		} else {
			segments = segments[:1]
		}
		for _, s := range segments {
			if s != "" && !slices.Contains(search.YieldingIDs(), s) && !strings.HasPrefix(s, "{") {
				want = append(want, s)
			}
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), search.ReservedIDs()); diff != "" {
		t.Error(diff)
	}
}
