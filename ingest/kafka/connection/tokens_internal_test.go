package connection

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

// server is a token endpoint in process.
type server struct {
	url    string // "" for that of the endpoint
	status int
	body   string // %d is the number of the token
	err    error
	given  int
	asked  []string // authorization and form
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	form, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	s.asked = append(s.asked, req.Header.Get("Authorization")+" "+string(form))
	if s.err != nil {
		return nil, s.err
	}
	body := s.body
	if strings.Contains(body, "%d") {
		s.given++
		body = fmt.Sprintf(body, s.given)
	}
	return &http.Response{StatusCode: s.status, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil
}

func tokensOf(t *testing.T, s *server) *tokens {
	t.Helper()
	source, err := newTokens(OAuth{
		TokenURL: cmp.Or(s.url, "https://idp.example/token"), ClientID: "a:b", ClientSecret: func() (string, error) { return "s+t", nil }, Scope: "read write",
		TLS: tlsconfig.Files{Key: "k.oauth"},
	})
	if err != nil {
		t.Fatal(err)
	}
	source.client.Transport = s
	return source
}

// TestTokens: a token is used for several connections and renewed before its end; while the server fails, it is used until it ends; one that
// the brokers refuse is not used again.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{status: http.StatusOK, body: `{"access_token":"t%d","expires_in":"100"}`}
		source := tokensOf(t, s)
		want := func(want string) {
			t.Helper()
			got, err := source.token(t.Context())
			if err != nil {
				got = core.MessageOf(err)
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		want("t1")
		time.Sleep(74 * time.Second)
		want("t1")
		time.Sleep(2 * time.Second)
		want("t2")
		s.err = io.ErrUnexpectedEOF
		time.Sleep(80 * time.Second)
		want("t2")
		time.Sleep(21 * time.Second)
		want("the server of k.oauth.tokenUrl does not answer: it closed the connection")
		s.err = nil
		want("t3")
		source.refused()
		want("t4")
		s.body = `{"access_token":"t%d"}` // without a life it is used once
		source.refused()
		want("t5")
		want("t6")
		const asked = "Basic YSUzQWI6cyUyQnQ= grant_type=client_credentials&scope=read+write" // a%3Ab:s%2Bt
		if s.asked[0] != asked {
			t.Errorf("asked with %q, want %q", s.asked[0], asked)
		}
	})
}

// TestTokenFailures: each failure of the server names the key to change, and shows nothing of its response.
func TestTokenFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		server        server
		message, hint string
	}{
		"client":     {server{status: 401, body: `{"error":"invalid_client","error_description":"body"}`}, "refuses the client", "check k.oauth.clientId and k.oauth.clientSecret"},
		"client 400": {server{status: 400, body: `{"error":"invalid_client"}`}, "refuses the client", "check k.oauth.clientId and k.oauth.clientSecret"},
		"scope":      {server{status: 400, body: `{"error":"invalid_scope"}`}, "refuses the scope", "check k.oauth.scope"},
		"page":       {server{status: 404, body: `<html>body`}, "answered with status 404", "check that it is the URL of a token endpoint, and its log"},
		"no token":   {server{status: 200, body: `{"body":1}`}, "answered without a token", "check that it is the URL of a token endpoint"},
		"not JSON":   {server{status: 200, body: `body`}, "answered without a token", "check that it is the URL of a token endpoint"},
		"redirect":   {server{status: 302, body: ``}, "answered with status 302", "check that it is the URL of a token endpoint, and its log"},
		"no URL":     {server{url: ":"}, "is not a URL", "such as https://idp.example.org/token"},
		"no answer":  {server{err: io.EOF}, "does not answer: it closed the connection", "check its log, and the log of a proxy in front of it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tokensOf(t, &tt.server).token(t.Context())
			if core.MessageOf(err) != "the server of k.oauth.tokenUrl "+tt.message || core.HintOf(err) != tt.hint || core.CodeOf(err) != core.CodeUnavailable {
				t.Errorf("got %q, %q", core.MessageOf(err), core.HintOf(err))
			}
			for _, secret := range []string{"body", "idp.example", "s+t"} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%q is shown: %v", secret, err)
				}
			}
		})
	}
	source := tokensOf(t, &server{})
	source.cfg.ClientSecret = func() (string, error) { return "", core.NewError(core.CodeUnavailable, "no file") }
	if _, err := source.token(t.Context()); core.MessageOf(err) != "no file" {
		t.Errorf("got %v", err)
	}
	if _, err := New(Config{Key: "k", Brokers: []string{"b:1"}, SASL: SASL{Mechanism: "GSSAPI"}}); core.CodeOf(err) != core.CodeInvalid {
		t.Errorf("an unknown mechanism: %v", err)
	}
	if _, err := New(Config{Key: "k", Brokers: []string{"b:1"}, SASL: SASL{Mechanism: Plain}}); core.MessageOf(err) != "k.sasl needs a username and a password" {
		t.Errorf("no password: %v", err)
	}
	var failed *core.Error
	if _, err := New(Config{Key: "k", Brokers: []string{"b:1"}, TLS: &tlsconfig.Files{Key: "k", CAFile: "/none"}}); !errors.As(err, &failed) || !strings.HasPrefix(failed.Message, "k.caFile: /none cannot be read") {
		t.Errorf("no file: %v", err)
	}
}
