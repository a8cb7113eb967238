package http_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/internal/core"
)

// sentence is one of the specification and how it is tried.
type sentence struct {
	text string
	try  func(t *testing.T)
}

func trySentences(t *testing.T, all []sentence) {
	t.Helper()
	for _, s := range all {
		t.Run(s.text, s.try)
	}
}

// namesOf returns the names of a JSON object's members in order of the alphabet.
func namesOf(t *testing.T, object any) []string {
	t.Helper()
	members, ok := object.(map[string]any)
	if !ok {
		t.Fatalf("not an object: %v", object)
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func wantNames(t *testing.T, object any, want ...string) {
	t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, namesOf(t, object)); diff != "" {
		t.Errorf("members: %s", diff)
	}
}

func wantMember(t *testing.T, body []byte, want any, path ...string) {
	t.Helper()
	if diff := cmp.Diff(want, memberOf(t, body, path...)); diff != "" {
		t.Errorf("%s: %s", strings.Join(path, "."), diff)
	}
}

// TestSpecificationService: what the service does.
func TestSpecificationService(t *testing.T) {
	trySentences(t, []sentence{
		{"REST endpoints return plain JSON and need no GraphQL client", func(t *testing.T) {
			h, _ := catalogued(t, api.Config{}, participants())
			for _, target := range []string{"/introspection", "/introspection/sqon", "/introspection/participants", "/introspection/fields"} {
				if body := introspect(t, h, target, 200); !json.Valid(body) {
					t.Errorf("%s: %s", target, body)
				}
			}
		}},
		{"each catalogue has an id, a documentType, an optional description, a GraphQL path and an introspection path", func(t *testing.T) {
			h, _ := catalogued(t, api.Config{}, participants(), plain("records"))
			body := introspect(t, h, "/introspection", 200)
			wantNames(t, memberOf(t, body, "catalogs"), "participants", "records")
			wantNames(t, memberOf(t, body, "catalogs", "participants"), "description", "documentType", "paths", "status")
			wantNames(t, memberOf(t, body, "catalogs", "records"), "documentType", "paths", "status")
			wantNames(t, memberOf(t, body, "catalogs", "records", "paths"), "graphql", "introspection")
		}},
		{"always available, whatever the GraphQL introspection setting", func(t *testing.T) {
			h, _ := catalogued(t, api.Config{}, participants())
			want := introspect(t, h, "/introspection/participants", 200)
			for _, set := range []string{"true", "false"} {
				t.Setenv("DISABLE_GRAPHQL_INTROSPECTION", set)
				t.Setenv("NODE_ENV", "production")
				h, _ := catalogued(t, api.Config{}, participants())
				if got := introspect(t, h, "/introspection/participants", 200); string(got) != string(want) {
					t.Errorf("%s: %s", set, got)
				}
			}
		}},
		{"a catalogue is never dropped from the listing because it failed to load", func(t *testing.T) {
			h, _ := catalogued(t, api.Config{}, participants(), biosamples(), broken("donors"))
			wantNames(t, memberOf(t, introspect(t, h, "/introspection", 200), "catalogs"), "biosamples", "donors", "participants")
		}},
		{"a failed catalogue is listed with status failed and an error object", func(t *testing.T) {
			h, _ := catalogued(t, api.Config{}, participants(), biosamples())
			body := introspect(t, h, "/introspection", 200)
			wantMember(t, body, "failed", "catalogs", "biosamples", "status")
			wantNames(t, memberOf(t, body, "catalogs", "biosamples", "error"), "code", "message")
		}},
	})
}

// TestSpecificationSummary: the catalogue summary.
func TestSpecificationSummary(t *testing.T) {
	summaryOf := func(t *testing.T, all ...*core.Catalogue) []byte {
		t.Helper()
		h, _ := catalogued(t, api.Config{}, all...)
		body := introspect(t, h, "/introspection", 200)
		wantNames(t, memberOf(t, body), "catalogCount", "mode", "status", "sqonSchemaPath", "catalogs")
		return body
	}
	trySentences(t, []sentence{
		{"catalogCount: number of registered catalogues", func(t *testing.T) {
			wantMember(t, summaryOf(t), 0.0, "catalogCount")
			wantMember(t, summaryOf(t, biosamples()), 1.0, "catalogCount")
			wantMember(t, summaryOf(t, participants(), biosamples(), broken("x")), 3.0, "catalogCount")
		}},
		{"mode: single when exactly one catalogue is registered, otherwise a multi-catalogue value", func(t *testing.T) {
			wantMember(t, summaryOf(t), "multiple", "mode")
			wantMember(t, summaryOf(t, participants()), "single", "mode")
			wantMember(t, summaryOf(t, biosamples()), "single", "mode")
			wantMember(t, summaryOf(t, participants(), biosamples()), "multiple", "mode")
		}},
		{"status: healthy (none failed)", func(t *testing.T) {
			wantMember(t, summaryOf(t), "healthy", "status")
			wantMember(t, summaryOf(t, participants(), plain("b")), "healthy", "status")
		}},
		{"status: degraded (some failed, at least one available)", func(t *testing.T) {
			wantMember(t, summaryOf(t, participants(), biosamples(), broken("b")), "degraded", "status")
		}},
		{"status: unhealthy (all failed)", func(t *testing.T) {
			wantMember(t, summaryOf(t, biosamples()), "unhealthy", "status")
			wantMember(t, summaryOf(t, biosamples(), broken("b")), "unhealthy", "status")
		}},
		{"sqonSchemaPath: path of the shared SQON schema endpoint", func(t *testing.T) {
			h, _ := catalogued(t, api.Config{BasePath: "/base"}, participants())
			path, _ := memberOf(t, introspect(t, h, "/base/introspection", 200), "sqonSchemaPath").(string)
			if got := memberOf(t, introspect(t, h, path, 200), "operators", "combination"); got == nil {
				t.Errorf("%s does not lead to the schema", path)
			}
		}},
		{"catalogs: map from catalogue id to catalogue entry", func(t *testing.T) {
			wantNames(t, memberOf(t, summaryOf(t, participants(), plain("__proto__")), "catalogs"), "participants", "__proto__")
		}},
	})
}

// TestSpecificationEntry: an entry of the summary.
func TestSpecificationEntry(t *testing.T) {
	entryOf := func(t *testing.T, id string, all ...*core.Catalogue) []byte {
		t.Helper()
		h, _ := catalogued(t, api.Config{}, all...)
		entry, err := json.Marshal(memberOf(t, introspect(t, h, "/introspection", 200), "catalogs", id))
		if err != nil {
			t.Fatal(err)
		}
		return entry
	}
	trySentences(t, []sentence{
		{"description: omitted when not set", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", participants()), "Clinical trial participant records.", "description")
			if entry := entryOf(t, "records", plain("records")); strings.Contains(string(entry), "description") {
				t.Errorf("%s", entry)
			}
		}},
		{"documentType: always present", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", participants()), "participant", "documentType")
			wantMember(t, entryOf(t, "x", broken("x")), "", "documentType")
		}},
		{"paths.graphql: GraphQL path of the catalogue", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", participants()), "/participants/graphql", "paths", "graphql")
		}},
		{"paths.introspection: introspection path of the catalogue", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", participants()), "/introspection/participants", "paths", "introspection")
		}},
		{"paths.fields: present only in single-catalogue mode, as an alias", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", participants()), "/introspection/fields", "paths", "fields")
			wantMember(t, entryOf(t, "x", broken("x")), "/introspection/fields", "paths", "fields")
			if entry := entryOf(t, "participants", participants(), plain("b")); strings.Contains(string(entry), "fields") {
				t.Errorf("%s", entry)
			}
		}},
		{"status: available or failed, scoped to that catalogue", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", participants(), biosamples()), "available", "status")
			wantMember(t, entryOf(t, "biosamples", participants(), biosamples()), "failed", "status")
		}},
		{"error: present only when the entry status is failed, omitted entirely otherwise (never null)", func(t *testing.T) {
			if entry := entryOf(t, "participants", participants(), biosamples()); strings.Contains(string(entry), "error") {
				t.Errorf("%s", entry)
			}
			h, _ := catalogued(t, api.Config{}, participants(), plain("x"))
			for _, target := range []string{"/introspection", "/introspection/participants", "/introspection/x"} {
				if body := introspect(t, h, target, 200); strings.Contains(string(body), "null") || strings.Contains(string(body), `"error"`) {
					t.Errorf("%s: %s", target, body)
				}
			}
		}},
		{"error: a code of six and a short, safe-to-display message", func(t *testing.T) {
			for _, code := range []core.CatalogueCode{
				"index_not_found", "permission_denied", "connection_error", "mapping_fetch_error", "schema_build_error", "unknown_error",
			} {
				c := plain("x")
				c.Problem = &core.CatalogueProblem{Code: code, Message: "It is so."}
				wantMember(t, entryOf(t, "x", c), map[string]any{"code": string(code), "message": "It is so."}, "error")
				h, _ := catalogued(t, api.Config{}, c)
				wantMember(t, introspect(t, h, "/introspection/x", 200), string(code), "error", "code")
			}
		}},
	})
}

// TestSpecificationDetail: the detail of a healthy catalogue and its fields.
func TestSpecificationDetail(t *testing.T) {
	h, _ := catalogued(t, api.Config{}, participants(), plain("records"), biosamples())
	full, least := introspect(t, h, "/introspection/participants", 200), introspect(t, h, "/introspection/records", 200)
	trySentences(t, []sentence{
		{"catalogId: catalogue id", func(t *testing.T) {
			wantMember(t, full, "participants", "catalogId")
			wantNames(t, memberOf(t, full), "catalogId", "description", "documentType", "generatedAt", "meta", "operators", "fields")
		}},
		{"description: omitted when not configured", func(t *testing.T) {
			wantMember(t, full, "Clinical trial participant records.", "description")
			wantNames(t, memberOf(t, least), "catalogId", "documentType", "generatedAt", "meta", "operators", "fields")
		}},
		{"documentType: from base.json", func(t *testing.T) { wantMember(t, full, "participant", "documentType") }},
		{"generatedAt: ISO 8601 timestamp of generation", func(t *testing.T) {
			given, _ := memberOf(t, full, "generatedAt").(string)
			if at, err := time.Parse(time.RFC3339Nano, given); err != nil || !at.Equal(noon) {
				t.Errorf("%q: %v", given, err)
			}
		}},
		{"meta.authFiltered: true when a server-side filter was active", func(t *testing.T) {
			wantMember(t, full, map[string]any{"authFiltered": false}, "meta")
			restricted := participants()
			restricted.Restricted = true
			h, _ := catalogued(t, api.Config{}, restricted)
			wantMember(t, introspect(t, h, "/introspection/participants", 200), map[string]any{"authFiltered": true}, "meta")
		}},
		{"operators: only types actually present appear", func(t *testing.T) {
			wantNames(t, memberOf(t, full, "operators"), "keyword", "long", "date", "nested", "float")
			wantNames(t, memberOf(t, least, "operators"), "keyword")
		}},
		{"operators of keyword: in, not-in, some-not-in, all, filter", func(t *testing.T) {
			wantMember(t, full, []any{"in", "not-in", "some-not-in", "all", "filter"}, "operators", "keyword")
		}},
		{"operators of long: in, not-in, gt, gte, lt, lte, between", func(t *testing.T) {
			wantMember(t, full, []any{"in", "not-in", "gt", "gte", "lt", "lte", "between"}, "operators", "long")
		}},
		{"operators of date: in, not-in, gt, gte, lt, lte, between", func(t *testing.T) {
			wantMember(t, full, []any{"in", "not-in", "gt", "gte", "lt", "lte", "between"}, "operators", "date")
		}},
		{"fields: covering every indexed field", func(t *testing.T) {
			wantNames(t, memberOf(t, full, "fields"),
				"participant_id", "age_at_diagnosis", "diagnosis_date", "samples", "samples.type", "samples.weight")
		}},
		{"field descriptor: displayName, type, optional unit and description", func(t *testing.T) {
			fields, _ := memberOf(t, full, "fields").(map[string]any)
			for name, want := range map[string]any{
				"participant_id": map[string]any{"displayName": "Participant ID", "type": "keyword"},
				"samples.weight": map[string]any{"displayName": "Weight", "type": "float", "unit": "µg"},
				"age_at_diagnosis": map[string]any{
					"displayName": "Age At Diagnosis", "type": "long", "unit": "year", "description": `Age in "whole" years, <100 & >0`,
				},
			} {
				if diff := cmp.Diff(want, fields[name]); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		}},
		{"to find the operators valid for a field, look up operators[field.type]", func(t *testing.T) {
			fields, _ := memberOf(t, full, "fields").(map[string]any)
			for name, f := range fields {
				fieldType, _ := f.(map[string]any)["type"].(string)
				if operators, _ := memberOf(t, full, "operators", fieldType).([]any); len(operators) < 3 {
					t.Errorf("%s: %v", name, operators)
				}
			}
		}},
	})
}

// TestSpecificationFailedDetail: the detail of a failed catalogue.
func TestSpecificationFailedDetail(t *testing.T) {
	h, _ := catalogued(t, api.Config{}, biosamples(), broken("donors"))
	body, least := introspect(t, h, "/introspection/biosamples", 200), introspect(t, h, "/introspection/donors", 200)
	trySentences(t, []sentence{
		{"catalogueId (this key is spelled catalogueId here)", func(t *testing.T) { wantMember(t, body, "biosamples", "catalogueId") }},
		{"description: omitted when not set", func(t *testing.T) {
			wantMember(t, body, "Tissue sample records.", "description")
			wantNames(t, memberOf(t, least), "catalogueId", "documentType", "status", "error")
		}},
		{"documentType: from base.json", func(t *testing.T) { wantMember(t, body, "biosample", "documentType") }},
		{"status: failed", func(t *testing.T) { wantMember(t, body, "failed", "status") }},
		{"error: code and message as above", func(t *testing.T) {
			want := map[string]any{"code": "index_not_found", "message": "The configured index does not exist."}
			wantMember(t, body, want, "error")
		}},
		{"operators, fields, generatedAt and meta are absent in this minimal payload", func(t *testing.T) {
			wantNames(t, memberOf(t, body), "catalogueId", "description", "documentType", "status", "error")
		}},
	})
}

// TestSpecificationEndpoints: the filter language, states, endpoints and errors.
func TestSpecificationEndpoints(t *testing.T) {
	trySentences(t, []sentence{
		{"GET /introspection/sqon: shared by all catalogues, combination operators and, or, not", func(t *testing.T) {
			h, s := catalogued(t, api.Config{}, participants(), biosamples())
			body := introspect(t, h, "/introspection/sqon", 200)
			wantMember(t, body, []any{"and", "or", "not"}, "operators", "combination")
			s.put()
			if again := introspect(t, h, "/introspection/sqon", 200); string(again) != string(body) {
				t.Error("it depends on the catalogues")
			}
		}},
		{"GET /introspection/sqon: field operators with value types and applicability; accepted aliases", func(t *testing.T) {
			h, _ := catalogued(t, api.Config{})
			body := introspect(t, h, "/introspection/sqon", 200)
			operators, _ := memberOf(t, body, "operators", "field").([]any)
			for _, o := range operators {
				wantNames(t, o, "op", "fieldRef", "applicableTo", "valueType")
			}
			if len(operators) == 0 {
				t.Error("there are no field operators")
			}
			wantMember(t, body, "wildcard", "aliases", "filter")
		}},
		{"the readiness check of the server uses the same computation", func(t *testing.T) {
			for status, all := range map[string][]*core.Catalogue{
				"healthy": {participants()}, "degraded": {participants(), biosamples()}, "unhealthy": {biosamples()},
			} {
				h, _ := catalogued(t, api.Config{}, all...)
				ready := 200
				if status == "unhealthy" {
					ready = 503
				}
				wantMember(t, introspect(t, h, "/ready", ready), status, "status")
				wantMember(t, introspect(t, h, "/introspection", 200), status, "status")
			}
		}},
		{"all endpoints use GET, take no payload and return JSON", func(t *testing.T) {
			h, _ := catalogued(t, api.Config{}, participants())
			for _, target := range []string{"/introspection", "/introspection/sqon", "/introspection/participants", "/introspection/fields"} {
				res, body := do(t, h, ask{method: "POST", target: target})
				wantProblem(t, res, body, 405, "method_not_allowed", "does not support this method")
				res, _ = do(t, h, ask{method: "GET", target: target, body: "ignored", header: http.Header{"Content-Type": {"text/plain"}}})
				if res.StatusCode != 200 {
					t.Errorf("%s with a body: %d", target, res.StatusCode)
				}
			}
		}},
		{"{base_url} prefixes every path", func(t *testing.T) {
			h, _ := catalogued(t, api.Config{BasePath: "/a/b"}, participants())
			body := introspect(t, h, "/a/b/introspection", 200)
			wantMember(t, body, map[string]any{
				"graphql": "/a/b/participants/graphql", "introspection": "/a/b/introspection/participants", "fields": "/a/b/introspection/fields",
			}, "catalogs", "participants", "paths")
			introspect(t, h, "/a/b/introspection/participants", 200)
		}},
		{"GET /introspection/fields: alias of the detail endpoint", func(t *testing.T) {
			for _, c := range []*core.Catalogue{participants(), biosamples()} {
				h, _ := catalogued(t, api.Config{}, c)
				alias, detail := introspect(t, h, "/introspection/fields", 200), introspect(t, h, "/introspection/"+c.ID, 200)
				if string(alias) != string(detail) {
					t.Errorf("%s and %s", alias, detail)
				}
			}
		}},
		{"exists only in single-catalogue mode and disappears when a second catalogue is added", func(t *testing.T) {
			h, s := catalogued(t, api.Config{})
			introspect(t, h, "/introspection/fields", 404)
			for range 2 {
				s.put(participants())
				introspect(t, h, "/introspection/fields", 200)
				wantMember(t, introspect(t, h, "/introspection", 200), "single", "mode")
				s.put(participants(), biosamples())
				introspect(t, h, "/introspection/fields", 404)
				wantMember(t, introspect(t, h, "/introspection", 200), "multiple", "mode")
				introspect(t, h, "/introspection/participants", 200)
			}
		}},
		{"clients must use the explicit catalogue id path before a second catalogue is added", func(t *testing.T) {
			for _, path := range []string{"/introspection", "/introspection/fields"} {
				if text := document(t).Paths.Value(path).Get.Description; !strings.Contains(text, "before") || !strings.Contains(text, "second") {
					t.Errorf("%s does not say so: %s", path, text)
				}
			}
		}},
		{"detail endpoint for a failed catalogue: status 200 with the minimal failed payload", func(t *testing.T) {
			h, _ := catalogued(t, api.Config{}, participants(), biosamples())
			want := strings.Replace(biosamplesFailure, `,"details":"/introspection/biosamples"`, "", 1)
			if body := introspect(t, h, "/introspection/biosamples", 200); string(body) != want {
				t.Errorf("got %s, want %s", body, want)
			}
		}},
		{"any other path of a failed catalogue, its GraphQL endpoint included: 404 with the same fields plus a details pointer", func(t *testing.T) {
			h, _ := catalogued(t, api.Config{}, participants(), biosamples())
			for _, target := range []string{"/biosamples/graphql", "/biosamples", "/introspection/biosamples/x"} {
				wantFailure(t, h, ask{method: "POST", target: target}, biosamplesFailure)
			}
			introspect(t, h, "/introspection/biosamples", 200)
		}},
		{"the GraphQL endpoint of a failed catalogue: 404, application/json and no GraphQL, whatever is asked", func(t *testing.T) {
			for _, all := range [][]*core.Catalogue{{biosamples()}, {participants(), biosamples()}} {
				h, _ := catalogued(t, api.Config{}, all...)
				for _, contentType := range []string{"application/json", "text/plain", ""} {
					for _, body := range []string{typename, "{}", "[]", "", "{"} {
						header := http.Header{"Content-Type": {contentType}, "Accept": {"application/graphql-response+json"}}
						wantFailure(t, h, ask{method: "POST", target: "/biosamples/graphql", body: body, header: header}, biosamplesFailure)
					}
				}
				for _, query := range []string{"", "?query=%7B__typename%7D", "?query=mutation%7Ba%7D", "?nobody=1", "?%zz"} {
					wantFailure(t, h, ask{method: "GET", target: "/biosamples/graphql" + query}, biosamplesFailure)
				}
			}
		}},
		{"the GraphQL endpoint of a failed catalogue: nothing is executed, and others answer as before", func(t *testing.T) {
			h, p, last := searched(t, api.Config{}, participants(), biosamples())
			wantFailure(t, h, ask{method: "POST", target: "/biosamples/graphql", body: typename}, biosamplesFailure)
			wantFailure(t, h, ask{method: "POST", target: "/biosamples/download", body: "{}"}, biosamplesFailure)
			if last.catalogue != "" {
				t.Errorf("executed on %s", last.catalogue)
			}
			if res, body := post(t, h, "/participants/graphql", typename); res.StatusCode != 200 || string(body) != answered {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
			p.catalogues.put(biosamples())
			wantFailure(t, h, ask{method: "POST", target: "/graphql", body: typename}, biosamplesFailure)
		}},
		{"paths.graphql of an available catalogue leads to its GraphQL endpoint, in single mode /graphql too", func(t *testing.T) {
			h, p, last := searched(t, api.Config{BasePath: "/a/b"}, participants())
			for _, id := range []string{"participants", "x y/z"} {
				c := participants()
				c.ID = id
				p.catalogues.put(c)
				target, _ := memberOf(t, introspect(t, h, "/a/b/introspection", 200), "catalogs", id, "paths", "graphql").(string)
				for _, target := range []string{target, "/a/b/graphql"} {
					*last = seen{}
					if res, _ := post(t, h, target, typename); res.StatusCode != 200 || last.catalogue != id {
						t.Errorf("%s: %d, executed on %q", target, res.StatusCode, last.catalogue)
					}
				}
			}
			p.catalogues.put(participants(), plain("other"))
			res, body := post(t, h, "/a/b/graphql", typename)
			if problem := wantProblem(t, res, body, 404, "not_found", "exactly one catalogue"); !strings.Contains(problem.Hint, "/a/b/participants/graphql") {
				t.Errorf("hint %q", problem.Hint)
			}
		}},
	})
}
