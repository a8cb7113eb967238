package http_test

import (
	"slices"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
)

// TestTokensThatAreShownToSearches: a token in the request must be valid even where none is required; a catalogue's failure is public.
func TestTokensThatAreShownToSearches(t *testing.T) {
	store := &memoryKeyStore{}
	d := newTokenIssuer(t, store)
	p := ofS1()
	p.searches = &searches{} // nothing is executed for who is refused
	h := guardedHandler(t, p, d, api.Config{})
	const bare = "Bearer"
	for _, tc := range []struct {
		name, who, detail, say string
	}{
		{"malformed", malformed, "the header Authorization is not a bearer token", bare},
		{"unknown", unknown, "the token is neither an API key nor a JSON Web Token", `Bearer error="invalid_token"`},
		{"expired", expired, "the API key has expired", `Bearer error="invalid_token"`},
	} {
		header := map[string][]string{malformed: {"Basic eA=="}, unknown: {"Bearer hunter2"}, expired: d.header(expired)}[tc.who]
		for _, target := range []string{"/participants/graphql", "/graphql", "/graphql/tag", "/participants/download", "/download", "/no-such/graphql", "/record/graphql"} {
			t.Run(tc.name+target, func(t *testing.T) {
				got := requestWith(t, h, "POST", target, header)
				wantProblem(t, got.Response, got.body, 401, "unauthenticated", tc.detail)
				if c := got.Header.Get("WWW-Authenticate"); c != tc.say || got.read {
					t.Errorf("challenge %q, want %q; body read: %t", c, tc.say, got.read)
				}
			})
		}
	}
	t.Run("the store does not answer", func(t *testing.T) {
		store.fault = core.NewError(core.CodeUnavailable, "the database is gone")
		t.Cleanup(func() { store.fault = nil })
		for _, target := range []string{"/participants/graphql", "/participants/download"} {
			got := requestWith(t, guardedHandler(t, p, newColdAuthenticator(t, store), api.Config{}), "POST", target, d.header(writeRight))
			wantProblem(t, got.Response, got.body, 503, "unavailable", "API keys cannot be verified now")
		}
	})
	t.Run("failed", func(t *testing.T) {
		p.catalogues.put(biosamples())
		for who, headers := range d.headers {
			for kind, header := range headers {
				for _, target := range []string{"/biosamples/graphql", "/graphql", "/biosamples/download"} {
					if got := requestWith(t, h, "POST", target, header); got.StatusCode != 404 || string(got.body) != biosamplesFailure {
						t.Errorf("%s, %s: %s: %d %s", who, kind, target, got.StatusCode, got.body)
					}
				}
			}
		}
	})
}

// TestDefaultAccess: who may not read a catalogue without an access rule is refused on each of its routes, before the body is read
// and before anything is executed, in words that name the key and the file that open it.
func TestDefaultAccess(t *testing.T) {
	d := newTokenIssuer(t, &memoryKeyStore{})
	for _, tc := range []struct {
		access core.DefaultAccess
		may    []string
	}{
		{"", unlessInvalid}, {core.AccessPublic, unlessInvalid}, {core.AccessAuthenticated, anyToken}, {core.AccessDeny, systemOnly},
	} {
		c := participants()
		c.DefaultAccess = tc.access
		for _, who := range unlessInvalid {
			p := ofS1()
			if !slices.Contains(tc.may, who) {
				p.searches = &searches{}
			}
			p.catalogues.put(c)
			h := guardedHandler(t, p, d, api.Config{})
			for _, target := range []string{
				"POST /participants/graphql", "POST /participants/graphql/tag", "GET /participants/graphql?query=%7B__typename%7D", "POST /participants/download",
				"POST /graphql", "POST /graphql/tag", "GET /graphql?query=%7B__typename%7D", "POST /download",
				"POST /participant/graphql", "POST /participant/download", // by its document type
			} {
				t.Run(string(tc.access)+" "+who+" "+target, func(t *testing.T) {
					method, path, _ := strings.Cut(target, " ")
					got := requestWith(t, h, method, path, d.header(who))
					if slices.Contains(tc.may, who) {
						if got.StatusCode == 401 || got.StatusCode == 403 {
							t.Errorf("refused: %d %s", got.StatusCode, got.body)
						}
						return
					}
					status, code, detail, challenge := 403, "forbidden", `the scope "tutti.WRITE" is required`, `Bearer error="insufficient_scope", scope="tutti.WRITE"`
					if who == nobody {
						status, code, detail, challenge = 401, "unauthenticated", "this catalogue needs a token", "Bearer"
					}
					wantProblem(t, got.Response, got.body, status, code, detail)
					if c := got.Header.Get("WWW-Authenticate"); c != challenge || got.read {
						t.Errorf("challenge %q, want %q; body read: %t", c, challenge, got.read)
					}
					hint, _ := memberOf(t, got.body, "hint").(string)
					for _, says := range []string{"access.json", "auth.defaultAccess", string(tc.access)} {
						if !strings.Contains(hint, says) {
							t.Errorf("hint %q does not name %s", hint, says)
						}
					}
				})
			}
		}
	}
}
