package http_test

import (
	"bytes"
	"log/slog"
	nethttp "net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/http"
	"tutti/internal/core"
)

const biosamplesFailure = `{"catalogueId":"biosamples","description":"Tissue sample records.","documentType":"biosample","status":"failed",` +
	`"error":{"code":"index_not_found","message":"The configured index does not exist."},"details":"/introspection/biosamples"}`

// TestEveryPathOfAFailedCatalogue answers with why it failed, by any method.
func TestEveryPathOfAFailedCatalogue(t *testing.T) {
	h, _ := catalogued(t, http.Config{}, participants(), biosamples())
	for _, target := range []string{
		"/biosamples", "/biosamples/", "/biosamples/graphql", "/biosamples/graphql/", "/biosamples/download", "/biosamples/a/b/c",
		"/biosamples/graphql?query=%7B__typename%7D", "/introspection/biosamples/anything", "/introspection/biosamples/",
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
	for name, tt := range map[string]struct {
		base, target string
		all          []*core.Catalogue
	}{
		"available":                 {"", "/participants/graphql", []*core.Catalogue{participants(), biosamples()}},
		"available, by its type":    {"", "/participant/graphql", []*core.Catalogue{participants(), biosamples()}},
		"unknown":                   {"", "/donors/graphql", []*core.Catalogue{participants(), biosamples()}},
		"another case":              {"", "/Biosamples/graphql", []*core.Catalogue{participants(), biosamples()}},
		"encoded twice":             {"", "/bio%2573amples", []*core.Catalogue{biosamples()}},
		"a part of an id":           {"", "/biosamplesx/graphql", []*core.Catalogue{biosamples()}},
		"below another":             {"", "/x/biosamples/graphql", []*core.Catalogue{biosamples()}},
		"root":                      {"", "/", []*core.Catalogue{biosamples()}},
		"an empty segment":          {"", "//biosamples", []*core.Catalogue{biosamples()}},
		"a shared type":             {"", "/shared/graphql", shared},
		"no document type":          {"", "//graphql", []*core.Catalogue{broken("donors")}},
		"graphql of several":        {"", "/graphql", []*core.Catalogue{participants(), biosamples()}},
		"graphql of none":           {"", "/graphql", nil},
		"graphql of an available":   {"", "/graphql", []*core.Catalogue{participants()}},
		"below graphql of one":      {"", "/graphql/x", []*core.Catalogue{biosamples()}},
		"below the fields of one":   {"", "/introspection/fields/x", []*core.Catalogue{biosamples()}},
		"without the base path":     {"/base", "/biosamples/graphql", []*core.Catalogue{biosamples()}},
		"a longer base path":        {"/base", "/basebiosamples/graphql", []*core.Catalogue{biosamples()}},
		"an empty id in the detail": {"", "/introspection//x", []*core.Catalogue{biosamples()}},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := catalogued(t, http.Config{BasePath: tt.base}, tt.all...)
			res, body := do(t, h, ask{method: "POST", target: tt.target})
			wantProblem(t, res, body, 404, "not_found", "there is nothing at this path")
		})
	}
}

// TestGraphQLOfTheOnlyCatalogue: while it has failed, its shorter path tells so too.
func TestGraphQLOfTheOnlyCatalogue(t *testing.T) {
	h, s := catalogued(t, http.Config{}, biosamples())
	wantFailure(t, h, ask{method: "POST", target: "/graphql"}, biosamplesFailure)
	wantFailure(t, h, ask{method: "GET", target: "/graphql"}, biosamplesFailure)
	s.put(biosamples(), participants())
	res, body := do(t, h, ask{method: "POST", target: "/graphql"})
	wantProblem(t, res, body, 404, "not_found", "there is nothing at this path")
}

// TestFailureEndsWithTheFailure at once, and comes back with the next.
func TestFailureEndsWithTheFailure(t *testing.T) {
	h, s := catalogued(t, http.Config{}, participants(), biosamples())
	healed := biosamples()
	healed.Problem = nil
	for range 3 {
		s.put(participants(), biosamples())
		wantFailure(t, h, ask{method: "POST", target: "/biosamples/graphql"}, biosamplesFailure)
		s.put(participants(), healed)
		res, body := do(t, h, ask{method: "POST", target: "/biosamples/graphql"})
		wantProblem(t, res, body, 404, "not_found", "there is nothing at this path")
		if got := memberOf(t, introspect(t, h, "/introspection/biosamples", 200), "catalogId"); got != "biosamples" {
			t.Errorf("the detail is that of %v", got)
		}
	}
}

func TestFailureUnderABasePath(t *testing.T) {
	c := biosamples()
	c.ID = "a b/ü"
	h, _ := catalogued(t, http.Config{BasePath: "/base"}, c, participants())
	want := strings.NewReplacer(`"catalogueId":"biosamples"`, `"catalogueId":"a b/ü"`,
		"/introspection/biosamples", "/base/introspection/a%20b%2F%C3%BC").Replace(biosamplesFailure)
	wantFailure(t, h, ask{method: "POST", target: "/base/a%20b%2F%C3%BC/graphql"}, want)
	wantFailure(t, h, ask{method: "POST", target: "/base/introspection/a%20b%2f%c3%bc/graphql"}, want)
	introspect(t, h, "/base/introspection/a%20b%2F%C3%BC", 200)
}

// TestFailureOfWhatIsBarelyKnown has no description, and an empty document type.
func TestFailureOfWhatIsBarelyKnown(t *testing.T) {
	h, _ := catalogued(t, http.Config{}, broken("donors"))
	wantFailure(t, h, ask{method: "GET", target: "/donors/graphql"}, `{"catalogueId":"donors","documentType":"","status":"failed",`+
		`"error":{"code":"schema_build_error","message":"base.json is not JSON."},"details":"/introspection/donors"}`)
}

// TestFailureIsAnAnswerLikeOthers: what is asked of every request holds there too.
func TestFailureIsAnAnswerLikeOthers(t *testing.T) {
	var log bytes.Buffer
	h, _ := catalogued(t, http.Config{
		CORSOrigins: []string{portal}, CheckHost: true, MaxBodyBytes: 64, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}, biosamples())
	const target = "/biosamples/graphql"
	t.Run("another host", func(t *testing.T) {
		res, body := do(t, h, ask{method: "POST", target: target, host: "evil.example"})
		wantProblem(t, res, body, 421, "misdirected_request", "Host header")
	})
	t.Run("another origin", func(t *testing.T) {
		header := nethttp.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}
		res, body := do(t, h, ask{method: "POST", target: target, header: header})
		wantProblem(t, res, body, 403, "forbidden", "another origin")
	})
	t.Run("a listed origin", func(t *testing.T) {
		header := nethttp.Header{"Origin": {portal}, "Sec-Fetch-Site": {"cross-site"}}
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
		header := nethttp.Header{"Accept": {"application/graphql-response+json"}}
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
	h, _ := catalogued(t, http.Config{BasePath: "/base"})
	want := []string{"graphql", "console", "download"}
	for _, r := range h.Routes() {
		segments := strings.Split(strings.TrimPrefix(r.Pattern, "/"), "/")
		if segments[0] == "introspection" && len(segments) > 1 {
			segments = segments[:2]
		} else {
			segments = segments[:1]
		}
		for _, s := range segments {
			if !strings.HasPrefix(s, "{") {
				want = append(want, s)
			}
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), http.ReservedIDs()); diff != "" {
		t.Error(diff)
	}
}
