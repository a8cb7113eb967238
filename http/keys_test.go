package http_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
)

func TestListKeys(t *testing.T) {
	berlin := time.FixedZone("CEST", 7200)
	p := withMetadata(func(m *metadataMock) {
		m.listKeys = func() ([]core.APIKey, error) {
			return []core.APIKey{
				{ID: "k2", Name: "portal", Scopes: []string{"S.READ", "S.WRITE"}, CreatedAt: noon.In(berlin), ExpiresAt: noon.In(berlin), RevokedAt: noon.In(berlin), Hash: []byte("hash")},
				{ID: "k1", Name: "plain", CreatedAt: noon},
			}, nil
		}
	})
	res, body := do(t, newHandler(t, p, api.Config{}), ask{method: "GET", target: "/keys"})
	if res.StatusCode != 200 {
		t.Errorf("got %d", res.StatusCode)
	}
	golden(t, "keys", body)

	p.metadata.listKeys = func() ([]core.APIKey, error) { return nil, nil }
	if _, body := do(t, newHandler(t, p, api.Config{}), ask{method: "GET", target: "/keys"}); string(body) != `{"keys":[]}` {
		t.Errorf("none: got %s", body)
	}
}

// TestOneBadKeyHidesNoOther: times that JSON does not have are shown as the nearest that it has.
func TestOneBadKeyHidesNoOther(t *testing.T) {
	p := withMetadata(func(m *metadataMock) {
		m.listKeys = func() ([]core.APIKey, error) {
			return []core.APIKey{
				{ID: "k1", Name: "late", CreatedAt: noon, ExpiresAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -23*3600))},
				{ID: "k2", Name: "early", CreatedAt: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), RevokedAt: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)},
			}, nil
		}
	})
	res, body := do(t, newHandler(t, p, api.Config{}), ask{method: "GET", target: "/keys"})
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
			p := working()
			create := p.metadata.createKey
			p.metadata.createKey = func(name string, scopes []string, expires time.Time) (core.APIKey, string, error) {
				got = fmt.Sprint(name, " ", scopes, " ", expires.UTC().Format(time.RFC3339))
				return create(name, scopes, expires)
			}
			res, body := do(t, newHandler(t, p, api.Config{}), ask{method: "POST", target: "/keys", body: sent})
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
	p := withMetadata(func(m *metadataMock) {
		m.createKey = func(string, []string, time.Time) (core.APIKey, string, error) {
			return core.APIKey{}, "", core.NewError(core.CodeInvalid, "a key needs a name")
		}
	})
	h := newHandler(t, p, api.Config{})
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
			res, body := do(t, h, ask{method: "POST", target: "/keys", body: sent})
			got := wantProblem(t, res, body, 400, "invalid", text)
			if strings.HasPrefix(text, "unknown") && got.Hint != "the nearest member is expiresAt" {
				t.Errorf("hint %q", got.Hint)
			}
			if got.ErrorID != "" {
				t.Errorf("errorId %q", got.ErrorID)
			}
		})
	}
	res, body := do(t, h, ask{method: "POST", target: "/keys", body: "{}", header: http.Header{"Content-Type": {"text/plain"}}})
	wantProblem(t, res, body, 415, "unsupported_media_type", "not declared as JSON")
}

func TestRevokeKey(t *testing.T) {
	h := newHandler(t, withMetadata(func(m *metadataMock) {
		revoke := m.revokeKey
		m.revokeKey = func(id string) (core.APIKey, error) {
			if id == "nobody" {
				return core.APIKey{}, core.NewError(core.CodeNotFound, "there is no such key")
			}
			return revoke(id)
		}
	}), api.Config{})
	res, body := do(t, h, ask{method: "DELETE", target: "/keys/k1"})
	if want := `{"id":"k1","name":"portal","scopes":["S.READ"],"createdAt":"2026-05-04T12:00:00Z","revokedAt":"2026-05-04T12:00:00Z"}`; res.StatusCode != 200 || string(body) != want {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	res, body = do(t, h, ask{method: "DELETE", target: "/keys/nobody"})
	wantProblem(t, res, body, 404, "not_found", "there is no such key")
	res, body = do(t, h, ask{method: "DELETE", target: "/keys/k1", body: "[]"})
	wantProblem(t, res, body, 400, "invalid", "not a JSON object")
}
