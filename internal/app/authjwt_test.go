package app_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// issuer is an issuer of JSON Web Tokens that publishes its keys.
type issuer struct {
	t       *testing.T
	server  *httptest.Server
	set     atomic.Pointer[string]
	fetches atomic.Int64
}

// signer is one key of an issuer.
type signer struct {
	t    *testing.T
	id   string
	key  ed25519.PrivateKey
	form string // as in a key set
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t}
	i.publishes()
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, *i.set.Load()) // the client may have gone
	}))
	t.Cleanup(i.server.Close)
	return i
}

func newSigner(t *testing.T, id string) signer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{t: t, id: id, key: private, form: fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","use":"sig","alg":"EdDSA","kid":%q,"x":%q}`,
		id, base64.RawURLEncoding.EncodeToString(public))}
}

// publishes replaces the keys that the issuer publishes.
func (i *issuer) publishes(keys ...signer) {
	forms := make([]string, len(keys))
	for n, k := range keys {
		forms[n] = k.form
	}
	set := `{"keys":[` + strings.Join(forms, ",") + `]}`
	i.set.Store(&set)
}

// yaml turns on tokens of the issuer.
func (i *issuer) yaml() string {
	return fmt.Sprintf("auth: {mode: token, jwt: {jwksUrl: %q, issuer: %q, audience: tutti}}\n", i.server.URL+"/keys", i.server.URL)
}

// token signs claims; missing claims have valid values.
func (i *issuer) token(k signer, claims map[string]any) string {
	i.t.Helper()
	all := map[string]any{
		"iss": i.server.URL, "aud": []string{"else", "tutti"}, "sub": "somebody", "exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, v := range claims {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	payload, err := json.Marshal(all)
	if err != nil {
		i.t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode(fmt.Appendf(nil, `{"alg":"EdDSA","typ":"JWT","kid":%q}`, k.id)) + "." + encode(payload)
	return text + "." + encode(ed25519.Sign(k.key, []byte(text)))
}

// TestAuthJWT: tokens of the issuer are taken by their scopes, API keys beside them; what was not signed by it, or not for
// tutti, is refused. Keys that the issuer changes are known without a restart, and those that it took back count no more.
func TestAuthJWT(t *testing.T) {
	t.Parallel()
	source := newIssuer(t)
	first, second, foreign := newSigner(t, "first"), newSigner(t, "second"), newSigner(t, "first")
	source.publishes(first)
	b := newBuiltIn(t, plan{more: source.yaml()})
	_, key := b.firstKey("tutti.WRITE")
	b.startReady()
	b.token = source.token(first, map[string]any{"scope": "openid tutti.WRITE"})
	b.prepareStudies("S1", "S2")

	for name, claims := range map[string]map[string]any{
		"scope": {"scope": "openid S1.WRITE"}, "scp": {"scp": []string{"S1.WRITE"}},
		"context.scope": {"context": map[string]any{"scope": []string{"S1.WRITE"}}},
	} {
		writer := source.token(first, claims)
		id := b.mustSendAs(writer, http.MethodPost, "/submit/S1", b.payload("S1", ""), http.StatusOK).get("analysisId").String()
		b.mustSendAs(writer, http.MethodPut, statePath("S1", "publish", id), "", http.StatusOK)
		b.wantRefused(writer, http.MethodPost, "/submit/S2", b.payload("S2", ""), http.StatusForbidden, "S2.WRITE")
		t.Logf("scopes in %s", name)
	}
	b.awaitConverged()

	good := source.token(first, map[string]any{"scope": "S1.WRITE"})
	head, rest, _ := strings.Cut(good, ".")
	body, signature, _ := strings.Cut(rest, ".")
	forged := base64.RawURLEncoding.EncodeToString([]byte(`{"scope":"tutti.WRITE"}`))
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	for name, token := range map[string]string{
		"expired":          source.token(first, map[string]any{"scope": "S1.WRITE", "exp": time.Now().Add(-time.Hour).Unix()}),
		"without an end":   source.token(first, map[string]any{"scope": "S1.WRITE", "exp": nil}),
		"another issuer":   source.token(first, map[string]any{"scope": "S1.WRITE", "iss": "https://elsewhere.example.org"}),
		"another audience": source.token(first, map[string]any{"scope": "S1.WRITE", "aud": "else"}),
		"another key":      source.token(foreign, map[string]any{"scope": "S1.WRITE"}),
		"other claims":     head + "." + forged + "." + signature,
		"not signed":       none + "." + body + ".",
	} {
		a := b.mustSendAs(token, http.MethodPost, "/submit/S1", b.payload("S1", ""), http.StatusUnauthorized)
		if a.get("detail").String() == "" || !strings.Contains(a.header.Get("WWW-Authenticate"), "invalid_token") {
			t.Errorf("%s: challenge %q: %s", name, a.header.Get("WWW-Authenticate"), a.raw)
		}
	}

	source.publishes(second)
	later := source.token(second, map[string]any{"scope": "S1.WRITE"})
	b.eventually(wait, func() (bool, string) { // the keys are fetched at most every few seconds
		a, err := b.sendAs(later, http.MethodPost, "/submit/S1", b.payload("S1", ""))
		if err != nil {
			t.Fatal(err)
		}
		return a.status == http.StatusOK, string(a.raw)
	})
	b.wantRefused(good, http.MethodPost, "/submit/S1", b.payload("S1", ""), http.StatusUnauthorized, "token")
	if n := source.fetches.Load(); n < 2 || n > 10 {
		t.Errorf("the keys were fetched %d times", n)
	}

	// Without the issuer, the keys that are known go on, and so do API keys.
	source.server.Close()
	b.mustSendAs(later, http.MethodGet, "/studies/S1", "", http.StatusOK)
	b.mustSendAs(key, http.MethodGet, "/keys", "", http.StatusOK)
	b.token = key
	b.awaitConverged()
}
