package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/cmd/tutti/internal/client"
	"tutti/http/api"
	"tutti/http/metadata"
	"tutti/http/system"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

const typeJSON = `{"name":"wgs","version":2,"createdAt":"2026-05-04T12:00:00Z","options":{"fileTypes":["BAM"],` +
	`"externalValidations":[{"url":"http://a/{value}","jsonPath":"$.a"}]},"schema":{"type":"object"},` +
	`"versions":[{"name":"wgs","version":1,"createdAt":"2026-05-04T11:00:00Z","options":{"fileTypes":[],"externalValidations":[]},"schema":{}}],"later":1}`

func wantType() client.AnalysisType {
	return client.AnalysisType{
		Name: "wgs", Version: 2, CreatedAt: at("12:00:00"), Schema: []byte(`{"type":"object"}`),
		Options: datamodel.AnalysisOptions{
			FileTypes: []string{"BAM"}, ExternalValidations: []datamodel.ExternalValidation{{URL: "http://a/{value}", JSONPath: "$.a"}},
		},
		Versions: []client.AnalysisType{{
			Name: "wgs", Version: 1, CreatedAt: at("11:00:00"), Schema: []byte(`{}`),
			Options: datamodel.AnalysisOptions{FileTypes: []string{}, ExternalValidations: []datamodel.ExternalValidation{}},
		}},
		Raw: []byte(typeJSON),
	}
}

const keyJSON = `{"id":"k1","name":"n","scopes":["tutti.WRITE"],"createdAt":"2026-05-04T12:00:00Z","expiresAt":"2026-05-04T12:00:01Z","key":"tutti_k1_x"}`

func wantKey() client.APIKey {
	return client.APIKey{
		ID: "k1", Name: "n", Scopes: []string{"tutti.WRITE"}, CreatedAt: at("12:00:00"), ExpiresAt: at("12:00:01"), Key: "tutti_k1_x", Raw: []byte(keyJSON),
	}
}

// TestCallsOfSchemasAndKeys: each method sends the request of CONTRACT sections 6 and 7, below the base path.
func TestCallsOfSchemasAndKeys(t *testing.T) {
	t.Parallel()
	const page = `{"limit":20,"offset":5,"count":7,"resultSet":[]}`
	for name, tt := range map[string]struct {
		call   func(context.Context, *client.Client) (any, error)
		want   string
		body   string
		answer string
		result any
	}{
		"types": {
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.AnalysisTypes(ctx, client.AnalysisTypeFilter{
					Names: []string{"a", "b.c"}, Versions: []int{1, 3}, Limit: 20, Offset: 5, HideSchema: true, Unrendered: true,
				})
			},
			"GET /base/schemas?hideSchema=true&limit=20&names=a&names=b.c&offset=5&unrenderedOnly=true&versions=1&versions=3", "", page,
			client.AnalysisTypePage{Limit: 20, Offset: 5, Count: 7, ResultSet: []client.AnalysisType{}, Raw: []byte(page)},
		},
		"all types": {
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.AnalysisTypes(ctx, client.AnalysisTypeFilter{})
			},
			"GET /base/schemas", "", `{}`,
			client.AnalysisTypePage{Raw: []byte(`{}`)},
		},
		"type": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.AnalysisType(ctx, "w/g", 0, false) },
			"GET /base/schemas/w%2Fg", "", typeJSON, wantType(),
		},
		"version": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.AnalysisType(ctx, "wgs", 2, true) },
			"GET /base/schemas/wgs?unrenderedOnly=true&version=2", "", typeJSON, wantType(),
		},
		"registration": {
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.RegisterAnalysisType(ctx, []byte(`{"name": "wgs"}`))
			},
			"POST /base/schemas", `application/json {"name": "wgs"}`, typeJSON, wantType(),
		},
		"registration of nothing": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.RegisterAnalysisType(ctx, []byte{}) },
			"POST /base/schemas", "application/json ", typeJSON, wantType(),
		},
		"keys": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.Keys(ctx) },
			"GET /base/keys", "", `{"keys":[]}`,
			client.KeyList{Keys: []client.APIKey{}, Raw: []byte(`{"keys":[]}`)},
		},
		"new key": {
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.CreateKey(ctx, "n", []string{"tutti.WRITE"}, at("12:00:01").In(time.FixedZone("", 3600)))
			},
			"POST /base/keys", `application/json {"name":"n","scopes":["tutti.WRITE"],"expiresAt":"2026-05-04T12:00:01Z"}`, keyJSON, wantKey(),
		},
		"new key for ever": {
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.CreateKey(ctx, "n", []string{"a.READ", "b.READ"}, time.Time{})
			},
			"POST /base/keys", `application/json {"name":"n","scopes":["a.READ","b.READ"]}`, keyJSON, wantKey(),
		},
		"revocation": {
			func(ctx context.Context, c *client.Client) (any, error) { return c.RevokeKey(ctx, "k1") },
			"DELETE /base/keys/k1", "", keyJSON, wantKey(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got, body string
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = r.Method + " " + r.RequestURI
				sent, _ := io.ReadAll(r.Body)
				if kind := r.Header.Get("Content-Type"); kind != "" {
					body = kind + " " + string(sent)
				}
				answer(w, http.StatusOK, "application/json", tt.answer)
			})
			result, err := tt.call(t.Context(), newClient(t, client.Config{Server: url + "/base"}))
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want || body != tt.body {
				t.Errorf("asked for %s with %q,\nwant %s with %q", got, body, tt.want, tt.body)
			}
			if diff := cmp.Diff(tt.result, result); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestViolationsAreKept: the violations of a problem reach the caller.
func TestViolationsAreKept(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusBadRequest, "application/problem+json", `{"detail":"the schema is not valid","code":"invalid","errorId":"malformed.json.schema",`+
			`"violations":[{"pointer":"/schema/properties/x","message":"no such type","keyword":"type"},{"pointer":"","message":"m","keyword":"k","retryable":true}]}`)
	})
	_, err := newClient(t, client.Config{Server: url}).RegisterAnalysisType(t.Context(), []byte(`{}`))
	wantError(t, err, core.CodeInvalid, "the schema is not valid", "")
	refused, ok := errors.AsType[*core.Error](err)
	if !ok || refused.ErrorID != "malformed.json.schema" {
		t.Fatalf("error %#v", err)
	}
	want := []core.Violation{
		{Pointer: "/schema/properties/x", Message: "no such type", Keyword: "type"}, {Message: "m", Keyword: "k", Retryable: true},
	}
	if diff := cmp.Diff(want, refused.Violations); diff != "" {
		t.Error(diff)
	}
}

// TestInvalidNames: an id or a name that is not a path segment causes no request.
func TestInvalidNames(t *testing.T) {
	t.Parallel()
	c := newClient(t, client.Config{Server: serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })})
	_, err := c.AnalysisType(t.Context(), "", 0, false)
	wantError(t, err, core.CodeInvalid, "name is empty", "")
	_, err = c.RevokeKey(t.Context(), "..")
	wantError(t, err, core.CodeInvalid, "id must not be a relative path segment", "")
}

// metadata implements the ports of the real handler for analysis types and keys.
type types struct{ metadata.AnalysisTypes }

func (types) Register(_ context.Context, body []byte) ([]byte, error) {
	if !strings.Contains(string(body), "wgs") {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: "the registration is at fault", ErrorID: "malformed.parameter",
			Violations: []core.Violation{{Pointer: "/name", Message: "is missing", Keyword: "required"}},
		}
	}
	return []byte(typeJSON), nil
}

func (types) Type(_ context.Context, name string, version int, _ bool, each func([]byte) error) error {
	if name != "wgs" || version != 2 {
		return &core.Error{Code: core.CodeNotFound, Message: "no such analysis type", ErrorID: "analysis.type.not.found"}
	}
	return each([]byte(typeJSON))
}

func (types) List(_ context.Context, query datamodel.AnalysisTypeQuery, hideSchema, _ bool, each func([]byte) error) error {
	if strings.Join(query.Names, " ") != "a b" || query.Limit != 3 || !hideSchema {
		return core.NewError(core.CodeInvalid, "asked for something else")
	}
	return each([]byte(`{"limit":3,"offset":0,"count":1,"resultSet":[` + typeJSON + `]}`))
}

type keys struct{}

func (keys) Create(_ context.Context, name string, scopes []string, expires time.Time) (core.APIKey, string, error) {
	return core.APIKey{ID: "k1", Name: name, Scopes: scopes, CreatedAt: at("12:00:00"), ExpiresAt: expires}, "tutti_k1_x", nil
}

func (keys) List(context.Context) ([]core.APIKey, error) {
	return []core.APIKey{{ID: "k1", Name: "n", CreatedAt: at("12:00:00"), RevokedAt: at("12:00:02")}}, nil
}

func (keys) Revoke(_ context.Context, id string) (core.APIKey, error) {
	if id != "k1" {
		return core.APIKey{}, core.NewError(core.CodeNotFound, "no such key")
	}
	return core.APIKey{ID: "k1", Name: "n", CreatedAt: at("12:00:00"), RevokedAt: at("12:00:02")}, nil
}

// TestSchemasAndKeysOfTheHandler: client and real handler understand each other.
func TestSchemasAndKeysOfTheHandler(t *testing.T) {
	t.Parallel()
	system, err := system.New(system.Ports{Keys: keys{}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := api.New(api.Config{}, metadata.New(metadata.Ports{AnalysisTypes: types{}}), system)
	if err != nil {
		t.Fatal(err)
	}
	ctx, c := t.Context(), newClient(t, client.Config{Server: serve(t, handler.ServeHTTP)})
	if got, err := c.RegisterAnalysisType(ctx, []byte(`{"name":"wgs"}`)); err != nil || got.Version != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = c.RegisterAnalysisType(ctx, []byte(`{}`))
	wantError(t, err, core.CodeInvalid, "the registration is at fault", "")
	if refused, ok := errors.AsType[*core.Error](err); !ok || refused.ErrorID != "malformed.parameter" || len(refused.Violations) != 1 ||
		refused.Violations[0].Pointer != "/name" {
		t.Errorf("error %#v", err)
	}
	if got, err := c.AnalysisType(ctx, "wgs", 2, true); err != nil || len(got.Versions) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = c.AnalysisType(ctx, "wgs", 0, false)
	wantError(t, err, core.CodeNotFound, "no such analysis type", "")
	page, err := c.AnalysisTypes(ctx, client.AnalysisTypeFilter{Names: []string{"a", "b"}, Limit: 3, HideSchema: true})
	if err != nil || page.Count != 1 || len(page.ResultSet) != 1 || page.ResultSet[0].Name != "wgs" {
		t.Errorf("%+v, %v", page, err)
	}
	made, err := c.CreateKey(ctx, "n", []string{"tutti.WRITE"}, at("12:00:01"))
	made.Raw = nil
	want := wantKey()
	want.Raw = nil
	if diff := cmp.Diff(want, made); err != nil || diff != "" {
		t.Error(diff, err)
	}
	if list, err := c.Keys(ctx); err != nil || len(list.Keys) != 1 || !list.Keys[0].RevokedAt.Equal(at("12:00:02")) {
		t.Errorf("%+v, %v", list, err)
	}
	if key, err := c.RevokeKey(ctx, "k1"); err != nil || key.Key != "" || !key.RevokedAt.Equal(at("12:00:02")) {
		t.Errorf("%+v, %v", key, err)
	}
	_, err = c.RevokeKey(ctx, "k2")
	wantError(t, err, core.CodeNotFound, "no such key", "")
}
