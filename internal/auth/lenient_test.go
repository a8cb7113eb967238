package auth_test

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"tutti/internal/auth"
	"tutti/internal/core"
)

// lenientAuthenticator returns an Authenticator that accepts any issuer and audience, as Song does, and names scopes as it does.
func lenientAuthenticator(t testing.TB, cfg auth.JWTConfig, introspection *auth.Introspection) *auth.Authenticator {
	t.Helper()
	cfg.AnyIssuer, cfg.AnyAudience = true, true
	if cfg.Now == nil {
		cfg.Now = new(clock).now
	}
	j, err := auth.NewJWT(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	scopes := auth.Scopes{System: "song", OrganizationPrefix: "PROGRAMDATA-"}
	return auth.New(newKeys(t, &keyStore{}, auth.KeysConfig{Scopes: scopes}), j, introspection)
}

// egoClaims are the claims of Ego's tokens.
func egoClaims(scopes ...string) jwt.MapClaims {
	return jwt.MapClaims{
		"iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix(), "sub": "6f1a8a3c-5d1c-4f43-8f0f-6a1c7b1f0e11", "iss": "ego", "aud": []string{},
		"jti": "1", "context": map[string]any{"scope": scopes, "user": map[string]any{"name": "a@example.org", "type": "USER", "status": "APPROVED"}},
	}
}

// keycloakClaims are the claims of Keycloak's access tokens, merged with others.
func keycloakClaims(others jwt.MapClaims) jwt.MapClaims {
	c := claims(jwt.MapClaims{
		"iss": "http://keycloak:8080/realms/r", "aud": "account", "azp": "webclient", "typ": "Bearer", "scope": "openid profile email",
		"realm_access":    map[string]any{"roles": []string{"offline_access"}},
		"resource_access": map[string]any{"account": map[string]any{"roles": []string{"view-profile"}}},
	})
	maps.Copy(c, others)
	return c
}

// TestEgoToken: a token of Ego, without a key id and with an empty audience, is accepted with the PEM key that Ego serves; a rotated key
// is fetched.
func TestEgoToken(t *testing.T) {
	now := new(clock)
	ego, rotated := newSigner(t, "", jwt.SigningMethodRS256), newSigner(t, "", jwt.SigningMethodRS256)
	server := newKeyServer(t)
	serve := func(s signer) {
		server.do(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain;charset=UTF-8")
			_, _ = w.Write(s.pem(t))
		})
	}
	serve(ego)
	a := lenientAuthenticator(t, auth.JWTConfig{JWKSURL: server.URL, Now: now.now, RefreshInterval: time.Hour, MinRefreshInterval: time.Second}, nil)
	p, err := a.Authenticate(t.Context(), ego.sign(t, egoClaims("PROGRAMDATA-X.WRITE"), nil))
	if err != nil || !p.MayWrite("X") || p.MayWrite("x") || p.MayWrite("Y") || p.System {
		t.Errorf("a study's: %+v, %v", p, err)
	}
	p, err = a.Authenticate(t.Context(), ego.sign(t, egoClaims("song.WRITE"), nil))
	if err != nil || !p.System {
		t.Errorf("the system's: %+v, %v", p, err)
	}
	p, err = a.Authenticate(t.Context(), ego.sign(t, egoClaims("programdata-X.WRITE", "PROGRAMDATA-X.write", "SONG.WRITE"), nil))
	if err != nil || p.MayWrite("X") || p.System {
		t.Errorf("in another case: %+v, %v", p, err)
	}
	for name, forged := range map[string]string{
		"signed with the public key as a secret": sign(t, jwt.SigningMethodHS256, ego.pem(t), egoClaims("song.WRITE")),
		"not signed":                             sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, egoClaims("song.WRITE")),
	} {
		if err := authenticate(t, a, forged); core.CodeOf(err) != core.CodeUnauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
	serve(rotated)
	now.advance(time.Second)
	if err := authenticate(t, a, rotated.sign(t, egoClaims("song.WRITE"), map[string]any{"kid": "any"})); err != nil {
		t.Errorf("a rotated key: %v", err)
	}
	wantError(t, authenticate(t, a, ego.sign(t, egoClaims("song.WRITE"), nil)), core.CodeUnauthenticated, "the signature of the token is not valid")
}

// sign signs claims by any method.
func sign(t *testing.T, method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	t.Helper()
	text, err := jwt.NewWithClaims(method, claims).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAnyIssuerAndAudience: each leniency must be configured, and does not extend to signature and expiry.
func TestAnyIssuerAndAudience(t *testing.T) {
	s := newSigner(t, "", jwt.SigningMethodES256)
	for _, tc := range []struct {
		name                 string
		anyIssuer, anyTarget bool
		claims               jwt.MapClaims
		message              string
	}{
		{"any issuer", true, false, jwt.MapClaims{"iss": "other"}, ""},
		{"no issuer", true, false, jwt.MapClaims{"iss": nil}, ""},
		{"any issuer, another audience", true, false, jwt.MapClaims{"aud": "account"}, "the token is for another service"},
		{"any audience", false, true, jwt.MapClaims{"aud": "account"}, ""},
		{"an empty audience", false, true, jwt.MapClaims{"aud": []string{}}, ""},
		{"no audience", false, true, jwt.MapClaims{"aud": nil}, ""},
		{"any audience, another issuer", false, true, jwt.MapClaims{"iss": "other"}, "the token was issued by another issuer"},
		{"expired", true, true, jwt.MapClaims{"exp": noon.Add(-time.Hour).Unix()}, "the token has expired"},
		{"no expiry", true, true, jwt.MapClaims{"exp": nil}, "the token lacks a required claim"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := auth.JWTConfig{
				PublicKey: s.pem(t), Issuer: issuer, Audience: audience, AnyIssuer: tc.anyIssuer, AnyAudience: tc.anyTarget, Now: new(clock).now,
			}
			if tc.anyIssuer {
				cfg.Issuer = ""
			}
			if tc.anyTarget {
				cfg.Audience = ""
			}
			j, err := auth.NewJWT(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(j.Close)
			a := auth.New(newKeys(t, &keyStore{}, auth.KeysConfig{}), j, nil)
			err = authenticate(t, a, s.sign(t, claims(tc.claims), nil))
			if tc.message == "" && err != nil {
				t.Error(err)
			}
			if tc.message != "" {
				wantError(t, err, core.CodeUnauthenticated, tc.message)
			}
		})
	}
	stranger := newSigner(t, "", jwt.SigningMethodES256)
	a := lenientAuthenticator(t, auth.JWTConfig{PublicKey: s.pem(t)}, nil)
	wantError(t, authenticate(t, a, stranger.sign(t, egoClaims("song.WRITE"), nil)), core.CodeUnauthenticated, "the signature of the token is not valid")
}

// TestPermissionClaims: the permissions of a requesting party token are scopes.
func TestPermissionClaims(t *testing.T) {
	s := newSigner(t, "", jwt.SigningMethodES256)
	a := lenientAuthenticator(t, auth.JWTConfig{PublicKey: s.pem(t)}, nil)
	type m = map[string]any
	for i, tc := range []struct {
		authorization any
		want          []string
	}{
		{m{"permissions": []any{m{"rsid": "1", "rsname": "PROGRAMDATA-X", "scopes": []string{"READ", "WRITE"}}, m{"rsname": "song", "scopes": []string{"WRITE"}}}}, []string{"PROGRAMDATA-X.READ", "PROGRAMDATA-X.WRITE", "song.WRITE"}},
		{m{"permissions": []any{m{"rsname": "song"}, m{"rsname": "", "scopes": []string{"WRITE"}}, m{"scopes": []string{"song.WRITE"}}, m{"rsname": 1}, "song.WRITE", nil}}, nil},
		{m{"permissions": []any{}}, nil},
		{m{"permissions": m{"rsname": "song", "scopes": []string{"WRITE"}}}, nil},
		{"song.WRITE", nil},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			p, err := a.Authenticate(t.Context(), s.sign(t, keycloakClaims(jwt.MapClaims{"scope": "", "authorization": tc.authorization}), nil))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, p.Scopes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRoles: roles are scopes only when configured, if they have the form of one, and of this service's client.
func TestRoles(t *testing.T) {
	s := newSigner(t, "", jwt.SigningMethodES256)
	roles := func(names ...string) map[string]any { return map[string]any{"roles": names} }
	token := s.sign(t, keycloakClaims(jwt.MapClaims{
		"scope": "PROGRAMDATA-A.READ", "realm_access": roles("PROGRAMDATA-X.WRITE", "PROGRAMDATA-A.READ", "offline_access", "PROGRAMDATA-*.WRITE"),
		"resource_access": map[string]any{"tutti": roles("PROGRAMDATA-Y.READ"), "account": roles("song.WRITE")}, "aud": "tutti",
	}), nil)
	for name, tc := range map[string]struct {
		cfg  auth.JWTConfig
		want []string
	}{
		"off":                  {auth.JWTConfig{Audience: "tutti"}, []string{"PROGRAMDATA-A.READ"}},
		"on":                   {auth.JWTConfig{Audience: "tutti", Roles: true}, []string{"PROGRAMDATA-A.READ", "PROGRAMDATA-X.WRITE", "PROGRAMDATA-Y.READ"}},
		"on, without a client": {auth.JWTConfig{AnyAudience: true, Roles: true}, []string{"PROGRAMDATA-A.READ", "PROGRAMDATA-X.WRITE"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := tc.cfg
			cfg.PublicKey, cfg.AnyIssuer, cfg.Now = s.pem(t), true, new(clock).now
			j, err := auth.NewJWT(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(j.Close)
			scopes := auth.Scopes{System: "song", OrganizationPrefix: "PROGRAMDATA-"}
			p, err := auth.New(newKeys(t, &keyStore{}, auth.KeysConfig{Scopes: scopes}), j, nil).Authenticate(t.Context(), token)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, p.Scopes); diff != "" || p.System {
				t.Errorf("system %v, %s", p.System, diff)
			}
		})
	}
}
