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

// TestAuthOfSong: with the environment of a Song, a token of Keycloak and an API key submit to their study only. While Keycloak does not
// answer, a key that was not checked gets 503.
func TestAuthOfSong(t *testing.T) {
	t.Parallel()
	key := newSigner(t, "first")
	keycloak := newKeycloak(t, key)
	b := newBuiltIn(t, plan{set: settings{environ: []string{
		"SPRING_PROFILES_ACTIVE=prod,secure,kafka", "AUTH_SERVER_PROVIDER=keycloak", "AUTH_SERVER_CLIENTID=song", "AUTH_SERVER_CLIENTSECRET=s3cret",
		"AUTH_SERVER_TOKENNAME=apiKey", "AUTH_SERVER_KEYCLOAK_HOST=" + keycloak.URL, "AUTH_SERVER_KEYCLOAK_REALM=myrealm",
		"AUTH_SERVER_INTROSPECTIONURI=" + keycloak.URL + "/realms/myrealm/apikey/check_api_key/",
		"AUTH_SERVER_SCOPE_STUDY_PREFIX=STUDY.", "AUTH_SERVER_SCOPE_STUDY_SUFFIX=.WRITE", "AUTH_SERVER_SCOPE_SYSTEM=song.WRITE",
		"SPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_JWK_SET_URI=" + keycloak.URL + "/realms/myrealm/protocol/openid-connect/certs",
	}}})
	b.startReady()
	token := func(subject string) string {
		i := &issuer{t: t, server: keycloak}
		return i.token(key, map[string]any{"sub": subject, "aud": "account", "azp": "webclient", "typ": "Bearer", "scope": "openid song.WRITE"})
	}
	b.token = token("song")
	b.prepareStudies("S1", "S2")
	for name, writer := range map[string]string{"token": token("STUDY.S1"), "API key": knownKey} {
		t.Log(name)
		id := b.mustSendAs(writer, http.MethodPost, "/submit/S1", b.payload("S1", ""), http.StatusOK).get("analysisId").String()
		b.mustSendAs(writer, http.MethodPut, statePath("S1", "publish", id), "", http.StatusOK)
		b.wantRefused(writer, http.MethodPost, "/submit/S2", b.payload("S2", ""), http.StatusForbidden, "STUDY.S2.WRITE")
	}
	b.awaitConverged()
	b.wantRefused(unknownKey, http.MethodPost, "/submit/S1", b.payload("S1", ""), http.StatusUnauthorized, "token")
	keycloak.Close()
	if a := b.mustSendAs(unknownKey, http.MethodPost, "/submit/S1", b.payload("S1", ""), http.StatusServiceUnavailable); a.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
}

const (
	knownKey   = "7b0e1e0c-6c1a-4f0e-9f53-0f2f5a3f7a10"
	unknownKey = "00000000-6c1a-4f0e-9f53-0f2f5a3f7a10"
)

// newKeycloak serves what Song uses of Keycloak: the keys, the exchange of a token for the permission WRITE on the resource that the
// token's subject names, and the check of API keys, of which knownKey may write in the study S1.
func newKeycloak(t *testing.T, key signer) *httptest.Server {
	t.Helper()
	const realm = "/realms/myrealm"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case r.Method == http.MethodGet && r.URL.Path == realm+"/protocol/openid-connect/certs":
			_, _ = fmt.Fprintf(w, `{"keys":[%s]}`, key.form)
		case r.URL.Path == realm+"/protocol/openid-connect/token" && r.PostFormValue("audience") == "song" &&
			r.PostFormValue("grant_type") == "urn:ietf:params:oauth:grant-type:uma-ticket" && r.PostFormValue("response_mode") == "permissions":
			_, claims, _ := strings.Cut(r.Header.Get("Authorization"), ".")
			claims, _, _ = strings.Cut(claims, ".")
			var token struct{ Sub string }
			if text, err := base64.RawURLEncoding.DecodeString(claims); err != nil || json.Unmarshal(text, &token) != nil {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = fmt.Fprintf(w, `[{"rsid":"1","rsname":%q,"scopes":["WRITE"]}]`, token.Sub)
		case r.URL.Path == realm+"/apikey/check_api_key/" && user == "song" && password == "s3cret" &&
			strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") && r.FormValue("apiKey") == knownKey:
			w.WriteHeader(http.StatusMultiStatus)
			_, _ = fmt.Fprint(w, `{"user_id":"u1","exp":1767225600000,"revoked":false,"valid":true,"message":null,"scope":["STUDY.S1.WRITE"]}`)
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(s.Close)
	return s
}
