package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
)

// TestQueryPageIsForBrowsers: only a client that prefers HTML and sends no parameters gets the page; all others get what they got without it.
func TestQueryPageIsForBrowsers(t *testing.T) {
	closed, single := newWorld(), newWorld()
	closed.catalogues.Catalogues[1].GraphQLIntrospection = false
	single.catalogues.Catalogues = single.catalogues.Catalogues[1:]
	const (
		page    = "text/html; charset=utf-8"
		problem = "application/problem+json"
		data    = "application/json; charset=utf-8"
	)
	tests := map[string]struct {
		world        *world
		path, accept string
		status       int
		contentType  string
	}{
		"a browser":                       {newWorld(), "/donors/graphql", acceptPage, 200, page},
		"by document type":                {newWorld(), "/donor/graphql", acceptPage, 200, page},
		"HTML only":                       {newWorld(), "/donors/graphql", "text/html", 200, page},
		"the only catalogue":              {single, "/graphql", acceptPage, 200, page},
		"no only catalogue":               {newWorld(), "/graphql", acceptPage, 404, problem},
		"curl":                            {newWorld(), "/donors/graphql", "*/*", 400, problem},
		"no Accept":                       {newWorld(), "/donors/graphql", "", 400, problem},
		"JSON preferred":                  {newWorld(), "/donors/graphql", "application/json, text/html;q=0.9", 400, problem},
		"JSON and HTML":                   {newWorld(), "/donors/graphql", "text/html, application/json", 400, problem},
		"a query":                         {newWorld(), "/donors/graphql?query=%7B__typename%7D", acceptPage, 200, data},
		"another parameter":               {newWorld(), "/donors/graphql?x=1", acceptPage, 400, problem},
		"no introspection":                {closed, "/donors/graphql", acceptPage, 400, problem},
		"no introspection, HTML only":     {closed, "/donors/graphql", "text/html", 406, problem},
		"a failed catalogue":              {newWorld(), "/broken/graphql", acceptPage, 404, "application/json"},
		"no catalogue":                    {newWorld(), "/none/graphql", acceptPage, 404, problem},
		"a path with the name of a query": {newWorld(), "/donors/graphql/name", acceptPage, 405, problem},
	}
	for name, tt := range tests {
		for _, base := range []string{"", "/tutti"} {
			t.Run(name+base, func(t *testing.T) {
				header := http.Header{}
				if tt.accept != "" {
					header.Set("Accept", tt.accept)
				}
				got := send(t, router(t, tt.world, api.Config{BasePath: base}), request{method: "GET", path: base + tt.path, header: header})
				if got.Code != tt.status || got.Header().Get("Content-Type") != tt.contentType {
					t.Fatalf("status %d, %s: %s", got.Code, got.Header().Get("Content-Type"), got.Body)
				}
				if tt.contentType != page {
					return
				}
				if vary := strings.Join(got.Header().Values("Vary"), ","); !strings.Contains(vary, "Accept") || !strings.Contains(vary, "Cookie") {
					t.Errorf("Vary %q", vary)
				}
				for _, says := range []string{`data-endpoint="` + base + `/console/catalogues/donors/graphql"`, "curl http://localhost" + base + "/donors/graphql"} {
					if !strings.Contains(got.Body.String(), says) {
						t.Errorf("the page lacks %s: %s", says, got.Body)
					}
				}
			})
		}
	}
}

// post sends a GraphQL operation from the page.
func post(t *testing.T, h http.Handler, path, token string, header http.Header, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	r.Header = header.Clone()
	if token != "" {
		r.AddCookie(&http.Cookie{Name: "tutti_console", Value: token})
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestQueryPageRunsAsTheCaller: the page sends queries to the console, which reads its cookie, and only from the page itself. Errors are
// problems, which the script shows.
func TestQueryPageRunsAsTheCaller(t *testing.T) {
	const path, body, accept, plain = "/console/catalogues/donors/graphql", `{"query":"{donor{hits{total}}}"}`, "application/json", "application/json"
	own := http.Header{"Accept": {accept}, "Content-Type": {plain}, "Sec-Fetch-Site": {"same-origin"}, "Origin": {"http://localhost"}}
	with := func(name, value string) http.Header {
		h := own.Clone()
		h.Set(name, value)
		return h
	}
	tests := map[string]struct {
		path, token string
		header      http.Header
		access      core.DefaultAccess
		status      int
		caller      string
	}{
		"signed in":               {path, "s1", own, core.AccessAuthenticated, 200, "writer of S1"},
		"anonymous":               {path, "", own, core.AccessPublic, 200, ""},
		"anonymous, closed":       {path, "", own, core.AccessAuthenticated, 401, "-"},
		"an expired token":        {path, "old", own, core.AccessPublic, 401, "-"},
		"another site":            {path, "s1", with("Sec-Fetch-Site", "cross-site"), core.AccessPublic, 403, "-"},
		"another origin":          {path, "s1", http.Header{"Accept": {accept}, "Content-Type": {plain}, "Origin": {"http://evil.example"}}, core.AccessPublic, 403, "-"},
		"a form":                  {path, "s1", with("Content-Type", "text/plain"), core.AccessPublic, 415, "-"},
		"no catalogue":            {"/console/catalogues/x/graphql", "s1", own, core.AccessPublic, 404, "-"},
		"a failed catalogue":      {"/console/catalogues/broken/graphql", "s1", own, core.AccessPublic, 404, "-"},
		"the API with the cookie": {"/donors/graphql", "s1", own, core.AccessAuthenticated, 401, "-"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.catalogues.Catalogues[1].DefaultAccess = tt.access
			got := post(t, router(t, w, api.Config{Authenticator: tokens{}}), tt.path, tt.token, tt.header, body)
			called := "-"
			if len(w.callers) == 1 {
				called = w.callers[0]
			}
			if got.Code != tt.status || called != tt.caller {
				t.Fatalf("status %d, called by %q: %s", got.Code, called, got.Body)
			}
			if contentType := got.Header().Get("Content-Type"); tt.status >= 400 && contentType != "application/problem+json" {
				t.Errorf("the error is %s: %s", contentType, got.Body)
			}
		})
	}
}

// TestQueryPageAccess: who may not read a catalogue gets a page that says so and leads back after signing in, with the console's cookie.
func TestQueryPageAccess(t *testing.T) {
	w := newWorld()
	w.catalogues.Catalogues[1].DefaultAccess = core.AccessAuthenticated
	h := router(t, w, api.Config{Authenticator: tokens{}, BasePath: "/tutti"})
	ask := request{method: "GET", path: "/tutti/donors/graphql", header: http.Header{"Accept": {acceptPage}}}
	for token, status := range map[string]int{"": 401, "old": 401, "none": 200} {
		ask.token = token
		got := send(t, h, ask)
		if got.Code != status || got.Header().Get("Content-Type") != "text/html; charset=utf-8" {
			t.Fatalf("%q: status %d, %s", token, got.Code, got.Body)
		}
		checkPage(t, "/tutti", got.Header(), got.Body.String())
		if status == 401 && !strings.Contains(got.Body.String(), `name="next" value="/tutti/donors/graphql"`) {
			t.Errorf("%q: the page does not lead back: %s", token, got.Body)
		}
	}
}

// TestSignInLeadsBack: the page after signing in is one of this server, whatever the form says.
func TestSignInLeadsBack(t *testing.T) {
	h := router(t, newWorld(), api.Config{Authenticator: tokens{}, BasePath: "/tutti"})
	for next, want := range map[string]string{
		"/tutti/console/jobs?state=failed": "/tutti/console/jobs?state=failed", "/tutti/donors/graphql": "/tutti/donors/graphql", "/tutti/graphql": "/tutti/graphql",
		"": "/tutti/", "/other/graphql": "/tutti/", "//evil.example/graphql": "/tutti/", "https://evil.example/tutti/graphql": "/tutti/",
		`/tutti/\evil.example/graphql`: "/tutti/%5Cevil.example/graphql", "/tutti//evil.example/graphql": "/tutti/", "/tutti/keys": "/tutti/", "/tutti/xgraphql": "/tutti/",
		"/tutti/console/sign-in": "/tutti/", "/tutti/console/sign-in/": "/tutti/", "/tutti/console/sign%2Din?x=1": "/tutti/",
		"/tutti/console/sign-in?next=%2Ftutti%2Fconsole%2Fjobs%3Fstate%3Dfailed": "/tutti/console/jobs?state=failed",
		"/tutti/console/sign-in?next=%2F%2Fevil.example%2Fgraphql":               "/tutti/", "/tutti/console/sign-in?next=%2Ftutti%2Fconsole%2Fsign-in": "/tutti/",
		"/tutti/console/sign-in?next=https:%2F%2Fevil.example%2Ftutti%2Fconsole%2Fsign-in": "/tutti/", "https://evil.example/tutti/console/sign-in?next=%2Ftutti%2Fconsole%2Fjobs": "/tutti/",
	} {
		got := send(t, h, request{method: "POST", path: "/tutti/console/sign-in", form: url.Values{"token": {"none"}, "next": {next}}})
		if got.Code != http.StatusSeeOther || got.Header().Get("Location") != want {
			t.Errorf("%q: status %d to %q, want %q", next, got.Code, got.Header().Get("Location"), want)
		}
	}
	root := router(t, newWorld(), api.Config{Authenticator: tokens{}})
	for _, next := range []string{`/\evil.example/graphql`, "//evil.example/graphql", "///evil.example/graphql"} {
		got := send(t, root, request{method: "POST", path: "/console/sign-in", form: url.Values{"token": {"none"}, "next": {next}}})
		if to := got.Header().Get("Location"); to != "/" && to != "/%5Cevil.example/graphql" {
			t.Errorf("%q leads to %q", next, to)
		}
	}
}
