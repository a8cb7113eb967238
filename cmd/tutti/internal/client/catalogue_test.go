package client_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/cmd/tutti/internal/client"
	"tutti/http/api"
	"tutti/http/search"
	"tutti/internal/core"
)

const (
	cataloguesJSON = `{"catalogCount":2,"mode":"multiple","status":"degraded","sqonSchemaPath":"/base/introspection/sqon","catalogs":{` +
		`"donors":{"description":"All donors","documentType":"donor","paths":{"graphql":"/base/donors/graphql","introspection":"/base/introspection/donors"},"status":"available"},` +
		`"__proto__":{"documentType":"","paths":{"graphql":"/base/__proto__/graphql","introspection":"/base/introspection/__proto__"},"status":"failed",` +
		`"error":{"code":"schema_build_error","message":"base.json is not JSON"}}}}`
	catalogueJSON = `{"catalogId":"donors","description":"All donors","documentType":"donor","generatedAt":"2026-05-04T12:00:00Z",` +
		`"meta":{"authFiltered":true},"operators":{"keyword":["in","not-in"],"long":["gt"]},` +
		`"fields":{"z":{"displayName":"Z","type":"long","unit":"years"},"donor.age":{"displayName":"Donor Age","type":"keyword","description":"At diagnosis"}}}`
	failedJSON = `{"catalogueId":"files","documentType":"file","status":"failed","error":{"code":"index_not_found","message":"there is no index files"}}`
)

// TestCallsOfCatalogues: each method sends the request of CONTRACT section 2, below the base path.
func TestCallsOfCatalogues(t *testing.T) {
	t.Parallel()
	detail := func(id string) func(context.Context, *client.Client) (any, error) {
		return func(ctx context.Context, c *client.Client) (any, error) { return c.Catalogue(ctx, id) }
	}
	list := func(ctx context.Context, c *client.Client) (any, error) { return c.Catalogues(ctx) }
	for name, tt := range map[string]struct {
		call   func(context.Context, *client.Client) (any, error)
		want   string
		answer string
		result any
	}{
		"list": {list, "/base/introspection", cataloguesJSON, client.CatalogueList{
			Mode: "multiple", Status: core.CataloguesDegraded, SQONSchemaPath: "/base/introspection/sqon", Raw: []byte(cataloguesJSON),
			Catalogues: []client.Catalogue{
				{
					ID: "__proto__", Status: client.CatalogueFailed,
					Paths:   client.CataloguePaths{GraphQL: "/base/__proto__/graphql", Introspection: "/base/introspection/__proto__"},
					Problem: &core.CatalogueProblem{Code: core.CatalogueSchemaBuild, Message: "base.json is not JSON"},
				},
				{
					ID: "donors", Description: "All donors", DocumentType: "donor", Status: client.CatalogueAvailable,
					Paths: client.CataloguePaths{GraphQL: "/base/donors/graphql", Introspection: "/base/introspection/donors"},
				},
			},
		}},
		"repositories": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.Repositories(ctx) }, "/base/repositories",
			`{"repositories":[{"code":"a","type":"song","indexName":"x","state":"ok","lastSuccess":null,"freshnessSeconds":null}]}`,
			[]core.RepositoryStatus{{Code: "a", Type: core.TypeSong, IndexName: "x", State: core.RepositoryOK}},
		},
		"empty list": {
			list, "/base/introspection", `{"catalogCount":0,"mode":"multiple","status":"healthy","catalogs":{}}`,
			client.CatalogueList{Mode: "multiple", Status: core.CataloguesHealthy, Raw: []byte(`{"catalogCount":0,"mode":"multiple","status":"healthy","catalogs":{}}`)},
		},
		"detail": {detail("do/nors"), "/base/introspection/do%2Fnors", catalogueJSON, client.CatalogueDetail{
			ID: "donors", Description: "All donors", DocumentType: "donor", GeneratedAt: at("12:00:00"), Restricted: true,
			Operators: map[string][]string{"keyword": {"in", "not-in"}, "long": {"gt"}},
			Fields: []core.CatalogueField{
				{Name: "donor.age", DisplayName: "Donor Age", Type: "keyword", Description: "At diagnosis"},
				{Name: "z", DisplayName: "Z", Type: "long", Unit: "years"},
			},
			Raw: []byte(catalogueJSON),
		}},
		"failed": {detail("files"), "/base/introspection/files", failedJSON, client.CatalogueDetail{
			ID: "files", DocumentType: "file", Problem: &core.CatalogueProblem{Code: core.CatalogueIndexNotFound, Message: "there is no index files"},
			Raw: []byte(failedJSON),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = r.RequestURI
				answer(w, http.StatusOK, "application/json", tt.answer)
			})
			result, err := tt.call(t.Context(), newClient(t, client.Config{Server: url + "/base"}))
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("asked for %s, want %s", got, tt.want)
			}
			if diff := cmp.Diff(tt.result, result); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnknownCatalogues(t *testing.T) {
	t.Parallel()
	c := newClient(t, client.Config{Server: serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/introspection/sqon":
			answer(w, http.StatusOK, "application/json", `{"$schema":"https://json-schema.org/draft/2020-12/schema","operators":{"field":[]}}`)
		case "/introspection/donor":
			answer(w, http.StatusConflict, "application/problem+json",
				`{"detail":"several catalogues have this document type","code":"ambiguous_document_type","hint":"ask for one of them by its id"}`)
		default:
			answer(w, http.StatusNotFound, "application/problem+json", `{"detail":"catalogue not found","code":"not_found"}`)
		}
	})})
	for id, want := range map[string]*core.Error{
		"none":  core.NewError(core.CodeNotFound, "catalogue not found"),
		"sqon":  core.NewError(core.CodeNotFound, "catalogue not found"),
		"..":    core.NewError(core.CodeInvalid, "id must not be a relative path segment"),
		"":      core.NewError(core.CodeInvalid, "id is empty"),
		"donor": {Code: "ambiguous_document_type", Message: "several catalogues have this document type", Hint: "ask for one of them by its id"},
	} {
		t.Run(id, func(t *testing.T) {
			_, err := c.Catalogue(t.Context(), id)
			wantError(t, err, want.Code, want.Message, want.Hint)
		})
	}
}

type catalogues struct{}

func (catalogues) IndexedAt(string) time.Time { return time.Time{} }

func (catalogues) Values(context.Context, string, core.Principal, []string, int) (map[string]core.FieldValues, error) {
	return nil, nil
}

func (catalogues) Catalogues() *core.CatalogueSet {
	return &core.CatalogueSet{Catalogues: []*core.Catalogue{
		{
			ID: "a b", DocumentType: "donor", Restricted: true,
			Fields: []core.CatalogueField{{Name: "x", DisplayName: "X", Type: "keyword"}, {Name: "a", DisplayName: "A", Type: "long", Unit: "years"}},
		},
		{ID: "c", DocumentType: "donor", Problem: &core.CatalogueProblem{Code: core.CatalogueMappingFetch, Message: "m"}},
	}}
}

// TestCataloguesOfTheHandler: client and real handler understand each other.
func TestCataloguesOfTheHandler(t *testing.T) {
	t.Parallel()
	handler, err := api.New(api.Config{}, search.New(search.Ports{Catalogues: catalogues{}, Data: catalogues{}}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, c := t.Context(), newClient(t, client.Config{Server: serve(t, handler.ServeHTTP)})
	list, err := c.Catalogues(ctx)
	if err != nil || list.Mode != "multiple" || list.Status != core.CataloguesDegraded || list.SQONSchemaPath != "/introspection/sqon" {
		t.Errorf("%+v, %v", list, err)
	}
	wanted := []client.Catalogue{
		{
			ID: "a b", DocumentType: "donor", Status: client.CatalogueAvailable,
			Paths: client.CataloguePaths{GraphQL: "/a%20b/graphql", Introspection: "/introspection/a%20b"},
		},
		{
			ID: "c", DocumentType: "donor", Status: client.CatalogueFailed, Problem: &core.CatalogueProblem{Code: "mapping_fetch_error", Message: "m"},
			Paths: client.CataloguePaths{GraphQL: "/c/graphql", Introspection: "/introspection/c"},
		},
	}
	if diff := cmp.Diff(wanted, list.Catalogues); diff != "" {
		t.Error(diff)
	}
	detail, err := c.Catalogue(ctx, "a b")
	if err != nil || detail.GeneratedAt.IsZero() || len(detail.Operators["long"]) == 0 || len(detail.Operators) != 2 {
		t.Errorf("%+v, %v", detail, err)
	}
	detail.GeneratedAt, detail.Operators, detail.Raw = time.Time{}, nil, nil
	want := client.CatalogueDetail{
		ID: "a b", DocumentType: "donor", Restricted: true,
		Fields: []core.CatalogueField{{Name: "a", DisplayName: "A", Type: "long", Unit: "years"}, {Name: "x", DisplayName: "X", Type: "keyword"}},
	}
	if diff := cmp.Diff(want, detail); diff != "" {
		t.Error(diff)
	}
	if failed, err := c.Catalogue(ctx, "c"); err != nil || failed.ID != "c" || failed.Problem == nil || failed.Problem.Message != "m" {
		t.Errorf("%+v, %v", failed, err)
	}
	for id, code := range map[string]core.Code{"none": core.CodeNotFound, "donor": "ambiguous_document_type", "sqon": core.CodeNotFound} {
		if _, err := c.Catalogue(ctx, id); core.CodeOf(err) != code || core.MessageOf(err) == "" {
			t.Errorf("%s: %v", id, err)
		}
	}
}
