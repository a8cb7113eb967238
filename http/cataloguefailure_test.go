package http_test

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
)

const biosamplesFailure = `{"catalogueId":"biosamples","description":"Tissue sample records.","documentType":"biosample","status":"failed",` +
	`"error":{"code":"index_not_found","message":"The configured index does not exist."},"details":"/introspection/biosamples"}`

// TestEveryPathOfAFailedCatalogue answers with why it failed, by any method.
func TestEveryPathOfAFailedCatalogue(t *testing.T) {
	h, _ := catalogued(t, api.Config{}, participants(), biosamples())
	for _, target := range []string{
		"/biosamples", "/biosamples/", "/biosamples/graphql", "/biosamples/graphql/", "/biosamples/download", "/biosamples/introspection", "/biosamples/a/b/c",
		"/biosamples/graphql?query=%7B__typename%7D", "/biosamples/graphql/Arranger-Table", "/biosamples/download/x", "/introspection/biosamples/anything", "/introspection/biosamples/",
		"/introspection/biosamples/a/b", "/biosample", "/biosample/graphql", "/introspection/biosample/x", "/bio%73amples/graphql",
		"/biosamples/%2e%2e/graphql", "/biosamples//",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
			t.Run(method+target, func(t *testing.T) {
				wantFailure(t, h, ask{method: method, target: target, body: `{"query":"{__typename}"}`}, biosamplesFailure)
			})
		}
	}
	t.Run("golden", func(t *testing.T) {
		_, _, body := exchange(t, h, ask{method: "POST", target: "/biosamples/graphql"})
		goldenInOrder(t, "catalogue_failed_elsewhere", body)
	})
}

func TestWhereNoCatalogueHasFailed(t *testing.T) {
	shared := []*core.Catalogue{
		{ID: "a", DocumentType: "shared", Problem: biosamples().Problem}, {ID: "b", DocumentType: "shared", Problem: biosamples().Problem},
	}
	const nothing, unknown = "no resource has this path", "catalogue not found"
	for name, tt := range map[string]struct {
		base, target string
		all          []*core.Catalogue
		detail       string
	}{
		"available":                 {"", "/participants/anything", []*core.Catalogue{participants(), biosamples()}, nothing},
		"available, by its type":    {"", "/participant/anything", []*core.Catalogue{participants(), biosamples()}, nothing},
		"unknown":                   {"", "/donors/graphql", []*core.Catalogue{participants(), biosamples()}, unknown},
		"unknown, elsewhere":        {"", "/donors/anything", []*core.Catalogue{participants(), biosamples()}, nothing},
		"another case":              {"", "/Biosamples/graphql", []*core.Catalogue{participants(), biosamples()}, unknown},
		"encoded twice":             {"", "/bio%2573amples", []*core.Catalogue{biosamples()}, nothing},
		"encoded twice, GraphQL":    {"", "/bio%2573amples/graphql", []*core.Catalogue{biosamples()}, unknown},
		"a part of an id":           {"", "/biosamplesx/graphql", []*core.Catalogue{biosamples()}, unknown},
		"below another":             {"", "/x/biosamples/graphql", []*core.Catalogue{biosamples()}, nothing},
		"root":                      {"", "/", []*core.Catalogue{biosamples()}, nothing},
		"an empty segment":          {"", "//biosamples", []*core.Catalogue{biosamples()}, nothing},
		"a shared type, elsewhere":  {"", "/shared/anything", shared, nothing},
		"no document type":          {"", "//graphql", []*core.Catalogue{broken("donors")}, nothing},
		"no document type, tag":     {"", "//graphql/x", []*core.Catalogue{broken("donors")}, nothing},
		"graphql of several":        {"", "/graphql", []*core.Catalogue{participants(), biosamples()}, "exists only with exactly one catalogue; there are 2"},
		"graphql of none":           {"", "/graphql", nil, "exists only with exactly one catalogue; there is none"},
		"download of several":       {"", "/download", []*core.Catalogue{participants(), biosamples()}, "exists only with exactly one catalogue; there are 2"},
		"below graphql of several":  {"", "/graphql/x/y", []*core.Catalogue{participants(), biosamples()}, nothing},
		"below download of one":     {"", "/download/x", []*core.Catalogue{participants()}, nothing},
		"below the fields of one":   {"", "/introspection/fields/x", []*core.Catalogue{biosamples()}, nothing},
		"without the base path":     {"/base", "/biosamples/graphql", []*core.Catalogue{biosamples()}, nothing},
		"a longer base path":        {"/base", "/basebiosamples/graphql", []*core.Catalogue{biosamples()}, nothing},
		"an empty id in the detail": {"", "/introspection//x", []*core.Catalogue{biosamples()}, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := catalogued(t, api.Config{BasePath: tt.base}, tt.all...)
			res, body := do(t, h, ask{method: "POST", target: tt.target, body: "{}", header: http.Header{"Content-Type": {"application/json"}}})
			wantProblem(t, res, body, 404, "not_found", tt.detail)
		})
	}
	t.Run("a shared type", func(t *testing.T) {
		h, _ := catalogued(t, api.Config{}, shared...)
		res, body := do(t, h, ask{method: "POST", target: "/shared/graphql"})
		wantProblem(t, res, body, 409, "ambiguous_document_type", `2 catalogues have the documentType "shared"`)
		wantMember(t, body, []any{"a", "b"}, "matchingCatalogueIds")
	})
}

// TestGraphQLOfTheOnlyCatalogue: while it has failed, the paths without its id tell so too.
func TestGraphQLOfTheOnlyCatalogue(t *testing.T) {
	h, s := catalogued(t, api.Config{}, biosamples())
	for _, target := range []string{"/graphql", "/graphql?query=x", "/graphql/Arranger-Table", "/graphql/a/b", "/download", "/download/x", "/graphql/"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "OPTIONS"} {
			wantFailure(t, h, ask{method: method, target: target}, biosamplesFailure)
		}
	}
	s.put(biosamples(), participants())
	for _, target := range []string{"/graphql", "/graphql/Arranger-Table", "/download"} {
		res, body := do(t, h, ask{method: "POST", target: target})
		wantProblem(t, res, body, 404, "not_found", "there are 2")
	}
}

// TestFailureEndsWithTheFailure at once, and comes back with the next.
func TestFailureEndsWithTheFailure(t *testing.T) {
	h, s := catalogued(t, api.Config{}, participants(), biosamples())
	healed := biosamples()
	healed.Problem = nil
	for range 3 {
		s.put(participants(), biosamples())
		wantFailure(t, h, ask{method: "POST", target: "/biosamples/graphql"}, biosamplesFailure)
		s.put(participants(), healed)
		if res, body := post(t, h, "/biosamples/graphql", typename); res.StatusCode != 200 || string(body) != answered {
			t.Errorf("got %d %s", res.StatusCode, body)
		}
		if got := memberOf(t, introspect(t, h, "/introspection/biosamples", 200), "catalogId"); got != "biosamples" {
			t.Errorf("the detail is that of %v", got)
		}
	}
}

func TestFailureUnderABasePath(t *testing.T) {
	c := biosamples()
	c.ID = "a b/ü"
	h, _ := catalogued(t, api.Config{BasePath: "/base"}, c, participants())
	want := strings.NewReplacer(`"catalogueId":"biosamples"`, `"catalogueId":"a b/ü"`,
		"/introspection/biosamples", "/base/introspection/a%20b%2F%C3%BC").Replace(biosamplesFailure)
	wantFailure(t, h, ask{method: "POST", target: "/base/a%20b%2F%C3%BC/graphql"}, want)
	wantFailure(t, h, ask{method: "POST", target: "/base/introspection/a%20b%2f%c3%bc/graphql"}, want)
	introspect(t, h, "/base/introspection/a%20b%2F%C3%BC", 200)
}

// TestFailureOfWhatIsBarelyKnown has no description, and an empty document type.
func TestFailureOfWhatIsBarelyKnown(t *testing.T) {
	h, _ := catalogued(t, api.Config{}, broken("donors"))
	wantFailure(t, h, ask{method: "GET", target: "/donors/graphql"}, `{"catalogueId":"donors","documentType":"","status":"failed",`+
		`"error":{"code":"schema_build_error","message":"base.json is not JSON."},"details":"/introspection/donors"}`)
}

// TestFailureIsAnAnswerLikeOthers: what is asked of every request holds there too.
func TestFailureIsAnAnswerLikeOthers(t *testing.T) {
	var log bytes.Buffer
	h, _ := catalogued(t, api.Config{
		CORSOrigins: []string{portal}, CheckHost: true, MaxBodyBytes: 64, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}, biosamples())
	const target = "/biosamples/graphql"
	t.Run("another host", func(t *testing.T) {
		res, body := do(t, h, ask{method: "POST", target: target, host: "evil.example"})
		wantProblem(t, res, body, 421, "misdirected_request", "Host header")
	})
	t.Run("another origin", func(t *testing.T) {
		header := http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}
		res, body := do(t, h, ask{method: "POST", target: target, header: header})
		wantProblem(t, res, body, 403, "forbidden", "another origin")
	})
	t.Run("a listed origin", func(t *testing.T) {
		header := http.Header{"Origin": {portal}, "Sec-Fetch-Site": {"cross-site"}}
		_, res, body := exchange(t, h, ask{method: "POST", target: target, header: header})
		if res.StatusCode != 404 || string(body) != biosamplesFailure || res.Header.Get("Access-Control-Allow-Origin") != portal {
			t.Errorf("got %d, %v", res.StatusCode, res.Header)
		}
	})
	t.Run("a large body", func(t *testing.T) {
		res, body := do(t, h, ask{method: "POST", target: target, body: strings.Repeat("x", 65)})
		wantProblem(t, res, body, 413, "too_large", "64 bytes")
	})
	t.Run("accept", func(t *testing.T) {
		header := http.Header{"Accept": {"application/graphql-response+json"}}
		wantFailure(t, h, ask{method: "POST", target: target, header: header}, biosamplesFailure)
	})
	t.Run("headers and log", func(t *testing.T) {
		log.Reset()
		_, res, _ := exchange(t, h, ask{method: "GET", target: target})
		if res.Header.Get("X-Request-Id") != testRequestID || res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("ETag") != "" {
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
	h, _ := catalogued(t, api.Config{BasePath: "/base"})
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
