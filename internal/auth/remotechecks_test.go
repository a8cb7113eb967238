package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"tutti/internal/auth"
	"tutti/internal/core"
)

const (
	apiKey     = "7b0e1e0c-6c1a-4f0e-9f53-0f2f5a3f7a10"
	notChecked = "the token cannot be checked now: the authorization server is not available"
	notValid   = "the token is not valid"
)

// tokenServer answers requests about tokens, and records them.
type tokenServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request // with parsed forms
	status   int
	body     string
	// arrived is called for each request before it is answered, if it is not nil.
	arrived func()
}

func newTokenServer(t testing.TB, status int, body string) *tokenServer {
	t.Helper()
	s := &tokenServer{status: status, body: body}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1 << 20); err != nil && !errors.Is(err, http.ErrNotMultipart) {
			t.Errorf("form: %v", err)
		}
		s.mu.Lock()
		s.requests = append(s.requests, r)
		status, body, arrived := s.status, s.body, s.arrived
		s.mu.Unlock()
		if arrived != nil {
			arrived()
		}
		if status == http.StatusFound {
			w.Header().Set("Location", s.URL+"/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *tokenServer) answer(status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.body = status, body
}

func (s *tokenServer) asked() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// introspecting returns an Authenticator for opaque tokens that s checks, and for API keys.
func (s *tokenServer) introspecting(t testing.TB, cfg auth.IntrospectionConfig) *auth.Authenticator {
	t.Helper()
	cfg.URL = s.URL + "/check"
	i, err := auth.NewIntrospection(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	scopes := auth.Scopes{System: "song", OrganizationPrefix: "PROGRAMDATA-"}
	return auth.New(newKeys(t, &keyStore{}, auth.KeysConfig{Scopes: scopes}), nil, i)
}

const egoAnswer = `{"user_id":"u1","exp":3600,"scope":["PROGRAMDATA-X.WRITE"]}`

// TestEgoKey: the request is the one that Song sends, the answer is cached for 30 seconds, and a rejection counts at once after that.
func TestEgoKey(t *testing.T) {
	now := new(clock)
	ego := newTokenServer(t, http.StatusMultiStatus, egoAnswer)
	a := ego.introspecting(t, auth.IntrospectionConfig{ClientID: "song", ClientSecret: "s3cret", TokenParameter: "apiKey", Now: now.now})
	for range 3 {
		p, err := a.Authenticate(t.Context(), apiKey)
		if err != nil || p.ID != "introspection:u1" || p.Name != "u1" || !p.MayWrite("X") || p.MayWrite("Y") || p.System {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	now.advance(auth.CheckedFor - time.Nanosecond)
	if err := authenticate(t, a, apiKey); err != nil || len(ego.asked()) != 1 {
		t.Fatalf("asked %d times, %v", len(ego.asked()), err)
	}
	r := ego.asked()[0]
	user, password, _ := r.BasicAuth()
	if r.Method != http.MethodPost || user != "song" || password != "s3cret" || r.URL.String() != "/check" ||
		!strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data;") {
		t.Errorf("%s %s, user %q, %v", r.Method, r.URL, user, r.Header)
	}
	if diff := cmp.Diff(map[string][]string{"apiKey": {apiKey}}, map[string][]string(r.Form)); diff != "" {
		t.Error(diff)
	}
	ego.answer(http.StatusUnauthorized, `{"error":"Authorization is invalid"}`)
	now.advance(time.Nanosecond)
	wantError(t, authenticate(t, a, apiKey), core.CodeUnauthenticated, notValid)
	now.advance(-time.Second) // when the first answer was still cached
	wantError(t, authenticate(t, a, apiKey), core.CodeUnauthenticated, notValid)
	if n := len(ego.asked()); n != 3 {
		t.Errorf("asked %d times, want 3: rejections are not cached", n)
	}
}

// TestRFC7662: with the parameter token the request is a form.
func TestRFC7662(t *testing.T) {
	server := newTokenServer(t, http.StatusOK, `{"active":true,"scope":"a song.WRITE","exp":1,"sub":"alice","client_id":"c"}`)
	a := server.introspecting(t, auth.IntrospectionConfig{})
	p, err := a.Authenticate(t.Context(), "2YotnFZFEjr1zCsicMWpAA")
	if err != nil || p.Name != "alice" || !p.System {
		t.Errorf("%+v, %v", p, err)
	}
	r := server.asked()[0]
	if _, _, basic := r.BasicAuth(); basic || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" ||
		r.Form.Encode() != "token=2YotnFZFEjr1zCsicMWpAA" {
		t.Errorf("%v %v", r.Form, r.Header)
	}
}

// TestIntrospectionAnswers: what is not clearly accepted is rejected, and a server that does not say is asked again.
func TestIntrospectionAnswers(t *testing.T) {
	const keycloak = `{"user_id":"u1","exp":1767225600000,"revoked":false,"valid":true,"message":null,"scope":["PROGRAMDATA-X.READ"]}`
	for _, tc := range []struct {
		name    string
		status  int
		body    string
		scopes  []string
		code    core.Code
		message string
	}{
		{"Ego", 207, egoAnswer, []string{"PROGRAMDATA-X.WRITE"}, "", ""},
		{"Keycloak", 207, keycloak, []string{"PROGRAMDATA-X.READ"}, "", ""},
		{"active without scopes", 200, `{"active":true,"sub":"a"}`, nil, "", ""},
		{"no subject", 200, `{"scope":[]}`, nil, "", ""},
		{"error", 207, `{"error":"x","user_id":"u1","exp":1,"scope":["song.WRITE"]}`, nil, core.CodeUnauthenticated, notValid},
		{"expired", 207, `{"user_id":"u1","exp":0,"scope":["song.WRITE"]}`, nil, core.CodeUnauthenticated, notValid},
		{"not valid", 207, `{"user_id":"u1","exp":1,"valid":false,"scope":["song.WRITE"]}`, nil, core.CodeUnauthenticated, notValid},
		{"revoked", 207, `{"user_id":"u1","exp":1,"revoked":true,"scope":["song.WRITE"]}`, nil, core.CodeUnauthenticated, notValid},
		{"scope null", 207, `{"user_id":"u1","exp":1,"valid":true,"scope":null}`, nil, core.CodeUnauthenticated, notValid},
		{"inactive", 200, `{"active":false}`, nil, core.CodeUnauthenticated, notValid},
		{"inactive with scopes", 200, `{"active":false,"scope":"song.WRITE"}`, nil, core.CodeUnauthenticated, notValid},
		{"active in words", 200, `{"active":"true","scope":"song.WRITE"}`, nil, core.CodeUnauthenticated, notValid},
		{"active null", 200, `{"active":null,"scope":"song.WRITE"}`, nil, core.CodeUnauthenticated, notValid},
		{"nothing", 200, `{}`, nil, core.CodeUnauthenticated, notValid},
		{"400", 400, keycloak, nil, core.CodeUnauthenticated, notValid},
		{"401", 401, keycloak, nil, core.CodeUnauthenticated, notValid},
		{"403", 403, "", nil, core.CodeUnauthenticated, notValid},
		{"a wrong URL", 404, keycloak, nil, core.CodeUnavailable, notChecked},
		{"another method", 405, keycloak, nil, core.CodeUnavailable, notChecked},
		{"a redirect", 302, keycloak, nil, core.CodeUnavailable, notChecked},
		{"429", 429, keycloak, nil, core.CodeUnavailable, notChecked},
		{"500", 500, keycloak, nil, core.CodeUnavailable, notChecked},
		{"503", 503, keycloak, nil, core.CodeUnavailable, notChecked},
		{"204", 204, "", nil, core.CodeUnavailable, notChecked},
		{"202", 202, keycloak, nil, core.CodeUnavailable, notChecked},
		{"a redirect", 302, keycloak, nil, core.CodeUnavailable, notChecked},
		{"a page", 200, "<html>", nil, core.CodeUnavailable, notChecked},
		{"null", 200, "null", nil, core.CodeUnavailable, notChecked},
		{"a list", 200, `[{"active":true}]`, nil, core.CodeUnavailable, notChecked},
		{"too large", 200, `{"active":true,"x":"` + strings.Repeat("x", 1<<20) + `"}`, nil, core.CodeUnavailable, notChecked},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := newTokenServer(t, tc.status, tc.body)
			a := server.introspecting(t, auth.IntrospectionConfig{TokenParameter: "apiKey"})
			p, err := a.Authenticate(t.Context(), apiKey)
			if tc.code != "" {
				wantError(t, err, tc.code, tc.message)
				if diff := cmp.Diff(core.Principal{}, p); diff != "" {
					t.Error(diff)
				}
				server.answer(207, egoAnswer)
				if err := authenticate(t, a, apiKey); err != nil || len(server.asked()) != 2 {
					t.Errorf("the error is cached: asked %d times, %v", len(server.asked()), err)
				}
				return
			}
			if err != nil || p.ID == "introspection:" || strings.Contains(p.ID+p.Name, apiKey) {
				t.Errorf("%+v, %v", p, err)
			}
			if diff := cmp.Diff(tc.scopes, p.Scopes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestIntrospectionOutage: an accepted token is rejected with CodeUnavailable after 30 seconds, and accepted again after the outage; the
// log has one line for it, without the token and the secret.
func TestIntrospectionOutage(t *testing.T) {
	now := new(clock)
	lines := make(lineWriter, 10)
	server := newTokenServer(t, http.StatusMultiStatus, egoAnswer)
	a := server.introspecting(t, auth.IntrospectionConfig{
		ClientID: "song", ClientSecret: "s3cret", TokenParameter: "apiKey", Now: now.now, Logger: slog.New(slog.NewTextHandler(lines, nil)),
	})
	if err := authenticate(t, a, apiKey); err != nil {
		t.Fatal(err)
	}
	server.answer(http.StatusInternalServerError, apiKey)
	now.advance(auth.CheckedFor)
	for range 2 {
		err := authenticate(t, a, apiKey)
		wantError(t, err, core.CodeUnavailable, notChecked)
		if core.RetryAfterOf(err) <= 0 {
			t.Error("no time to wait")
		}
	}
	server.answer(http.StatusMultiStatus, egoAnswer)
	if err := authenticate(t, a, apiKey); err != nil {
		t.Error(err)
	}
	first, second := <-lines, <-lines
	if !strings.Contains(first, "tokens cannot be checked") || !strings.Contains(first, "status 500") || !strings.Contains(second, "can be checked again") || len(lines) > 0 {
		t.Errorf("logged: %s%s and %d more", first, second, len(lines))
	}
	if all := first + second; strings.Contains(all, apiKey) || strings.Contains(all, "s3cret") {
		t.Errorf("a secret is logged: %s", all)
	}
	server.Close()
	now.advance(auth.CheckedFor)
	wantError(t, authenticate(t, a, apiKey), core.CodeUnavailable, notChecked)
}

// TestConcurrentChecks: concurrent checks of one token are one request, which survives the caller that caused it.
func TestConcurrentChecks(t *testing.T) {
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	server := newTokenServer(t, http.StatusMultiStatus, egoAnswer)
	server.arrived = func() { arrived <- struct{}{}; <-release }
	a := server.introspecting(t, auth.IntrospectionConfig{TokenParameter: "apiKey"})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := a.Authenticate(ctx, apiKey)
		left <- err
	}()
	<-arrived
	cancel()
	wantError(t, <-left, core.CodeUnavailable, notChecked)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if err := authenticate(t, a, apiKey); err != nil {
				t.Error(err)
			}
		})
	}
	close(release)
	group.Wait()
	if n := len(server.asked()); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestConcurrentTokens: concurrent checks of two tokens are two requests, and each caller gets the answer for its own.
func TestConcurrentTokens(t *testing.T) {
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.FormValue("token")
		arrived <- struct{}{}
		<-release
		_, _ = fmt.Fprintf(w, `{"active":true,"sub":%q}`, token)
	}))
	t.Cleanup(server.Close)
	i, err := auth.NewIntrospection(auth.IntrospectionConfig{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	a := auth.New(newKeys(t, &keyStore{}, auth.KeysConfig{}), nil, i)
	ended := make(chan struct{}, 2)
	var group sync.WaitGroup
	for _, token := range []string{"token-1", "token-2"} {
		group.Go(func() {
			if p, err := a.Authenticate(t.Context(), token); err != nil || p.Name != token {
				t.Errorf("%s: %+v, %v", token, p, err)
			}
			ended <- struct{}{}
		})
		select {
		case <-arrived:
		case <-ended:
			t.Errorf("%s: not asked", token)
		}
	}
	close(release)
	group.Wait()
}

// TestChecksInFlightAreBounded: however many tokens arrive, few requests are sent at a time and a bounded number of callers waits, also
// those that have left; the others are rejected at once.
func TestChecksInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		release := make(chan struct{})
		answer := sync.OnceFunc(func() { close(release) })
		defer answer()
		i, err := auth.NewIntrospection(auth.IntrospectionConfig{URL: "https://id.example.org/check", Timeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		i.SetTransport(roundTripper(func(*http.Request) (*http.Response, error) {
			sent.Add(1)
			<-release
			return &http.Response{StatusCode: http.StatusMultiStatus, Body: io.NopCloser(strings.NewReader(egoAnswer))}, nil
		}))
		t.Cleanup(i.Close)
		a := auth.New(newKeys(t, &keyStore{}, auth.KeysConfig{}), nil, i)
		results := make(chan error, auth.MaxCallers+10)
		call := func(ctx context.Context, token string) {
			go func() {
				_, err := a.Authenticate(ctx, token)
				results <- err
			}()
		}
		ctx, leave := context.WithCancel(t.Context())
		for n := range auth.MaxCallers {
			call(ctx, fmt.Sprint("token-", n))
		}
		synctest.Wait()
		if n := sent.Load(); n != auth.MaxConnections || len(results) != 0 {
			t.Fatalf("%d requests are sent, %d callers have ended", n, len(results))
		}
		leave()
		for range auth.MaxCallers {
			wantError(t, <-results, core.CodeUnavailable, notChecked)
		}
		for n := range 10 {
			call(t.Context(), fmt.Sprint("token-", n))
		}
		synctest.Wait()
		if len(results) != 10 {
			t.Fatalf("%d of 10 callers over the limit were rejected at once", len(results))
		}
		for range 10 {
			err := <-results
			wantError(t, err, core.CodeUnavailable, notChecked)
			if core.RetryAfterOf(err) <= 0 {
				t.Error("no time to wait")
			}
		}
		answer()
		synctest.Wait()
		if n := sent.Load(); n != auth.MaxCallers {
			t.Errorf("%d requests for %d tokens", n, auth.MaxCallers)
		}
		if err := authenticate(t, a, "another"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSlowIntrospection: a server that does not answer in time is one that does not answer.
func TestSlowIntrospection(t *testing.T) {
	release := make(chan struct{})
	server := newTokenServer(t, http.StatusMultiStatus, egoAnswer)
	server.arrived = func() { <-release }
	t.Cleanup(func() { close(release) })
	a := server.introspecting(t, auth.IntrospectionConfig{Timeout: 20 * time.Millisecond})
	wantError(t, authenticate(t, a, apiKey), core.CodeUnavailable, notChecked)
}

// TestCheckedTokensAreBounded: what is cached is bounded by its size, not by the number of tokens.
func TestCheckedTokensAreBounded(t *testing.T) {
	server := newTokenServer(t, http.StatusOK, `{"active":true,"scope":"`+strings.Repeat("x", 1<<19)+`"}`)
	a := server.introspecting(t, auth.IntrospectionConfig{Now: new(clock).now})
	for i := range 9 { // of 512 KiB each
		if err := authenticate(t, a, fmt.Sprint("token-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := authenticate(t, a, "token-8"); err != nil || len(server.asked()) != 9 {
		t.Errorf("the last token: asked %d times, %v", len(server.asked()), err)
	}
	if err := authenticate(t, a, "token-0"); err != nil || len(server.asked()) != 10 {
		t.Errorf("the first token: asked %d times, %v", len(server.asked()), err)
	}
}

// TestWhoChecksAToken: tutti's own keys and, with an issuer, JSON Web Tokens are not sent to the server.
func TestWhoChecksAToken(t *testing.T) {
	s := newSigner(t, "", jwt.SigningMethodES256)
	server := newTokenServer(t, http.StatusMultiStatus, egoAnswer)
	i, err := auth.NewIntrospection(auth.IntrospectionConfig{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	both := lenientAuthenticator(t, auth.JWTConfig{PublicKey: s.pem(t)}, i)
	opaque := auth.New(newKeys(t, &keyStore{}, auth.KeysConfig{}), nil, i)
	token := s.sign(t, egoClaims("song.WRITE"), nil)
	for _, tc := range []struct {
		name, token string
		by          *auth.Authenticator
		asked       bool
	}{
		{"JWT", token, both, false},
		{"a forged JWT", token[:len(token)-4] + "AAAA", both, false},
		{"tutti's key", "tutti_0000000000000000_" + strings.Repeat("A", 43), both, false},
		{"UUID", apiKey, both, true},
		{"with dots", "a.b.c", both, true},
		{"JWT without an issuer", token, opaque, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := len(server.asked())
			_, _ = tc.by.Authenticate(t.Context(), tc.token)
			if asked := len(server.asked()) > before; asked != tc.asked {
				t.Errorf("asked %v", asked)
			}
		})
	}
}

// exchanging returns an Authenticator for tokens of s, whose permissions server grants.
func (s *tokenServer) exchanging(t *testing.T, key signer, cfg auth.JWTConfig) *auth.Authenticator {
	t.Helper()
	cfg.PublicKey, cfg.UMA = key.pem(t), auth.UMAConfig{TokenURL: s.URL + "/realms/r/protocol/openid-connect/token", ClientID: "song"}
	return lenientAuthenticator(t, cfg, nil)
}

const granted = `[{"rsid":"1","rsname":"PROGRAMDATA-X","scopes":["READ","WRITE"]},{"rsid":"2","rsname":"song"}]`

// TestPermissionsOfKeycloak: the request is the one that Song sends, its answer is cached, and only permissions are scopes.
func TestPermissionsOfKeycloak(t *testing.T) {
	now := new(clock)
	key := newSigner(t, "", jwt.SigningMethodRS256)
	server := newTokenServer(t, http.StatusOK, granted)
	a := server.exchanging(t, key, auth.JWTConfig{Now: now.now})
	token := key.sign(t, keycloakClaims(jwt.MapClaims{"scope": "openid song.WRITE"}), nil)
	for range 2 {
		p, err := a.Authenticate(t.Context(), token)
		if err != nil || p.Name != "alice" || p.System {
			t.Fatalf("%+v, %v", p, err)
		}
		if diff := cmp.Diff([]string{"PROGRAMDATA-X.READ", "PROGRAMDATA-X.WRITE"}, p.Scopes); diff != "" {
			t.Error(diff)
		}
	}
	if len(server.asked()) != 1 {
		t.Errorf("asked %d times", len(server.asked()))
	}
	r := server.asked()[0]
	want := map[string]string{
		"grant_type": "urn:ietf:params:oauth:grant-type:uma-ticket", "audience": "song", "response_mode": "permissions",
	}
	got := map[string]string{}
	for name := range maps.Keys(r.PostForm) {
		got[name] = strings.Join(r.PostForm[name], "|")
	}
	if diff := cmp.Diff(want, got); diff != "" || r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer "+token ||
		r.URL.String() != "/realms/r/protocol/openid-connect/token" {
		t.Errorf("%s %s: %s", r.Method, r.URL, diff)
	}
	server.answer(http.StatusUnauthorized, `{"error":"invalid_grant"}`)
	now.advance(auth.CheckedFor)
	wantError(t, authenticate(t, a, token), core.CodeUnauthenticated, notValid)
	now.advance(time.Hour)
	wantError(t, authenticate(t, a, token), core.CodeUnauthenticated, "the token has expired")
	if n := len(server.asked()); n != 2 {
		t.Errorf("asked %d times, an expired token too", n)
	}
}

func TestPermissionAnswers(t *testing.T) {
	key := newSigner(t, "", jwt.SigningMethodES256)
	for i, tc := range []struct {
		status  int
		body    string
		code    core.Code
		message string
	}{
		{200, `[]`, "", ""},
		{403, `{"error":"access_denied","error_description":"not_authorized"}`, "", ""},
		{403, `{"error":"other"}`, core.CodeUnauthenticated, notValid},
		{401, `{"error":"invalid_grant"}`, core.CodeUnauthenticated, notValid},
		{400, `{"error":"invalid_client"}`, core.CodeUnauthenticated, notValid},
		{404, `{"error":"Realm does not exist"}`, core.CodeUnavailable, notChecked},
		{500, granted, core.CodeUnavailable, notChecked},
		{302, granted, core.CodeUnavailable, notChecked},
		{207, granted, core.CodeUnavailable, notChecked},
		{200, `{"rsname":"song"}`, core.CodeUnavailable, notChecked},
		{200, `<html>`, core.CodeUnavailable, notChecked},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			server := newTokenServer(t, tc.status, tc.body)
			p, err := server.exchanging(t, key, auth.JWTConfig{}).Authenticate(t.Context(), key.sign(t, keycloakClaims(nil), nil))
			if tc.code != "" {
				wantError(t, err, tc.code, tc.message)
			} else if err != nil || len(p.Scopes) != 0 || p.ID == "" {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

// TestRequestingPartyToken: a token with permissions for this client is not exchanged; one for another client is, and its own
// permissions do not count.
func TestRequestingPartyToken(t *testing.T) {
	key := newSigner(t, "", jwt.SigningMethodES256)
	server := newTokenServer(t, http.StatusOK, granted)
	a := server.exchanging(t, key, auth.JWTConfig{})
	permissions := map[string]any{"permissions": []any{map[string]any{"rsname": "song", "scopes": []string{"WRITE"}}}}
	p, err := a.Authenticate(t.Context(), key.sign(t, keycloakClaims(jwt.MapClaims{"aud": "song", "authorization": permissions}), nil))
	if err != nil || !p.System || len(server.asked()) != 0 {
		t.Errorf("%+v, %v, asked %d times", p, err, len(server.asked()))
	}
	narrow := map[string]any{"permissions": []any{map[string]any{"rsname": "PROGRAMDATA-Y", "scopes": []string{"WRITE"}}}}
	p, err = a.Authenticate(t.Context(), key.sign(t, keycloakClaims(jwt.MapClaims{"aud": "song", "scope": "song.WRITE", "authorization": narrow}), nil))
	if err != nil || p.System || !p.MayWrite("Y") || len(server.asked()) != 0 {
		t.Errorf("the claim scope counts: %+v, %v, asked %d times", p, err, len(server.asked()))
	}
	p, err = a.Authenticate(t.Context(), key.sign(t, keycloakClaims(jwt.MapClaims{"aud": "other", "authorization": permissions}), nil))
	if err != nil || p.System || !p.MayWrite("X") || len(server.asked()) != 1 {
		t.Errorf("%+v, %v, asked %d times", p, err, len(server.asked()))
	}
	stranger := newSigner(t, "", jwt.SigningMethodES256)
	wantError(t, authenticate(t, a, stranger.sign(t, keycloakClaims(nil), nil)), core.CodeUnauthenticated, "the signature of the token is not valid")
	if n := len(server.asked()); n != 1 {
		t.Errorf("a forged token was sent: asked %d times", n)
	}
}

func TestRemoteConfigIsChecked(t *testing.T) {
	key := newSigner(t, "", jwt.SigningMethodES256).pem(t)
	const name, plain = "the URL of the introspection ", "is plain http on another machine"
	for address, message := range map[string]string{
		"": name + "must be an absolute http or https URL", "ego/check": name + "must be an absolute http or https URL", "http://ego/check": name + plain,
	} {
		_, err := auth.NewIntrospection(auth.IntrospectionConfig{URL: address})
		wantError(t, err, core.CodeInvalid, message)
	}
	if i, err := auth.NewIntrospection(auth.IntrospectionConfig{URL: "http://ego/check", AllowHTTP: true}); err != nil {
		t.Error(err)
	} else {
		i.Close()
	}
	for _, tc := range []struct {
		uma     auth.UMAConfig
		message string
	}{
		{auth.UMAConfig{ClientID: "c"}, "the exchange of tokens for permissions needs a URL and a client"},
		{auth.UMAConfig{TokenURL: "https://a"}, "the exchange of tokens for permissions needs a URL and a client"},
		{auth.UMAConfig{TokenURL: "http://a.example", ClientID: "c"}, "the URL of the token endpoint " + plain},
	} {
		_, err := auth.NewJWT(t.Context(), auth.JWTConfig{PublicKey: key, AnyIssuer: true, AnyAudience: true, UMA: tc.uma})
		wantError(t, err, core.CodeInvalid, tc.message)
	}
}
