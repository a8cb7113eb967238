package search_test

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
	"tutti/internal/tools/apitest"
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
	if diff := cmp.Diff(want, apitest.MemberOf(t, body, path...)); diff != "" {
		t.Errorf("%s: %s", strings.Join(path, "."), diff)
	}
}

// TestSpecificationService: what the service does.
func TestSpecificationService(t *testing.T) {
	trySentences(t, []sentence{
		{"REST endpoints return plain JSON and need no GraphQL client", func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants())
			for _, target := range []string{"/introspection", "/introspection/sqon", "/introspection/participants", "/introspection/fields"} {
				if body := apitest.Introspect(t, h, target, 200); !json.Valid(body) {
					t.Errorf("%s: %s", target, body)
				}
			}
		}},
		{"each catalogue has an id, a documentType, an optional description, a GraphQL path and an introspection path", func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants(), apitest.Plain("records"))
			body := apitest.Introspect(t, h, "/introspection", 200)
			wantNames(t, apitest.MemberOf(t, body, "catalogs"), "participants", "records")
			wantNames(t, apitest.MemberOf(t, body, "catalogs", "participants"), "description", "documentType", "paths", "status")
			wantNames(t, apitest.MemberOf(t, body, "catalogs", "records"), "documentType", "paths", "status")
			wantNames(t, apitest.MemberOf(t, body, "catalogs", "records", "paths"), "graphql", "introspection")
		}},
		{"always available, whatever the GraphQL introspection setting", func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants())
			want := apitest.Introspect(t, h, "/introspection/participants", 200)
			for _, set := range []string{"true", "false"} {
				t.Setenv("DISABLE_GRAPHQL_INTROSPECTION", set)
				t.Setenv("NODE_ENV", "production")
				h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants())
				if got := apitest.Introspect(t, h, "/introspection/participants", 200); string(got) != string(want) {
					t.Errorf("%s: %s", set, got)
				}
			}
		}},
		{"a catalogue is never dropped from the listing because it failed to load", func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants(), apitest.Biosamples(), apitest.Broken("donors"))
			wantNames(t, apitest.MemberOf(t, apitest.Introspect(t, h, "/introspection", 200), "catalogs"), "biosamples", "donors", "participants")
		}},
		{"a failed catalogue is listed with status failed and an error object", func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants(), apitest.Biosamples())
			body := apitest.Introspect(t, h, "/introspection", 200)
			wantMember(t, body, "failed", "catalogs", "biosamples", "status")
			wantNames(t, apitest.MemberOf(t, body, "catalogs", "biosamples", "error"), "code", "message")
		}},
	})
}

// TestSpecificationSummary: the catalogue summary.
func TestSpecificationSummary(t *testing.T) {
	summaryOf := func(t *testing.T, all ...*core.Catalogue) []byte {
		t.Helper()
		h, _ := apitest.Catalogued(t, api.Config{}, all...)
		body := apitest.Introspect(t, h, "/introspection", 200)
		wantNames(t, apitest.MemberOf(t, body), "catalogCount", "mode", "status", "sqonSchemaPath", "catalogs")
		return body
	}
	trySentences(t, []sentence{
		{"catalogCount: number of registered catalogues", func(t *testing.T) {
			wantMember(t, summaryOf(t), 0.0, "catalogCount")
			wantMember(t, summaryOf(t, apitest.Biosamples()), 1.0, "catalogCount")
			wantMember(t, summaryOf(t, apitest.Participants(), apitest.Biosamples(), apitest.Broken("x")), 3.0, "catalogCount")
		}},
		{"mode: single when exactly one catalogue is registered, otherwise a multi-catalogue value", func(t *testing.T) {
			wantMember(t, summaryOf(t), "multiple", "mode")
			wantMember(t, summaryOf(t, apitest.Participants()), "single", "mode")
			wantMember(t, summaryOf(t, apitest.Biosamples()), "single", "mode")
			wantMember(t, summaryOf(t, apitest.Participants(), apitest.Biosamples()), "multiple", "mode")
		}},
		{"status: healthy (none failed)", func(t *testing.T) {
			wantMember(t, summaryOf(t), "healthy", "status")
			wantMember(t, summaryOf(t, apitest.Participants(), apitest.Plain("b")), "healthy", "status")
		}},
		{"status: degraded (some failed, at least one available)", func(t *testing.T) {
			wantMember(t, summaryOf(t, apitest.Participants(), apitest.Biosamples(), apitest.Broken("b")), "degraded", "status")
		}},
		{"status: unhealthy (all failed)", func(t *testing.T) {
			wantMember(t, summaryOf(t, apitest.Biosamples()), "unhealthy", "status")
			wantMember(t, summaryOf(t, apitest.Biosamples(), apitest.Broken("b")), "unhealthy", "status")
		}},
		{"sqonSchemaPath: path of the shared SQON schema endpoint", func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{BasePath: "/base"}, apitest.Participants())
			path, _ := apitest.MemberOf(t, apitest.Introspect(t, h, "/base/introspection", 200), "sqonSchemaPath").(string)
			if got := apitest.MemberOf(t, apitest.Introspect(t, h, path, 200), "operators", "combination"); got == nil {
				t.Errorf("%s does not lead to the schema", path)
			}
		}},
		{"catalogs: map from catalogue id to catalogue entry", func(t *testing.T) {
			wantNames(t, apitest.MemberOf(t, summaryOf(t, apitest.Participants(), apitest.Plain("__proto__")), "catalogs"), "participants", "__proto__")
		}},
	})
}

// TestSpecificationEntry: an entry of the summary.
func TestSpecificationEntry(t *testing.T) {
	entryOf := func(t *testing.T, id string, all ...*core.Catalogue) []byte {
		t.Helper()
		h, _ := apitest.Catalogued(t, api.Config{}, all...)
		entry, err := json.Marshal(apitest.MemberOf(t, apitest.Introspect(t, h, "/introspection", 200), "catalogs", id))
		if err != nil {
			t.Fatal(err)
		}
		return entry
	}
	trySentences(t, []sentence{
		{"description: omitted when not set", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", apitest.Participants()), "Clinical trial participant records.", "description")
			if entry := entryOf(t, "records", apitest.Plain("records")); strings.Contains(string(entry), "description") {
				t.Errorf("%s", entry)
			}
		}},
		{"documentType: always present", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", apitest.Participants()), "participant", "documentType")
			wantMember(t, entryOf(t, "x", apitest.Broken("x")), "", "documentType")
		}},
		{"paths.graphql: GraphQL path of the catalogue", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", apitest.Participants()), "/participants/graphql", "paths", "graphql")
		}},
		{"paths.introspection: introspection path of the catalogue", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", apitest.Participants()), "/introspection/participants", "paths", "introspection")
		}},
		{"paths.fields: present only in single-catalogue mode, as an alias", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", apitest.Participants()), "/introspection/fields", "paths", "fields")
			wantMember(t, entryOf(t, "x", apitest.Broken("x")), "/introspection/fields", "paths", "fields")
			if entry := entryOf(t, "participants", apitest.Participants(), apitest.Plain("b")); strings.Contains(string(entry), "fields") {
				t.Errorf("%s", entry)
			}
		}},
		{"status: available or failed, scoped to that catalogue", func(t *testing.T) {
			wantMember(t, entryOf(t, "participants", apitest.Participants(), apitest.Biosamples()), "available", "status")
			wantMember(t, entryOf(t, "biosamples", apitest.Participants(), apitest.Biosamples()), "failed", "status")
		}},
		{"error: present only when the entry status is failed, omitted entirely otherwise (never null)", func(t *testing.T) {
			if entry := entryOf(t, "participants", apitest.Participants(), apitest.Biosamples()); strings.Contains(string(entry), "error") {
				t.Errorf("%s", entry)
			}
			h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants(), apitest.Plain("x"))
			for _, target := range []string{"/introspection", "/introspection/participants", "/introspection/x"} {
				if body := apitest.Introspect(t, h, target, 200); strings.Contains(string(body), "null") || strings.Contains(string(body), `"error"`) {
					t.Errorf("%s: %s", target, body)
				}
			}
		}},
		{"error: a code of six and a short, safe-to-display message", func(t *testing.T) {
			for _, code := range []core.CatalogueCode{
				"index_not_found", "permission_denied", "connection_error", "mapping_fetch_error", "schema_build_error", "unknown_error",
			} {
				c := apitest.Plain("x")
				c.Problem = &core.CatalogueProblem{Code: code, Message: "It is so."}
				wantMember(t, entryOf(t, "x", c), map[string]any{"code": string(code), "message": "It is so."}, "error")
				h, _ := apitest.Catalogued(t, api.Config{}, c)
				wantMember(t, apitest.Introspect(t, h, "/introspection/x", 200), string(code), "error", "code")
			}
		}},
	})
}

// TestSpecificationDetail: the detail of a healthy catalogue and its fields.
func TestSpecificationDetail(t *testing.T) {
	h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants(), apitest.Plain("records"), apitest.Biosamples())
	full, least := apitest.Introspect(t, h, "/introspection/participants", 200), apitest.Introspect(t, h, "/introspection/records", 200)
	trySentences(t, []sentence{
		{"catalogId: catalogue id", func(t *testing.T) {
			wantMember(t, full, "participants", "catalogId")
			wantNames(t, apitest.MemberOf(t, full), "catalogId", "description", "documentType", "generatedAt", "meta", "operators", "fields")
		}},
		{"description: omitted when not configured", func(t *testing.T) {
			wantMember(t, full, "Clinical trial participant records.", "description")
			wantNames(t, apitest.MemberOf(t, least), "catalogId", "documentType", "generatedAt", "meta", "operators", "fields")
		}},
		{"documentType: from base.json", func(t *testing.T) { wantMember(t, full, "participant", "documentType") }},
		{"generatedAt: ISO 8601 timestamp of generation", func(t *testing.T) {
			given, _ := apitest.MemberOf(t, full, "generatedAt").(string)
			if at, err := time.Parse(time.RFC3339Nano, given); err != nil || !at.Equal(apitest.Noon) {
				t.Errorf("%q: %v", given, err)
			}
		}},
		{"meta.authFiltered: true when a server-side filter was active", func(t *testing.T) {
			wantMember(t, full, map[string]any{"authFiltered": false}, "meta")
			restricted := apitest.Participants()
			restricted.Restricted = true
			h, _ := apitest.Catalogued(t, api.Config{}, restricted)
			wantMember(t, apitest.Introspect(t, h, "/introspection/participants", 200), map[string]any{"authFiltered": true}, "meta")
		}},
		{"operators: only types actually present appear", func(t *testing.T) {
			wantNames(t, apitest.MemberOf(t, full, "operators"), "keyword", "long", "date", "nested", "float")
			wantNames(t, apitest.MemberOf(t, least, "operators"), "keyword")
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
			wantNames(t, apitest.MemberOf(t, full, "fields"),
				"participant_id", "age_at_diagnosis", "diagnosis_date", "samples", "samples.type", "samples.weight")
		}},
		{"field descriptor: displayName, type, optional unit and description", func(t *testing.T) {
			fields, _ := apitest.MemberOf(t, full, "fields").(map[string]any)
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
			fields, _ := apitest.MemberOf(t, full, "fields").(map[string]any)
			for name, f := range fields {
				fieldType, _ := f.(map[string]any)["type"].(string)
				if operators, _ := apitest.MemberOf(t, full, "operators", fieldType).([]any); len(operators) < 3 {
					t.Errorf("%s: %v", name, operators)
				}
			}
		}},
	})
}

// TestSpecificationFailedDetail: the detail of a failed catalogue.
func TestSpecificationFailedDetail(t *testing.T) {
	h, _ := apitest.Catalogued(t, api.Config{}, apitest.Biosamples(), apitest.Broken("donors"))
	body, least := apitest.Introspect(t, h, "/introspection/biosamples", 200), apitest.Introspect(t, h, "/introspection/donors", 200)
	trySentences(t, []sentence{
		{"catalogueId (this key is spelled catalogueId here)", func(t *testing.T) { wantMember(t, body, "biosamples", "catalogueId") }},
		{"description: omitted when not set", func(t *testing.T) {
			wantMember(t, body, "Tissue sample records.", "description")
			wantNames(t, apitest.MemberOf(t, least), "catalogueId", "documentType", "status", "error")
		}},
		{"documentType: from base.json", func(t *testing.T) { wantMember(t, body, "biosample", "documentType") }},
		{"status: failed", func(t *testing.T) { wantMember(t, body, "failed", "status") }},
		{"error: code and message as above", func(t *testing.T) {
			want := map[string]any{"code": "index_not_found", "message": "The configured index does not exist."}
			wantMember(t, body, want, "error")
		}},
		{"operators, fields, generatedAt and meta are absent in this minimal payload", func(t *testing.T) {
			wantNames(t, apitest.MemberOf(t, body), "catalogueId", "description", "documentType", "status", "error")
		}},
	})
}

// TestSpecificationEndpoints: the filter language, states, endpoints and errors.
func TestSpecificationEndpoints(t *testing.T) {
	trySentences(t, []sentence{
		{"GET /introspection/sqon: shared by all catalogues, combination operators and, or, not", func(t *testing.T) {
			h, s := apitest.Catalogued(t, api.Config{}, apitest.Participants(), apitest.Biosamples())
			body := apitest.Introspect(t, h, "/introspection/sqon", 200)
			wantMember(t, body, []any{"and", "or", "not"}, "operators", "combination")
			s.Put()
			if again := apitest.Introspect(t, h, "/introspection/sqon", 200); string(again) != string(body) {
				t.Error("it depends on the catalogues")
			}
		}},
		{"GET /introspection/sqon: field operators with value types and applicability; accepted aliases", func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{})
			body := apitest.Introspect(t, h, "/introspection/sqon", 200)
			operators, _ := apitest.MemberOf(t, body, "operators", "field").([]any)
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
				"healthy": {apitest.Participants()}, "degraded": {apitest.Participants(), apitest.Biosamples()}, "unhealthy": {apitest.Biosamples()},
			} {
				h, _ := apitest.Catalogued(t, api.Config{}, all...)
				ready := 200
				if status == "unhealthy" {
					ready = 503
				}
				wantMember(t, apitest.Introspect(t, h, "/ready", ready), status, "status")
				wantMember(t, apitest.Introspect(t, h, "/introspection", 200), status, "status")
			}
		}},
		{"all endpoints use GET, take no payload and return JSON", func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants())
			for _, target := range []string{"/introspection", "/introspection/sqon", "/introspection/participants", "/introspection/fields"} {
				res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: target})
				apitest.WantProblem(t, res, body, 405, "method_not_allowed", "does not support this method")
				res, _ = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target, Body: "ignored", Header: http.Header{"Content-Type": {"text/plain"}}})
				if res.StatusCode != 200 {
					t.Errorf("%s with a body: %d", target, res.StatusCode)
				}
			}
		}},
		{"{base_url} prefixes every path", func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{BasePath: "/a/b"}, apitest.Participants())
			body := apitest.Introspect(t, h, "/a/b/introspection", 200)
			wantMember(t, body, map[string]any{
				"graphql": "/a/b/participants/graphql", "introspection": "/a/b/introspection/participants", "fields": "/a/b/introspection/fields",
			}, "catalogs", "participants", "paths")
			apitest.Introspect(t, h, "/a/b/introspection/participants", 200)
		}},
		{"GET /introspection/fields: alias of the detail endpoint", func(t *testing.T) {
			for _, c := range []*core.Catalogue{apitest.Participants(), apitest.Biosamples()} {
				h, _ := apitest.Catalogued(t, api.Config{}, c)
				alias, detail := apitest.Introspect(t, h, "/introspection/fields", 200), apitest.Introspect(t, h, "/introspection/"+c.ID, 200)
				if string(alias) != string(detail) {
					t.Errorf("%s and %s", alias, detail)
				}
			}
		}},
		{"exists only in single-catalogue mode and disappears when a second catalogue is added", func(t *testing.T) {
			h, s := apitest.Catalogued(t, api.Config{})
			apitest.Introspect(t, h, "/introspection/fields", 404)
			for range 2 {
				s.Put(apitest.Participants())
				apitest.Introspect(t, h, "/introspection/fields", 200)
				wantMember(t, apitest.Introspect(t, h, "/introspection", 200), "single", "mode")
				s.Put(apitest.Participants(), apitest.Biosamples())
				apitest.Introspect(t, h, "/introspection/fields", 404)
				wantMember(t, apitest.Introspect(t, h, "/introspection", 200), "multiple", "mode")
				apitest.Introspect(t, h, "/introspection/participants", 200)
			}
		}},
		{"clients must use the explicit catalogue id path before a second catalogue is added", func(t *testing.T) {
			for _, path := range []string{"/introspection", "/introspection/fields"} {
				if text := apitest.Document(t).Paths.Value(path).Get.Description; !strings.Contains(text, "before") || !strings.Contains(text, "second") {
					t.Errorf("%s does not say so: %s", path, text)
				}
			}
		}},
		{"detail endpoint for a failed catalogue: status 200 with the minimal failed payload", func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants(), apitest.Biosamples())
			want := strings.Replace(apitest.BiosamplesFailure, `,"details":"/introspection/biosamples"`, "", 1)
			if body := apitest.Introspect(t, h, "/introspection/biosamples", 200); string(body) != want {
				t.Errorf("got %s, want %s", body, want)
			}
		}},
		{"any other path of a failed catalogue, its GraphQL endpoint included: 404 with the same fields plus a details pointer", func(t *testing.T) {
			h, _ := apitest.Catalogued(t, api.Config{}, apitest.Participants(), apitest.Biosamples())
			for _, target := range []string{"/biosamples/graphql", "/biosamples", "/introspection/biosamples/x"} {
				apitest.WantFailure(t, h, apitest.Ask{Method: "POST", Target: target}, apitest.BiosamplesFailure)
			}
			apitest.Introspect(t, h, "/introspection/biosamples", 200)
		}},
		{"the GraphQL endpoint of a failed catalogue: 404, application/json and no GraphQL, whatever is asked", func(t *testing.T) {
			for _, all := range [][]*core.Catalogue{{apitest.Biosamples()}, {apitest.Participants(), apitest.Biosamples()}} {
				h, _ := apitest.Catalogued(t, api.Config{}, all...)
				for _, contentType := range []string{"application/json", "text/plain", ""} {
					for _, body := range []string{apitest.Typename, "{}", "[]", "", "{"} {
						header := http.Header{"Content-Type": {contentType}, "Accept": {"application/graphql-response+json"}}
						apitest.WantFailure(t, h, apitest.Ask{Method: "POST", Target: "/biosamples/graphql", Body: body, Header: header}, apitest.BiosamplesFailure)
					}
				}
				for _, query := range []string{"", "?query=%7B__typename%7D", "?query=mutation%7Ba%7D", "?nobody=1", "?%zz"} {
					apitest.WantFailure(t, h, apitest.Ask{Method: "GET", Target: "/biosamples/graphql" + query}, apitest.BiosamplesFailure)
				}
			}
		}},
		{"the GraphQL endpoint of a failed catalogue: nothing is executed, and others answer as before", func(t *testing.T) {
			h, p, last := apitest.Searched(t, api.Config{}, apitest.Participants(), apitest.Biosamples())
			apitest.WantFailure(t, h, apitest.Ask{Method: "POST", Target: "/biosamples/graphql", Body: apitest.Typename}, apitest.BiosamplesFailure)
			apitest.WantFailure(t, h, apitest.Ask{Method: "POST", Target: "/biosamples/download", Body: "{}"}, apitest.BiosamplesFailure)
			if last.Catalogue != "" {
				t.Errorf("executed on %s", last.Catalogue)
			}
			if res, body := apitest.Post(t, h, "/participants/graphql", apitest.Typename); res.StatusCode != 200 || string(body) != apitest.Answered {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
			p.Catalogues.Put(apitest.Biosamples())
			apitest.WantFailure(t, h, apitest.Ask{Method: "POST", Target: "/graphql", Body: apitest.Typename}, apitest.BiosamplesFailure)
		}},
		{"paths.graphql of an available catalogue leads to its GraphQL endpoint, in single mode /graphql too", func(t *testing.T) {
			h, p, last := apitest.Searched(t, api.Config{BasePath: "/a/b"}, apitest.Participants())
			for _, id := range []string{"participants", "x y/z"} {
				c := apitest.Participants()
				c.ID = id
				p.Catalogues.Put(c)
				target, _ := apitest.MemberOf(t, apitest.Introspect(t, h, "/a/b/introspection", 200), "catalogs", id, "paths", "graphql").(string)
				for _, target := range []string{target, "/a/b/graphql"} {
					*last = apitest.Seen{}
					if res, _ := apitest.Post(t, h, target, apitest.Typename); res.StatusCode != 200 || last.Catalogue != id {
						t.Errorf("%s: %d, executed on %q", target, res.StatusCode, last.Catalogue)
					}
				}
			}
			p.Catalogues.Put(apitest.Participants(), apitest.Plain("other"))
			res, body := apitest.Post(t, h, "/a/b/graphql", apitest.Typename)
			if problem := apitest.WantProblem(t, res, body, 404, "not_found", "exactly one catalogue"); !strings.Contains(problem.Hint, "/a/b/participants/graphql") {
				t.Errorf("hint %q", problem.Hint)
			}
		}},
	})
}
