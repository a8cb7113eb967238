package api_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
	"tutti/internal/tools/fakes"
)

// Who may use a route, as CONTRACT section 6 has it.
var (
	everybody = []string{apitest.Anonymous, apitest.Malformed, apitest.Unknown, apitest.Expired, apitest.ForeignRight, apitest.ReadRight, apitest.WriteRight, apitest.SystemRight}

	writers = []string{apitest.WriteRight, apitest.SystemRight}
)

// routeAccess says for every route who may use it. The organization of a path is S1; a route that hides what a caller may not
// see answers 404 to the other tokens.
func routeAccess() map[api.Route]struct {
	may   []string
	hides bool
} {
	type admission = struct {
		may   []string
		hides bool
	}
	const record = "/index/repository/{repositoryCode}/organization/{organization}/id/{id}"
	const analysis = "/studies/{study}/analysis"
	return map[api.Route]admission{
		{Method: "GET", Pattern: "/ping"}:             {may: everybody},
		{Method: "GET", Pattern: "/ready"}:            {may: everybody},
		{Method: "GET", Pattern: "/metrics"}:          {may: everybody},
		{Method: "GET", Pattern: "/openapi.json"}:     {may: everybody},
		{Method: "GET", Pattern: "/api-docs"}:         {may: everybody},
		{Method: "GET", Pattern: "/api-docs/{asset}"}: {may: everybody},
		{Method: "GET", Pattern: "/health"}:           {may: everybody},
		{Method: "GET", Pattern: "/isAlive"}:          {may: everybody},
		{Method: "GET", Pattern: "/service-info"}:     {may: everybody},

		{Method: "GET", Pattern: record}:    {may: writers},
		{Method: "POST", Pattern: record}:   {may: writers},
		{Method: "DELETE", Pattern: record}: {may: writers},
		{Method: "POST", Pattern: "/index/repository/{repositoryCode}/organization/{organization}"}:     {may: writers},
		{Method: "POST", Pattern: "/index/repository/{repositoryCode}"}:                                 {may: apitest.SystemOnly},
		{Method: "POST", Pattern: "/index/repository/{repositoryCode}/organization/{organization}/ids"}: {may: writers},
		{Method: "POST", Pattern: "/index/repository/{repositoryCode}/ids"}:                             {may: apitest.SystemOnly},
		{Method: "POST", Pattern: "/index/repository/{repositoryCode}/rollback"}:                        {may: apitest.SystemOnly},
		{Method: "DELETE", Pattern: "/index/repository/{repositoryCode}/previous"}:                      {may: apitest.SystemOnly},
		{Method: "GET", Pattern: "/index/repository/{repositoryCode}/mapping"}:                          {may: apitest.SystemOnly},

		{Method: "GET", Pattern: "/repositories"}:     {may: apitest.AnyToken},
		{Method: "GET", Pattern: "/jobs"}:             {may: apitest.AnyToken},
		{Method: "GET", Pattern: "/jobs/{id}"}:        {may: writers, hides: true},
		{Method: "DELETE", Pattern: "/jobs/{id}"}:     {may: writers, hides: true},
		{Method: "GET", Pattern: "/jobs/{id}/events"}: {may: writers, hides: true},
		{Method: "GET", Pattern: "/jobs/{id}/ids"}:    {may: writers, hides: true},

		{Method: "GET", Pattern: "/jobs/{id}/organizations"}: {may: writers, hides: true},

		{Method: "GET", Pattern: "/dead-letters"}:             {may: apitest.AnyToken},
		{Method: "GET", Pattern: "/dead-letters/{id}"}:        {may: writers, hides: true},
		{Method: "POST", Pattern: "/dead-letters/{id}/retry"}: {may: writers, hides: true},
		{Method: "DELETE", Pattern: "/dead-letters/{id}"}:     {may: apitest.SystemOnly},
		{Method: "POST", Pattern: "/dead-letters/retry"}:      {may: apitest.SystemOnly},

		{Method: "POST", Pattern: "/notifications/{repositoryCode}"}: {may: apitest.SystemOnly},

		{Method: "GET", Pattern: "/schemas"}:                           {may: apitest.AnyToken},
		{Method: "GET", Pattern: "/schemas/registration"}:              {may: apitest.AnyToken},
		{Method: "GET", Pattern: "/schemas/{name}"}:                    {may: apitest.AnyToken},
		{Method: "GET", Pattern: "/schemas/{name}/versions/{version}"}: {may: apitest.AnyToken},
		{Method: "POST", Pattern: "/schemas"}:                          {may: apitest.SystemOnly},

		{Method: "GET", Pattern: "/studies/all"}:             {may: apitest.AnyToken},
		{Method: "GET", Pattern: "/studies/{study}"}:         {may: apitest.AnyToken},
		{Method: "POST", Pattern: "/studies/{study}"}:        {may: apitest.SystemOnly},
		{Method: "GET", Pattern: analysis}:                   {may: apitest.AnyToken},
		{Method: "GET", Pattern: analysis + "/paginated"}:    {may: apitest.AnyToken},
		{Method: "GET", Pattern: analysis + "/{id}"}:         {may: apitest.UnlessInvalid},
		{Method: "GET", Pattern: analysis + "/{id}/files"}:   {may: apitest.AnyToken},
		{Method: "POST", Pattern: "/submit/{study}"}:         {may: writers},
		{Method: "PUT", Pattern: analysis + "/{id}"}:         {may: writers},
		{Method: "PATCH", Pattern: analysis + "/{id}"}:       {may: writers},
		{Method: "PUT", Pattern: analysis + "/publish/{id}"}: {may: writers}, {Method: "PUT", Pattern: analysis + "/unpublish/{id}"}: {may: writers},
		{Method: "PUT", Pattern: analysis + "/suppress/{id}"}: {may: writers},

		{Method: "GET", Pattern: analysis + "/search/id"}:          {may: apitest.AnyToken},
		{Method: "GET", Pattern: "/studies/{study}/files/{id}"}:    {may: apitest.AnyToken},
		{Method: "PUT", Pattern: "/studies/{study}/files/{id}"}:    {may: writers},
		{Method: "DELETE", Pattern: "/studies/{study}/files/{id}"}: {may: writers},
		{Method: "GET", Pattern: "/entities"}:                      {may: everybody},
		{Method: "GET", Pattern: "/entities/{id}"}:                 {may: everybody},
		{Method: "GET", Pattern: "/export/studies/{study}"}:        {may: []string{apitest.ReadRight, apitest.WriteRight, apitest.SystemRight}},
		{Method: "GET", Pattern: "/export/analysis/{ids}"}:         {may: apitest.AnyToken},
		{Method: "GET", Pattern: "/v2/api-docs"}:                   {may: everybody},

		{Method: "GET", Pattern: "/.well-known/oauth-protected-resource"}:     {may: everybody},
		{Method: "GET", Pattern: "/.well-known/oauth-protected-resource/mcp"}: {may: everybody},
		{Method: "POST", Pattern: "/mcp"}:                                     {may: apitest.UnlessInvalid},
		{Method: "GET", Pattern: "/introspection"}:                            {may: everybody},
		{Method: "GET", Pattern: "/introspection/fields"}:                     {may: everybody},
		{Method: "GET", Pattern: "/introspection/sqon"}:                       {may: everybody},
		{Method: "GET", Pattern: "/introspection/{catalogueId}"}:              {may: everybody},
		{Method: "GET", Pattern: "/introspection/"}:                           {may: everybody},
		{Method: "GET", Pattern: "/{catalogueId}/introspection"}:              {may: everybody},

		{Method: "GET", Pattern: "/{catalogueId}/graphql"}:        {may: apitest.UnlessInvalid},
		{Method: "POST", Pattern: "/{catalogueId}/graphql"}:       {may: apitest.UnlessInvalid},
		{Method: "POST", Pattern: "/{catalogueId}/graphql/{tag}"}: {may: apitest.UnlessInvalid},
		{Method: "GET", Pattern: "/graphql"}:                      {may: apitest.UnlessInvalid},
		{Method: "POST", Pattern: "/graphql"}:                     {may: apitest.UnlessInvalid},
		{Method: "POST", Pattern: "/graphql/{tag}"}:               {may: apitest.UnlessInvalid},
		{Method: "POST", Pattern: "/{catalogueId}/download"}:      {may: apitest.UnlessInvalid},
		{Method: "POST", Pattern: "/download"}:                    {may: apitest.UnlessInvalid},

		{Method: "GET", Pattern: "/backup"}:       {may: apitest.SystemOnly},
		{Method: "GET", Pattern: "/keys"}:         {may: apitest.SystemOnly},
		{Method: "POST", Pattern: "/keys"}:        {may: apitest.SystemOnly},
		{Method: "DELETE", Pattern: "/keys/{id}"}: {may: apitest.SystemOnly},
	}
}

// filled fills a pattern.
func filled(pattern string) string {
	return strings.NewReplacer("{repositoryCode}", "song.ca", "{organization}", "S1", "{study}", "S1", "{id}", "x1", "{ids}", "x1,x2",
		"{asset}", "page.css", "{name}", "variant_call", "{version}", "1",
		"{catalogueId}", "participants", "{tag}", "Arranger-Table").Replace(pattern)
}

// TestEveryRouteAsksForWhatItNeeds asks every route as everybody. Who is refused is refused before the body is read and
// before anything is looked for.
func TestEveryRouteAsksForWhatItNeeds(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	open, shut := apitest.GuardedHandler(t, apitest.OfS1(), d, api.Config{}), apitest.GuardedHandler(t, apitest.Silent(), d, api.Config{})
	expected := routeAccess()
	routes := open.Routes()
	if len(routes) != len(expected) {
		t.Errorf("%d routes, %d are expected", len(routes), len(expected))
	}
	for _, route := range routes {
		admission, known := expected[route]
		if !known {
			t.Errorf("nothing says who may use %v", route)
			continue
		}
		methods := []string{route.Method}
		if route.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		for _, method := range methods {
			t.Run(method+" "+route.Pattern, func(t *testing.T) {
				for who, headers := range d.Headers {
					for kind, header := range headers {
						name := who + ", " + kind
						if slices.Contains(admission.may, who) {
							wantAdmitted(t, name, apitest.RequestWith(t, open, method, filled(route.Pattern), header))
						} else if admission.hides && slices.Contains(apitest.AnyToken, who) {
							if got := apitest.RequestWith(t, open, method, filled(route.Pattern), header); got.StatusCode != http.StatusNotFound {
								t.Errorf("%s: status %d, want 404", name, got.StatusCode)
							}
						} else {
							wantRefused(t, name, who, method, apitest.RequestWith(t, shut, method, filled(route.Pattern), header))
						}
					}
				}
			})
		}
	}
}

// wantAdmitted: what a handler makes of the request is not looked at, only that it has got to one and found what it names.
func wantAdmitted(t *testing.T, name string, got apitest.AccessAnswer) {
	t.Helper()
	switch got.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusInternalServerError:
		t.Errorf("%s: refused: %d %s", name, got.StatusCode, got.Content)
	}
	if c := got.Header.Get("WWW-Authenticate"); c != "" {
		t.Errorf("%s: challenge %q", name, c)
	}
}

func wantRefused(t *testing.T, name, who, method string, got apitest.AccessAnswer) {
	t.Helper()
	if got.Read {
		t.Errorf("%s: the body was read", name)
	}
	status, code, challenge := http.StatusForbidden, "forbidden", `Bearer error="insufficient_scope", scope="`
	switch who {
	case apitest.Anonymous, apitest.Malformed:
		status, code, challenge = http.StatusUnauthorized, "unauthenticated", "Bearer"
	case apitest.Unknown, apitest.Expired:
		status, code, challenge = http.StatusUnauthorized, "unauthenticated", `Bearer error="invalid_token"`
	}
	c := got.Header.Get("WWW-Authenticate")
	if c != challenge && (status != http.StatusForbidden || !strings.HasPrefix(c, challenge)) {
		t.Errorf("%s: challenge %q, want %q", name, c, challenge)
	}
	if method == http.MethodHead && len(got.Content) == 0 {
		if got.StatusCode != status {
			t.Errorf("%s: status %d, want %d", name, got.StatusCode, status)
		}
		return
	}
	apitest.WantProblem(t, got.Response, got.Content, status, code, "")
}

// TestRefusalsSayWhatIsMissing and no more.
func TestRefusalsSayWhatIsMissing(t *testing.T) {
	store := &apitest.MemoryKeyStore{}
	d := apitest.NewTokenIssuer(t, store)
	h := apitest.GuardedHandler(t, apitest.Silent(), d, api.Config{})
	const organization = "/index/repository/song.ca/organization/"
	for _, tc := range []struct {
		name, method, target    string
		header                  []string
		status                  int
		code, detail, hint, say string
	}{
		{
			"anonymous", "GET", "/jobs", nil, 401, "unauthenticated", "a token is required",
			"send the header Authorization: Bearer <API key or JWT>", "Bearer",
		},
		{
			"malformed", "GET", "/jobs",
			[]string{"Basic eA=="},
			401, "unauthenticated", "the header Authorization is not a bearer token",
			"send it once, as Bearer, a space and an API key or JWT", "Bearer",
		},
		{
			"unknown", "GET", "/jobs",
			[]string{"Bearer hunter2"},
			401, "unauthenticated", "the token is neither an API key nor a JSON Web Token",
			"", `Bearer error="invalid_token"`,
		},
		{
			"expired", "GET", "/jobs", d.Header(apitest.Expired), 401, "unauthenticated", "the API key has expired",
			"ask for a new one", `Bearer error="invalid_token"`,
		},
		{
			"in the query", "GET", "/jobs?access_token=" + strings.TrimPrefix(d.Header(apitest.SystemRight)[0], "Bearer "), nil, 401, "unauthenticated",
			"a token is required", "send the header Authorization: Bearer <API key or JWT>", "Bearer",
		},
		{
			"another organization", "POST", organization + "S1", d.Header(apitest.ForeignRight), 403, "forbidden", `the scope "S1.WRITE" is required`,
			"use a token with this scope, or with tutti.WRITE", `Bearer error="insufficient_scope", scope="S1.WRITE"`,
		},
		{
			"the system", "POST", "/index/repository/no-such", d.Header(apitest.WriteRight), 403, "forbidden", `the scope "tutti.WRITE" is required`,
			"use a token with this scope", `Bearer error="insufficient_scope", scope="tutti.WRITE"`,
		},
		{
			"a name that does not fit the header", "POST", organization + "S%22%C3%A4", d.Header(apitest.WriteRight), 403, "forbidden",
			"the scope \"S\\\"ä.WRITE\" is required", "use a token with this scope, or with tutti.WRITE", `Bearer error="insufficient_scope"`,
		},
		{
			"a part of the name", "POST", organization + "S1%2FS2", d.Header(apitest.WriteRight), 403, "forbidden", `the scope "S1/S2.WRITE" is required`,
			"use a token with this scope, or with tutti.WRITE", `Bearer error="insufficient_scope", scope="S1/S2.WRITE"`,
		},
		{"a name that is none, anonymous", "POST", organization + "%01", nil, 401, "unauthenticated", "a token is required", "send the header Authorization: Bearer <API key or JWT>", "Bearer"},
		{"a name that is none", "POST", organization + "%01", d.Header(apitest.WriteRight), 400, "invalid", "organization contains a control character", "", ""},
		{
			"force", "POST", organization + "S1?force=true", d.Header(apitest.WriteRight), 403, "forbidden", `the scope "tutti.WRITE" is required`,
			"use a token with this scope", `Bearer error="insufficient_scope", scope="tutti.WRITE"`,
		},
		{"an unknown path", "GET", "/no-such", nil, 404, "not_found", "no resource has this path", "all paths are in /openapi.json", ""},
		{"an unknown method", "PUT", "/jobs", nil, 405, "method_not_allowed", "this path does not support this method", "use GET, HEAD", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := apitest.RequestWith(t, h, tc.method, tc.target, tc.header)
			p := apitest.WantProblem(t, got.Response, got.Content, tc.status, tc.code, tc.detail)
			if p.Detail != tc.detail || p.Hint != tc.hint {
				t.Errorf("got %q, %q", p.Detail, p.Hint)
			}
			if c := got.Header.Get("WWW-Authenticate"); c != tc.say {
				t.Errorf("challenge %q, want %q", c, tc.say)
			}
		})
	}
	t.Run("the store does not answer", func(t *testing.T) {
		store.Fault = core.NewError(core.CodeUnavailable, "the database is gone")
		got := apitest.RequestWith(t, apitest.GuardedHandler(t, apitest.Silent(), apitest.NewColdAuthenticator(t, store), api.Config{}), "GET", "/jobs", d.Header(apitest.WriteRight))
		p := apitest.WantProblem(t, got.Response, got.Content, 503, "unavailable", "API keys cannot be verified now")
		if got.Header.Get("Retry-After") == "" || got.Header.Get("WWW-Authenticate") != "" || p.Hint != "" {
			t.Errorf("headers %v, hint %q", got.Header, p.Hint)
		}
	})
}

// TestForceIsTheSystems also where the organization's own writer may index.
func TestForceIsTheSystems(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	h := apitest.GuardedHandler(t, apitest.OfS1(), d, api.Config{})
	const target = "/index/repository/song.ca/organization/S1?force="
	for who, want := range map[string]map[string]int{
		apitest.WriteRight: {"true": 403, "false": 202}, apitest.SystemRight: {"true": 202, "false": 202},
	} {
		for force, status := range want {
			if got := apitest.RequestWith(t, h, "POST", target+force, d.Header(who)); got.StatusCode != status {
				t.Errorf("%s, force=%s: %d, want %d", who, force, got.StatusCode, status)
			}
		}
	}
}

// TestNotificationsAreSignedOrTheSystems: where a signature is asked for it decides, whatever token is shown.
func TestNotificationsAreSignedOrTheSystems(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	p := apitest.OfS1()
	p.NotifyFn = func(_ string, _ []byte, signature, _ string) (core.NotificationResult, error) {
		if signature == "" {
			return core.NotificationResult{}, core.NewError(core.CodeUnauthenticated, "the signature is missing")
		}
		return core.NotificationResult{Accepted: 1}, nil
	}
	h := apitest.GuardedHandler(t, p, d, api.Config{})
	for _, who := range []string{apitest.Anonymous, apitest.WriteRight, apitest.SystemRight} {
		t.Run(who, func(t *testing.T) {
			got := apitest.RequestWith(t, h, "POST", "/notifications/"+fakes.SignedRepository, d.Header(who))
			apitest.WantProblem(t, got.Response, got.Content, 401, "unauthenticated", "the signature is missing")
		})
	}
	t.Run("signed", func(t *testing.T) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/notifications/"+fakes.SignedRepository, strings.NewReader("{}"))
		r.Header.Set("X-Signature-256", "sha256=00")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusAccepted {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
	t.Run("unknown repository, anonymous", func(t *testing.T) {
		got := apitest.RequestWith(t, h, "POST", "/notifications/%2e%2e", nil)
		apitest.WantProblem(t, got.Response, got.Content, 401, "unauthenticated", "a token is required")
	})
}

// TestLogNamesTheCaller and holds no token.
func TestLogNamesTheCaller(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	for _, tc := range []struct{ name, method, target, who, want string }{
		{"admitted", "GET", "/jobs", apitest.WriteRight, "principal=writer"},
		{"forbidden", "POST", "/keys", apitest.WriteRight, "principal=writer"},
		{"open", "GET", "/isAlive", apitest.WriteRight, ""},
		{"unknown", "GET", "/jobs", apitest.Unknown, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			h := apitest.GuardedHandler(t, apitest.OfS1(), d, api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			apitest.RequestWith(t, h, tc.method, tc.target, d.Header(tc.who))
			line := log.String()
			if strings.Contains(line, "principal=") != (tc.want != "") || !strings.Contains(line, tc.want) {
				t.Errorf("logged: %s", line)
			}
			token := strings.TrimPrefix(d.Header(tc.who)[0], "Bearer ")
			if strings.Contains(line, token) || strings.Contains(line, token[len(token)-20:]) {
				t.Errorf("the token is logged: %s", line)
			}
		})
	}
}

// TestNobodyIsAskedWithoutAuthenticator: auth.mode none.
func TestNobodyIsAskedWithoutAuthenticator(t *testing.T) {
	h := apitest.NewHandler(t, apitest.OfS1(), api.Config{})
	for route := range routeAccess() {
		got := apitest.RequestWith(t, h, route.Method, filled(route.Pattern), []string{"Bearer hunter2"})
		wantAdmitted(t, route.Method+" "+route.Pattern, got)
	}
	if got := apitest.RequestWith(t, h, "POST", "/index/repository/song.ca/organization/S1?force=true", nil); got.StatusCode != 202 {
		t.Errorf("force: %d", got.StatusCode)
	}
}
