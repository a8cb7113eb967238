package system_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

func TestListKeys(t *testing.T) {
	berlin := time.FixedZone("CEST", 7200)
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.ListKeys = func() ([]core.APIKey, error) {
			return []core.APIKey{
				{ID: "k2", Name: "portal", Scopes: []string{"S.READ", "S.WRITE"}, CreatedAt: apitest.Noon.In(berlin), ExpiresAt: apitest.Noon.In(berlin), RevokedAt: apitest.Noon.In(berlin), Hash: []byte("hash")},
				{ID: "k1", Name: "plain", CreatedAt: apitest.Noon},
			}, nil
		}
	})
	res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/keys"})
	if res.StatusCode != 200 {
		t.Errorf("got %d", res.StatusCode)
	}
	apitest.Golden(t, "keys", body)

	p.Metadata.ListKeys = func() ([]core.APIKey, error) { return nil, nil }
	if _, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/keys"}); string(body) != `{"keys":[]}` {
		t.Errorf("none: got %s", body)
	}
}

// TestOneBadKeyHidesNoOther: times that JSON does not have are shown as the nearest that it has.
func TestOneBadKeyHidesNoOther(t *testing.T) {
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.ListKeys = func() ([]core.APIKey, error) {
			return []core.APIKey{
				{ID: "k1", Name: "late", CreatedAt: apitest.Noon, ExpiresAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -23*3600))},
				{ID: "k2", Name: "early", CreatedAt: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), RevokedAt: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)},
			}, nil
		}
	})
	res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/keys"})
	want := `{"keys":[{"id":"k1","name":"late","scopes":[],"createdAt":"2026-05-04T12:00:00Z","expiresAt":"9999-12-31T23:59:59Z"},` +
		`{"id":"k2","name":"early","scopes":[],"createdAt":"0000-01-01T00:00:00Z","revokedAt":"9999-12-31T23:59:59Z"}]}`
	if res.StatusCode != 200 || string(body) != want {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

func TestCreateKey(t *testing.T) {
	for sent, want := range map[string]string{
		`{"name":"portal","scopes":["S.READ"]}`:                                                   "portal [S.READ] 0001-01-01T00:00:00Z",
		`{"name":"portal","scopes":["S.READ","S.WRITE"],"expiresAt":"2027-01-01T00:00:00+02:00"}`: "portal [S.READ S.WRITE] 2026-12-31T22:00:00Z",
		`{"name":"portal","scopes":["S.READ"],"expiresAt":null}`:                                  "portal [S.READ] 0001-01-01T00:00:00Z",
	} {
		t.Run(sent, func(t *testing.T) {
			var got string
			p := apitest.Working()
			create := p.Metadata.CreateKey
			p.Metadata.CreateKey = func(name string, scopes []string, expires time.Time) (core.APIKey, string, error) {
				got = fmt.Sprint(name, " ", scopes, " ", expires.UTC().Format(time.RFC3339))
				return create(name, scopes, expires)
			}
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "POST", Target: "/keys", Body: sent})
			if res.StatusCode != 200 || got != want || !strings.Contains(string(body), `"key":"tutti_k1_secret"`) {
				t.Errorf("got %d %s for %s", res.StatusCode, body, got)
			}
			if res.Header.Get("Cache-Control") != "no-store" {
				t.Error("the key may be kept by a cache")
			}
		})
	}
}

func TestCreateKeyRefuses(t *testing.T) {
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.CreateKey = func(string, []string, time.Time) (core.APIKey, string, error) {
			return core.APIKey{}, "", core.NewError(core.CodeInvalid, "a key needs a name")
		}
	})
	h := apitest.NewHandler(t, p, api.Config{})
	for sent, text := range map[string]string{
		``:                              "the body is empty",
		`{`:                             "the body is not valid JSON",
		`["S.READ"]`:                    "the body is not a JSON object",
		`{}`:                            "a key needs a name",
		`{"name":1}`:                    "member name of the body must be a string",
		`{"scopes":"S.READ"}`:           "member scopes of the body must be an array of strings",
		`{"scopes":[1]}`:                "member scopes of the body must be an array of strings",
		`{"scopes":[null]}`:             "member scopes of the body must be an array of strings",
		`{"expiresAt":"tomorrow"}`:      `member expiresAt of the body must be a time such as 2026-12-31T00:00:00Z, not "tomorrow"`,
		`{"expiresAt":""}`:              `not ""`,
		`{"expiresAt":1767225600}`:      "member expiresAt of the body must be a string",
		`{"name":"a","expiresat":"x"}`:  `unknown member "expiresat"`,
		`{"name":"a","expires_at":"x"}`: `unknown member "expires_at"`,
		`{"name":"a","name":"b"}`:       `member "name" of the body appears twice`,
		`{"name":"a","n\u0061me":"a"}`:  `member "name" of the body appears twice`,
		`{"expiresAt":null,"expiresAt":"2027-01-01T00:00:00Z"}`: `member "expiresAt" of the body appears twice`,
	} {
		t.Run(sent, func(t *testing.T) {
			res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/keys", Body: sent})
			got := apitest.WantProblem(t, res, body, 400, "invalid", text)
			if strings.HasPrefix(text, "unknown") && got.Hint != "the nearest member is expiresAt" {
				t.Errorf("hint %q", got.Hint)
			}
			if got.ErrorID != "" {
				t.Errorf("errorId %q", got.ErrorID)
			}
		})
	}
	res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: "/keys", Body: "{}", Header: http.Header{"Content-Type": {"text/plain"}}})
	apitest.WantProblem(t, res, body, 415, "unsupported_media_type", "not declared as JSON")
}

func TestRevokeKey(t *testing.T) {
	h := apitest.NewHandler(t, apitest.WithMetadata(func(m *apitest.MetadataMock) {
		revoke := m.RevokeKey
		m.RevokeKey = func(id string) (core.APIKey, error) {
			if id == "nobody" {
				return core.APIKey{}, core.NewError(core.CodeNotFound, "there is no such key")
			}
			return revoke(id)
		}
	}), api.Config{})
	res, body := apitest.Do(t, h, apitest.Ask{Method: "DELETE", Target: "/keys/k1"})
	if want := `{"id":"k1","name":"portal","scopes":["S.READ"],"createdAt":"2026-05-04T12:00:00Z","revokedAt":"2026-05-04T12:00:00Z"}`; res.StatusCode != 200 || string(body) != want {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	res, body = apitest.Do(t, h, apitest.Ask{Method: "DELETE", Target: "/keys/nobody"})
	apitest.WantProblem(t, res, body, 404, "not_found", "there is no such key")
	res, body = apitest.Do(t, h, apitest.Ask{Method: "DELETE", Target: "/keys/k1", Body: "[]"})
	apitest.WantProblem(t, res, body, 400, "invalid", "not a JSON object")
}
