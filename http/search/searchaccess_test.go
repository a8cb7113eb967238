package search_test

import (
	"slices"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// TestTokensThatAreShownToSearches: a token in the request must be valid even where none is required; a catalogue's failure is public.
func TestTokensThatAreShownToSearches(t *testing.T) {
	store := &apitest.MemoryKeyStore{}
	d := apitest.NewTokenIssuer(t, store)
	p := apitest.OfS1()
	p.Searches = &apitest.Searches{} // nothing is executed for who is refused
	h := apitest.GuardedHandler(t, p, d, api.Config{})
	const bare = "Bearer"
	for _, tc := range []struct {
		name, who, detail, say string
	}{
		{"malformed", apitest.Malformed, "the header Authorization is not a bearer token", bare},
		{"unknown", apitest.Unknown, "the token is neither an API key nor a JSON Web Token", `Bearer error="invalid_token"`},
		{"expired", apitest.Expired, "the API key has expired", `Bearer error="invalid_token"`},
	} {
		header := map[string][]string{apitest.Malformed: {"Basic eA=="}, apitest.Unknown: {"Bearer hunter2"}, apitest.Expired: d.Header(apitest.Expired)}[tc.who]
		for _, target := range []string{"/participants/graphql", "/graphql", "/graphql/tag", "/participants/download", "/download", "/no-such/graphql", "/record/graphql"} {
			t.Run(tc.name+target, func(t *testing.T) {
				got := apitest.RequestWith(t, h, "POST", target, header)
				apitest.WantProblem(t, got.Response, got.Content, 401, "unauthenticated", tc.detail)
				if c := got.Header.Get("WWW-Authenticate"); c != tc.say || got.Read {
					t.Errorf("challenge %q, want %q; body read: %t", c, tc.say, got.Read)
				}
			})
		}
	}
	t.Run("the store does not answer", func(t *testing.T) {
		store.Fault = core.NewError(core.CodeUnavailable, "the database is gone")
		t.Cleanup(func() { store.Fault = nil })
		for _, target := range []string{"/participants/graphql", "/participants/download"} {
			got := apitest.RequestWith(t, apitest.GuardedHandler(t, p, apitest.NewColdAuthenticator(t, store), api.Config{}), "POST", target, d.Header(apitest.WriteRight))
			apitest.WantProblem(t, got.Response, got.Content, 503, "unavailable", "API keys cannot be verified now")
		}
	})
	t.Run("failed", func(t *testing.T) {
		p.Catalogues.Put(apitest.Biosamples())
		for who, headers := range d.Headers {
			for kind, header := range headers {
				for _, target := range []string{"/biosamples/graphql", "/graphql", "/biosamples/download"} {
					if got := apitest.RequestWith(t, h, "POST", target, header); got.StatusCode != 404 || string(got.Content) != apitest.BiosamplesFailure {
						t.Errorf("%s, %s: %s: %d %s", who, kind, target, got.StatusCode, got.Content)
					}
				}
			}
		}
	})
}

// TestDefaultAccess: who may not read a catalogue without an access rule is refused on each of its routes, before the body is read
// and before anything is executed, in words that name the key and the file that open it.
func TestDefaultAccess(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	for _, tc := range []struct {
		access core.DefaultAccess
		may    []string
	}{
		{"", apitest.UnlessInvalid}, {core.AccessPublic, apitest.UnlessInvalid}, {core.AccessAuthenticated, apitest.AnyToken}, {core.AccessDeny, apitest.SystemOnly},
	} {
		c := apitest.Participants()
		c.DefaultAccess = tc.access
		for _, who := range apitest.UnlessInvalid {
			p := apitest.OfS1()
			if !slices.Contains(tc.may, who) {
				p.Searches = &apitest.Searches{}
			}
			p.Catalogues.Put(c)
			h := apitest.GuardedHandler(t, p, d, api.Config{})
			for _, target := range []string{
				"POST /participants/graphql", "POST /participants/graphql/tag", "GET /participants/graphql?query=%7B__typename%7D", "POST /participants/download",
				"POST /graphql", "POST /graphql/tag", "GET /graphql?query=%7B__typename%7D", "POST /download",
				"POST /participant/graphql", "POST /participant/download", // by its document type
			} {
				t.Run(string(tc.access)+" "+who+" "+target, func(t *testing.T) {
					method, path, _ := strings.Cut(target, " ")
					got := apitest.RequestWith(t, h, method, path, d.Header(who))
					if slices.Contains(tc.may, who) {
						if got.StatusCode == 401 || got.StatusCode == 403 {
							t.Errorf("refused: %d %s", got.StatusCode, got.Content)
						}
						return
					}
					status, code, detail, challenge := 403, "forbidden", `the scope "tutti.WRITE" is required`, `Bearer error="insufficient_scope", scope="tutti.WRITE"`
					if who == apitest.Anonymous {
						status, code, detail, challenge = 401, "unauthenticated", "this catalogue needs a token", "Bearer"
					}
					apitest.WantProblem(t, got.Response, got.Content, status, code, detail)
					if c := got.Header.Get("WWW-Authenticate"); c != challenge || got.Read {
						t.Errorf("challenge %q, want %q; body read: %t", c, challenge, got.Read)
					}
					hint, _ := apitest.MemberOf(t, got.Content, "hint").(string)
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
