package auth_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tutti/internal/auth"
	"tutti/internal/core"
)

const (
	notNow = "tokens cannot be verified: their issuer does not answer"
	noKey  = "the token is signed with a key that its issuer does not have"
)

func authenticate(t *testing.T, a *auth.Authenticator, token string) error {
	t.Helper()
	_, err := a.Authenticate(t.Context(), token)
	return err
}

// TestKeysRotate: a new key works at once, a withdrawn key no longer works after the next fetch, and tokens with forged keys do not
// load the issuer.
func TestKeysRotate(t *testing.T) {
	now := new(clock)
	first, second := newSigner(t, "k1", jwt.SigningMethodES256), newSigner(t, "k2", jwt.SigningMethodRS256)
	server := newKeyServer(t, first.jwk(t, nil))
	a := newAuthenticator(t, auth.JWTConfig{JWKSURL: server.URL, Now: now.now, RefreshInterval: time.Hour, MinRefreshInterval: time.Second})
	old, fresh := first.sign(t, claims(nil), nil), second.sign(t, claims(nil), nil)
	if err := authenticate(t, a, old); err != nil {
		t.Fatal(err)
	}
	server.serve(t, second.jwk(t, nil))
	wantError(t, authenticate(t, a, fresh), core.CodeUnauthenticated, noKey)
	if n := server.count(); n != 1 {
		t.Errorf("asked %d times within a second", n)
	}
	now.advance(time.Second)
	if err := authenticate(t, a, old); err != nil {
		t.Errorf("a known key: %v", err)
	}
	if err := authenticate(t, a, fresh); err != nil {
		t.Fatalf("a new key: %v", err)
	}
	wantError(t, authenticate(t, a, old), core.CodeUnauthenticated, noKey)
	for i := range 50 {
		wantError(t, authenticate(t, a, first.sign(t, claims(nil), map[string]any{"kid": fmt.Sprint(i)})), core.CodeUnauthenticated, noKey)
	}
	if n := server.count(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

// TestKeyReplacedUnderItsID: a key that takes the place of another one under its id is taken with the first token after the minimum pause, and
// tokens with forged signatures do not load the issuer.
func TestKeyReplacedUnderItsID(t *testing.T) {
	now := new(clock)
	first, second := newSigner(t, "k1", jwt.SigningMethodES256), newSigner(t, "k1", jwt.SigningMethodES256)
	forger := newSigner(t, "k1", jwt.SigningMethodES256)
	server := newKeyServer(t, first.jwk(t, nil))
	a := newAuthenticator(t, auth.JWTConfig{JWKSURL: server.URL, Now: now.now, RefreshInterval: time.Hour})
	old, fresh := first.sign(t, claims(nil), nil), second.sign(t, claims(nil), nil)
	if err := authenticate(t, a, old); err != nil {
		t.Fatal(err)
	}
	server.serve(t, second.jwk(t, nil))
	const invalid = "the signature of the token is not valid"
	wantError(t, authenticate(t, a, fresh), core.CodeUnauthenticated, invalid)
	now.advance(auth.DefaultMinRefreshInterval)
	if err := authenticate(t, a, fresh); err != nil {
		t.Fatalf("the key that took its place: %v", err)
	}
	wantError(t, authenticate(t, a, old), core.CodeUnauthenticated, invalid)
	for range 50 {
		wantError(t, authenticate(t, a, forger.sign(t, claims(nil), nil)), core.CodeUnauthenticated, invalid)
	}
	if n := server.count(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
	server.do(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	now.advance(auth.DefaultMinRefreshInterval)
	wantError(t, authenticate(t, a, old), core.CodeUnauthenticated, invalid) // not a token that could be verified later
}

// TestKeysAreFetchedPeriodically: a withdrawn key stops working although no token needs another one.
func TestKeysAreFetchedPeriodically(t *testing.T) {
	s := newSigner(t, "k1", jwt.SigningMethodES256)
	server := newKeyServer(t, s.jwk(t, nil))
	a := newAuthenticator(t, auth.JWTConfig{JWKSURL: server.URL, RefreshInterval: time.Millisecond})
	token := s.sign(t, claims(nil), nil)
	if err := authenticate(t, a, token); err != nil {
		t.Fatal(err)
	}
	fetched := make(chan struct{})
	server.do(func(w http.ResponseWriter, r *http.Request) {
		select {
		case fetched <- struct{}{}:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, `{"keys":[]}`)
	})
	<-fetched
	<-fetched // the previous response has been received
	wantError(t, authenticate(t, a, token), core.CodeUnauthenticated, noKey)
}

// TestTokensWithoutKeyID: tokens without a key id are tried with every matching key, including those that the issuer has added.
func TestTokensWithoutKeyID(t *testing.T) {
	now := new(clock)
	ec, rsa := newSigner(t, "", jwt.SigningMethodES256), newSigner(t, "", jwt.SigningMethodRS256)
	another, later := newSigner(t, "", jwt.SigningMethodES256), newSigner(t, "", jwt.SigningMethodES256)
	named := map[string]any{"kid": "k1"}
	server := newKeyServer(t, rsa.jwk(t, nil), another.jwk(t, named), ec.jwk(t, nil))
	a := newAuthenticator(t, auth.JWTConfig{JWKSURL: server.URL, Now: now.now, RefreshInterval: time.Hour, MinRefreshInterval: time.Second})
	for name, s := range map[string]signer{"ec": ec, "rsa": rsa, "a key with an id": another} {
		if err := authenticate(t, a, s.sign(t, claims(nil), nil)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := authenticate(t, a, ec.sign(t, claims(nil), map[string]any{"kid": "whatever"})); err != nil {
		t.Errorf("a key without an id: %v", err)
	}
	token := later.sign(t, claims(nil), nil)
	wantError(t, authenticate(t, a, token), core.CodeUnauthenticated, "the signature of the token is not valid")
	server.serve(t, later.jwk(t, nil))
	now.advance(time.Second)
	if err := authenticate(t, a, token); err != nil {
		t.Errorf("a key of now: %v", err)
	}
}

// TestIssuerThatDoesNotAnswer: the start succeeds, tokens cannot be verified until the issuer answers, and known keys are kept when it
// stops answering.
func TestIssuerThatDoesNotAnswer(t *testing.T) {
	s, unknown := newSigner(t, "k1", jwt.SigningMethodEdDSA), newSigner(t, "k2", jwt.SigningMethodEdDSA)
	good := newKeyServer(t, s.jwk(t, nil))
	release := make(chan struct{})
	faults := map[string]http.HandlerFunc{
		"status 500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"status 204": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"a page":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"a list":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[]") },
		"no keys":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"error":"oops"}`) },
		"cut":        func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[`) },
		"too many": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"keys":[%s1]}`, strings.Repeat("1,", 128))
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[]`)
			line := bytes.Repeat([]byte(" "), 64<<10)
			for range 32 {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		},
		"slow": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-release:
			}
		},
		"round and round": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) },
		"closed":          func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	t.Cleanup(func() { close(release) })
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			now := new(clock)
			server := newKeyServer(t)
			server.do(fault)
			a := newAuthenticator(t, auth.JWTConfig{
				JWKSURL: server.URL, Now: now.now, RefreshInterval: time.Hour, MinRefreshInterval: time.Second, Timeout: 50 * time.Millisecond,
			})
			token := s.sign(t, claims(nil), nil)
			err := authenticate(t, a, token)
			wantError(t, err, core.CodeUnavailable, notNow)
			if core.RetryAfterOf(err) != time.Second {
				t.Errorf("retry after %v", core.RetryAfterOf(err))
			}
			server.do(good.answer)
			now.advance(time.Second)
			if err := authenticate(t, a, token); err != nil {
				t.Fatalf("it answers: %v", err)
			}
			server.do(fault)
			now.advance(time.Second)
			wantError(t, authenticate(t, a, unknown.sign(t, claims(nil), nil)), core.CodeUnavailable, notNow)
			if err := authenticate(t, a, token); err != nil {
				t.Errorf("a known key: %v", err)
			}
		})
	}
}

// TestUnusableKeys: an unusable key does not affect the others and signs no token.
func TestUnusableKeys(t *testing.T) {
	s, bad := newSigner(t, "k1", jwt.SigningMethodES256), newSigner(t, "k2", jwt.SigningMethodES256)
	for name, key := range map[string]map[string]any{
		"for encryption":     bad.jwk(t, map[string]any{"use": "enc"}),
		"for other things":   bad.jwk(t, map[string]any{"key_ops": []string{"deriveKey"}}),
		"of another alg":     bad.jwk(t, map[string]any{"alg": "RS256"}),
		"a secret":           {"kty": "oct", "kid": "k2", "k": "c2VjcmV0"},
		"of an unknown type": {"kty": "PQ", "kid": "k2"},
		"off the curve":      bad.jwk(t, map[string]any{"x": "AAAA"}),
	} {
		t.Run(name, func(t *testing.T) {
			server := newKeyServer(t, key, s.jwk(t, nil))
			a := newAuthenticator(t, auth.JWTConfig{JWKSURL: server.URL})
			if err := authenticate(t, a, s.sign(t, claims(nil), nil)); err != nil {
				t.Error(err)
			}
			wantError(t, authenticate(t, a, bad.sign(t, claims(nil), nil)), core.CodeUnauthenticated, noKey)
		})
	}
}

// TestNoDowngradeToHTTP: a redirect from https to http is not followed.
func TestNoDowngradeToHTTP(t *testing.T) {
	s := newSigner(t, "k1", jwt.SigningMethodES256)
	plain := newKeyServer(t, s.jwk(t, nil))
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(secure.Close)
	client := secure.Client()
	client.CheckRedirect = auth.RejectDowngrade(true)
	a := newAuthenticator(t, auth.JWTConfig{JWKSURL: secure.URL, Client: client})
	wantError(t, authenticate(t, a, s.sign(t, claims(nil), nil)), core.CodeUnavailable, notNow)
	if n := plain.count(); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

// TestRedirectsOfTheKeySet: no key is fetched from another machine over plain http, wherever the chain starts.
func TestRedirectsOfTheKeySet(t *testing.T) {
	for _, tc := range []struct{ name, via, to, want string }{
		{"https on another machine", "https://a.example/", "https://b.example/", ""},
		{"https from this machine", "http://127.0.0.1/", "https://b.example/", ""},
		{"http on this machine", "http://localhost/", "http://[::1]:8080/", ""},
		{"http on another machine from https", "https://a.example/", "http://b.example/", "a redirect leads from https to http"},
		{"http on this machine from https", "https://a.example/", "http://127.0.0.1/", "a redirect leads from https to http"},
		{"http after https in between", "http://127.0.0.1/ https://a.example/", "http://127.0.0.1/", "a redirect leads from https to http"},
		{"http on another machine from this one", "http://127.0.0.1/", "http://b.example/", "a redirect leads to another machine without encryption"},
		{"http on another machine from http there", "http://a.example/", "http://a.example/keys", "a redirect leads to another machine without encryption"},
		{"a chain", "https://a.example/ https://a.example/ https://a.example/ https://a.example/", "https://a.example/", "too many redirects"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var via []*http.Request
			for at := range strings.FieldsSeq(tc.via) {
				via = append(via, httptest.NewRequestWithContext(t.Context(), http.MethodGet, at, nil))
			}
			got := ""
			if err := auth.RejectDowngrade(false)(httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.to, nil), via); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestKeysExpireWithoutIssuer: keys of an issuer that has not answered for a day are rejected: it may have withdrawn them.
func TestKeysExpireWithoutIssuer(t *testing.T) {
	now := new(clock)
	s := newSigner(t, "k1", jwt.SigningMethodES256)
	server := newKeyServer(t, s.jwk(t, nil))
	good := server.answer
	a := newAuthenticator(t, auth.JWTConfig{
		JWKSURL: server.URL, Now: now.now, RefreshInterval: 100 * time.Hour, MinRefreshInterval: time.Second, Leeway: 48 * time.Hour,
	})
	token := s.sign(t, claims(nil), nil)
	if err := authenticate(t, a, token); err != nil {
		t.Fatal(err)
	}
	server.do(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	now.advance(24*time.Hour - time.Second)
	if err := authenticate(t, a, token); err != nil {
		t.Errorf("within a day: %v", err)
	}
	if n := server.count(); n != 1 {
		t.Errorf("asked %d times within a day", n)
	}
	now.advance(time.Second)
	wantError(t, authenticate(t, a, token), core.CodeUnavailable, notNow)
	wantError(t, authenticate(t, a, token), core.CodeUnavailable, notNow)
	server.do(good)
	now.advance(time.Second)
	if err := authenticate(t, a, token); err != nil {
		t.Errorf("it answers again: %v", err)
	}
}

// TestWaitingForKeysEnds: waiting for keys ends with the context, and with Close.
func TestWaitingForKeysEnds(t *testing.T) {
	s := newSigner(t, "k1", jwt.SigningMethodES256)
	token := s.sign(t, claims(nil), nil)
	waiting := make(chan struct{}, 10)
	server := newKeyServer(t)
	server.do(func(_ http.ResponseWriter, r *http.Request) {
		waiting <- struct{}{}
		<-r.Context().Done()
	})
	j := newJWT(t, auth.JWTConfig{JWKSURL: server.URL, Timeout: time.Hour})
	a := auth.New(newKeys(t, &keyStore{}, auth.KeysConfig{}), j, nil)
	<-waiting
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Authenticate(ctx, token)
	wantError(t, err, core.CodeUnavailable, notNow)

	var group sync.WaitGroup
	group.Go(func() { wantError(t, authenticate(t, a, token), core.CodeUnavailable, notNow) })
	j.Close()
	group.Wait()
	j.Close()
	wantError(t, authenticate(t, a, token), core.CodeUnavailable, notNow)
}

// TestFailedFetchIsLogged: the log has the cause, without the password of the URL and without any token.
func TestFailedFetchIsLogged(t *testing.T) {
	server := newKeyServer(t)
	server.do(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	lines := make(lineWriter, 10)
	a := newAuthenticator(t, auth.JWTConfig{
		JWKSURL: strings.Replace(server.URL, "://", "://user:hunter2@", 1),
		Logger:  slog.New(slog.NewTextHandler(lines, nil)),
	})
	token := newSigner(t, "k1", jwt.SigningMethodES256).sign(t, claims(nil), nil)
	wantError(t, authenticate(t, a, token), core.CodeUnavailable, notNow)
	line := <-lines
	if !strings.Contains(line, "keys failed") || !strings.Contains(line, "it closed the connection") {
		t.Errorf("logged: %s", line)
	}
	if strings.Contains(line, "hunter2") || strings.Contains(line, token) {
		t.Errorf("a secret is logged: %s", line)
	}
}

// lineWriter sends what is written, a line at a time.
type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}
