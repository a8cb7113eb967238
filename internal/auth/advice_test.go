package auth_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tutti/internal/auth"
	"tutti/internal/core"
)

// wantHint checks the hint of an error.
func wantHint(t *testing.T, err error, hint string) {
	t.Helper()
	if err == nil || core.HintOf(err) != hint {
		t.Errorf("hint %q, want %q (%v)", core.HintOf(err), hint, err)
	}
}

// TestAdviceOnTokens: a rejected token's hint, and a token that follows it, which is accepted.
func TestAdviceOnTokens(t *testing.T) {
	s, stranger := newSigner(t, "k1", jwt.SigningMethodES256), newSigner(t, "k1", jwt.SigningMethodES256)
	server := newKeyServer(t, s.jwk(t, nil))
	a := newAuthenticator(t, auth.JWTConfig{JWKSURL: server.URL})
	hmac := func() string {
		text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims(nil)).SignedString(s.pem(t))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := s.sign(t, claims(nil), nil)
	at := func(d time.Duration) int64 { return noon.Add(d).Unix() }
	const required = "it needs exp, and the iss and aud that auth.jwt requires"
	const algorithms = "tokens are signed with RS, PS, ES or EdDSA by the configured issuer"
	for _, tc := range []struct{ name, token, hint, followed string }{
		{"expired", s.sign(t, claims(jwt.MapClaims{"exp": at(-time.Hour)}), nil), "ask for a new token", good},
		{"a withdrawn key", s.sign(t, claims(nil), map[string]any{"kid": "k0"}), "ask for a new token", good},
		{"HMAC", hmac(), algorithms, good},
		{"another's key", stranger.sign(t, claims(nil), nil), algorithms, good},
		{
			"another audience", s.sign(t, claims(jwt.MapClaims{"aud": "song"}), nil), "ask for a token with this service's audience",
			s.sign(t, claims(jwt.MapClaims{"aud": []string{"song", audience}}), nil),
		},
		{"no expiry", s.sign(t, claims(jwt.MapClaims{"exp": nil}), nil), required, s.sign(t, jwt.MapClaims{
			"exp": at(time.Minute), "iss": issuer, "aud": audience, "sub": "alice",
		}, nil)},
		{"no issuer", s.sign(t, claims(jwt.MapClaims{"iss": nil}), nil), required, good},
		{"no audience", s.sign(t, claims(jwt.MapClaims{"aud": nil}), nil), required, good},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantHint(t, authenticate(t, a, tc.token), tc.hint)
			if err := authenticate(t, a, tc.followed); err != nil {
				t.Errorf("a token that follows the hint: %v", err)
			}
		})
	}
}

// TestAdviceOnClocks: a token that is valid later is accepted once the clock is right.
func TestAdviceOnClocks(t *testing.T) {
	now, s := new(clock), newSigner(t, "", jwt.SigningMethodES256)
	a := newAuthenticator(t, auth.JWTConfig{PublicKey: s.pem(t), Now: now.now})
	for claim, late := range map[string]time.Duration{"nbf": 10 * time.Minute, "iat": 20 * time.Minute} {
		token := s.sign(t, claims(jwt.MapClaims{claim: now.now().Add(late).Unix()}), nil)
		wantHint(t, authenticate(t, a, token), "check the clocks of the issuer and of this server")
		now.advance(late)
		if err := authenticate(t, a, token); err != nil {
			t.Errorf("%s, with the clock corrected: %v", claim, err)
		}
	}
}

// TestAdviceOnKeys: an incomplete API key's hint and that of another kind of token where only API keys are accepted; the whole key works.
func TestAdviceOnKeys(t *testing.T) {
	keys := newKeys(t, &keyStore{}, auth.KeysConfig{})
	_, text := create(t, keys, "k", time.Time{}, "S1.WRITE")
	a := auth.New(keys, nil, nil)
	wantHint(t, authenticate(t, a, text[:len(text)-1]), "check that it was copied completely; it starts with tutti_")
	wantHint(t, authenticate(t, a, text[len("tutti_"):]), "use an API key, which starts with tutti_")
	if err := authenticate(t, a, text); err != nil {
		t.Errorf("the whole key: %v", err)
	}
	ego := newTokenServer(t, http.StatusUnauthorized, "")
	checked := ego.introspecting(t, auth.IntrospectionConfig{TokenParameter: "apiKey"})
	wantHint(t, authenticate(t, checked, apiKey), "ask for a new token or API key")
	ego.answer(http.StatusMultiStatus, egoAnswer)
	if err := authenticate(t, checked, apiKey); err != nil {
		t.Errorf("a key that the server knows: %v", err)
	}
}

// TestAdviceOnScopes: names of scopes that are ambiguous, and ones that follow the hint.
func TestAdviceOnScopes(t *testing.T) {
	for _, tc := range []struct {
		hint            string
		wrong, followed auth.Scopes
	}{
		{
			"choose suffixes where neither ends with the other",
			auth.Scopes{WriteSuffix: "x.READ"},
			auth.Scopes{WriteSuffix: ".READx"},
		},
		{
			"choose a system scope that does not start with the organizations' prefix",
			auth.Scopes{OrganizationPrefix: "study.", System: "study.admin"},
			auth.Scopes{OrganizationPrefix: "study.", System: "admin"},
		},
	} {
		_, err := auth.NewKeys(&keyStore{}, auth.KeysConfig{Scopes: tc.wrong})
		wantHint(t, err, tc.hint)
		if _, err := auth.NewKeys(&keyStore{}, auth.KeysConfig{Scopes: tc.followed}); err != nil {
			t.Errorf("%s: %v", tc.hint, err)
		}
	}
}

// TestAdviceOnJWTConfig: a configuration that is rejected, and one that follows the hint.
func TestAdviceOnJWTConfig(t *testing.T) {
	key := newSigner(t, "", jwt.SigningMethodES256).pem(t)
	valid := auth.JWTConfig{Issuer: issuer, Audience: audience, PublicKey: key}
	remote := auth.JWTConfig{Issuer: issuer, Audience: audience, JWKSURL: "https://127.0.0.1:1/keys"}
	const pem = "provide the issuer's RSA, EC or Ed25519 public key, or its certificate, as PEM"
	for _, tc := range []struct {
		name, hint string
		change     func(*auth.JWTConfig)
		followed   auth.JWTConfig
	}{
		{"no PEM", pem, func(c *auth.JWTConfig) { c.PublicKey = []byte("secret") }, valid},
		{"a damaged key", pem, func(c *auth.JWTConfig) { c.PublicKey = slices.Clone(key); c.PublicKey[40] ^= 1 }, valid},
		{"no issuer", "without them every token that the issuer signed for any service would be accepted", func(c *auth.JWTConfig) { c.Issuer = "" }, valid},
		{
			"plain http", "use https; an attacker who can impersonate the server can issue or read tokens",
			func(c *auth.JWTConfig) { c.PublicKey, c.JWKSURL = nil, "http://a.example/keys" }, remote,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := valid
			tc.change(&cfg)
			_, err := auth.NewJWT(t.Context(), cfg)
			wantHint(t, err, tc.hint)
			j, err := auth.NewJWT(t.Context(), tc.followed)
			if err != nil {
				t.Fatal(err)
			}
			j.Close()
		})
	}
}
