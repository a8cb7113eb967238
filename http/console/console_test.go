package console_test

import (
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/http/system"
	"tutti/internal/core"
)

// inline matches what the policy forbids: scripts, styles and handlers in the page itself.
var inline = regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?:[^>]*)>[^<]|javascript:`)

// attribute matches the attributes that checkPage looks at.
var attribute = regexp.MustCompile(`\s(id|href|src|action|hx-get|sse-connect)="([^"]*)"`)

// TestPages: every page is shown under every base path, complete, with the policy, without anything inline, and links only to itself.
func TestPages(t *testing.T) {
	for _, base := range []string{"", "/tutti"} {
		h := router(t, newWorld(), api.Config{BasePath: base})
		for _, p := range pages() {
			t.Run(base+p.path, func(t *testing.T) {
				w := send(t, h, request{method: "GET", path: base + p.path, header: http.Header{"Accept": {acceptPage}}})
				body := w.Body.String()
				if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
					t.Fatalf("status %d, %s: %s", w.Code, w.Header().Get("Content-Type"), body)
				}
				if !strings.Contains(body, p.says) || !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
					t.Errorf("the page does not say %q, or is not complete: %s", p.says, body)
				}
				checkPage(t, base, w.Header(), body)
			})
		}
	}
}

// checkPage checks what every page must be.
func checkPage(t *testing.T, base string, header http.Header, body string) {
	t.Helper()
	csp := header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
		if !strings.Contains(csp, part) {
			t.Errorf("the policy lacks %s: %s", part, csp)
		}
	}
	if strings.Contains(csp, "unsafe") || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", header)
	}
	if found := inline.FindString(body); found != "" {
		t.Errorf("the page has something inline: %q", found)
	}
	ids := map[string]bool{}
	for _, a := range attribute.FindAllStringSubmatch(body, -1) {
		name, value := a[1], a[2]
		switch {
		case name == "id" && ids[value]:
			t.Errorf("two elements have the id %q", value)
		case name == "id":
			ids[value] = true
		case !strings.HasPrefix(value, base+"/") && value != "" && value[0] != '#' && value[0] != '?', strings.HasPrefix(value, "//"):
			t.Errorf("%s=%q leads away from the base path", name, value)
		}
	}
	headings := strings.Count(body, "<h1")
	if headings != 1 {
		t.Errorf("%d headings of the first level", headings)
	}
}

// TestErrors: a page that cannot be shown says what happened and what to do.
func TestErrors(t *testing.T) {
	down := newWorld()
	down.Err = core.NewError(core.CodeUnavailable, "the queue does not answer")
	broken := newWorld()
	broken.Err = core.WrapError(core.CodeInternal, "an internal error occurred", http.ErrBodyNotAllowed)
	failing, untyped := newWorld(), newWorld()
	untyped.meta.types = `{"resultSet":[]}`
	failing.graph = func(core.GraphQLRequest) string { return `{"errors":[{"message":"too many clauses"}]}` }
	long := url.Values{"repository": {strings.Repeat("x", 11<<20)}}
	tests := map[string]struct {
		world  *world
		ask    request
		status int
		says   []string
	}{
		"no page":      {newWorld(), request{method: "GET", path: "/console/nothing"}, 404, []string{"there is no such page", "use the navigation to find what you are looking for", "<nav"}},
		"no job":       {newWorld(), request{method: "GET", path: "/console/jobs/x"}, 404, []string{"there is no such job", "the newest 1000 jobs of the last 90 days are kept; this one may have been removed since"}},
		"no letter":    {newWorld(), request{method: "GET", path: "/console/dead-letters/x"}, 404, []string{"no such dead letter", "a dead letter disappears when its record succeeds, or when someone discards it"}},
		"no catalogue": {newWorld(), request{method: "GET", path: "/console/catalogues/x"}, 404, []string{"there is no such catalogue", "the list of catalogues has those that are configured"}},
		"no schema":    {untyped, request{method: "GET", path: "/console/schemas/x"}, 404, []string{"there is no such analysis type", "the list of schemas has those that are registered"}},
		"it failed":    {newWorld(), request{method: "GET", path: "/console/catalogues/broken/explore"}, 404, []string{"the catalogue has failed: the index does not exist", "tutti tries again by itself, after a minute at most"}},
		"bad filters":  {failing, request{method: "GET", path: "/console/catalogues/donors/explore"}, 400, []string{"too many clauses", "change or remove the filters"}},
		"queue down":   {down, request{method: "GET", path: "/"}, 503, []string{"the queue does not answer", "Try again", "Nothing was lost"}},
		"letters down": {down, request{method: "GET", path: "/console/dead-letters"}, 503, []string{"the queue does not answer"}},
		"broken":       {broken, request{method: "GET", path: "/console/jobs"}, 500, []string{"an internal error occurred", "request id"}},
		"10 MB":        {newWorld(), request{method: "POST", path: "/console/dead-letters/retry", form: long}, 413, []string{"larger than this server accepts", "limit of 10485760 bytes"}},
		"bad id":       {newWorld(), request{method: "GET", path: "/console/records?repository=a&organization=..&id=x"}, 400, []string{"organization"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := send(t, router(t, tt.world, api.Config{}), tt.ask)
			if w.Code != tt.status {
				t.Fatalf("status %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			for _, s := range tt.says {
				if !strings.Contains(w.Body.String(), s) {
					t.Errorf("the page does not say %q: %s", s, w.Body)
				}
			}
			checkPage(t, "", w.Header(), w.Body.String())
		})
	}
}

// TestNeverBlank: while a part of the server does not answer, every page is whole: it shows what it has, or says what happened.
func TestNeverBlank(t *testing.T) {
	down := core.NewError(core.CodeUnavailable, "the server of the parts does not answer")
	for _, p := range pages() {
		w := newWorld()
		w.Err, w.meta.down, w.down = down, down, down
		got := send(t, router(t, w, api.Config{BasePath: "/tutti"}), request{method: "GET", path: "/tutti" + p.path, header: http.Header{"Accept": {acceptPage}}})
		body := got.Body.String()
		checkPage(t, "/tutti", got.Header(), body)
		if got.Code != http.StatusOK && (!strings.Contains(body, "does not answer") || got.Code == http.StatusServiceUnavailable && !strings.Contains(body, "Try again")) {
			t.Errorf("%s: status %d: %s", p.path, got.Code, body)
		}
	}
}

// TestExpired: a token that has expired leads to the form to sign in, which leads back: to the page, or to that of the form that was sent.
func TestExpired(t *testing.T) {
	h := router(t, newWorld(), api.Config{Authenticator: tokens{}, BasePath: "/tutti"})
	for _, tt := range []struct {
		request
		next string
		kept bool
	}{
		{request{method: "GET", path: "/tutti/console/jobs?state=failed"}, "/tutti/console/jobs?state=failed", false},
		{request{method: "GET", path: "/tutti/"}, "/tutti/", false},
		{request{method: "POST", path: "/tutti/console/studies/S1/submit", header: http.Header{"Referer": {"http://localhost/tutti/console/studies/S1?offset=25"}}}, "/tutti/console/studies/S1?offset=25", true},
		{request{method: "POST", path: "/tutti/console/studies/S1/submit"}, "/tutti/", true},
		{request{method: "POST", path: "/tutti/console/studies/S1/submit", header: http.Header{"Referer": {"http://evil.example.org/tutti/console/studies/S1"}}}, "/tutti/", true},
		{request{
			method: "POST", path: "/tutti/console/sign-in", form: url.Values{"token": {"expired"}},
			header: http.Header{"Referer": {"http://localhost/tutti/console/sign-in?next=%2Ftutti%2Fconsole%2Fjobs"}},
		}, "/tutti/console/jobs", true},
		{request{
			method: "POST", path: "/tutti/console/sign-in", form: url.Values{"token": {"expired"}}, header: http.Header{"Referer": {"http://localhost/tutti/console/sign-in"}},
		}, "/tutti/", true},
	} {
		tt.token = "expired"
		got := send(t, h, tt.request)
		body := got.Body.String()
		if got.Code != http.StatusUnauthorized || !strings.Contains(body, "the token has expired") || !strings.Contains(body, `name="next" value="`+tt.next+`"`) ||
			strings.Contains(body, "still has what you entered") != tt.kept {
			t.Errorf("%s %s: status %d: %s", tt.method, tt.path, got.Code, body)
		}
		checkPage(t, "/tutti", got.Header(), body)
	}
	// The page to sign in says who is signed in, and needs no valid token.
	for token, says := range map[string]string{"s1": "Signed in as <strong>writer of S1</strong>", "expired": `console/sign-in">Sign in</a>`, "": `console/sign-in">Sign in</a>`} {
		got := send(t, h, request{method: "GET", path: "/tutti/console/sign-in", token: token})
		if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), says) || !strings.Contains(got.Body.String(), `name="token"`) {
			t.Errorf("%q: status %d: %s", token, got.Code, got.Body)
		}
	}
}

// TestAdviceOnSigningIn: what the form advises about a token works, and a form of another site has a hint.
func TestAdviceOnSigningIn(t *testing.T) {
	h := router(t, newWorld(), api.Config{Authenticator: tokens{}, CORSOrigins: []string{"https://portal.example.org"}})
	signIn := func(token string, header http.Header) *httptest.ResponseRecorder {
		return send(t, h, request{method: "POST", path: "/console/sign-in", form: url.Values{"token": {token}}, header: header})
	}
	for _, tt := range []struct {
		token  string
		header http.Header
		status int
		hint   string
	}{
		{" ", nil, http.StatusUnauthorized, "paste an API key or a JWT"},
		{strings.Repeat("x", 4000), nil, http.StatusBadRequest, "use an API key, or a token with fewer claims"},
		{
			"system",
			http.Header{"Origin": {"https://portal.example.org"}},
			http.StatusForbidden,
			"open the console itself and try again there; if a proxy changes the Host header, let it keep the one of the browser",
		},
	} {
		if got := signIn(tt.token, tt.header); got.Code != tt.status || !strings.Contains(got.Body.String(), tt.hint) {
			t.Errorf("status %d, want %d and the hint %q: %s", got.Code, tt.status, tt.hint, got.Body)
		}
	}
	for _, header := range []http.Header{nil, {"Origin": {"http://localhost"}}} { // the Host of the request
		if got := signIn("system", header); got.Code != http.StatusSeeOther || !strings.Contains(got.Header().Get("Set-Cookie"), "=system;") {
			t.Errorf("status %d, headers %v: %s", got.Code, got.Header(), got.Body)
		}
	}
}

// TestDeepDocuments: a document whose indented form has many times its length is shown as it is.
func TestDeepDocuments(t *testing.T) {
	w := newWorld()
	w.DeadLetters[0].Document = []byte(strings.Repeat("[", 9000) + "0" + strings.Repeat(",0", 10_000) + strings.Repeat("]", 9000))
	got := send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/dead-letters/l1"})
	if got.Code != http.StatusOK || got.Body.Len() > 1<<20 || !strings.Contains(got.Body.String(), "[[0,0,") {
		t.Errorf("status %d, %d bytes", got.Code, got.Body.Len())
	}
	w.meta.bodies[2] = `{"schema":` + strings.Repeat("[", 250) + "0" + strings.Repeat(",0", 50_000) + strings.Repeat("]", 250) + "}"
	got = send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/schemas/variant_call"})
	if got.Code != http.StatusOK || got.Body.Len() > 1<<20 || !strings.Contains(got.Body.String(), "[[0,0,") {
		t.Errorf("a schema: status %d, %d bytes", got.Code, got.Body.Len())
	}
}

// TestTooLarge: a document that is larger than the server accepts is rejected with its limit by every form that takes one, and of one that
// the server has, a page shows no more than people read.
func TestTooLarge(t *testing.T) {
	huge := strings.Repeat("x", 10<<20)
	for path, field := range map[string]string{
		"/console/schemas": "registration", "/console/schemas/variant_call/try": "payload", "/console/studies/S1/submit": "payload",
	} {
		w := newWorld()
		got := send(t, router(t, w, api.Config{}), request{method: "POST", path: path, form: url.Values{field: {huge}}})
		body := got.Body.String()
		if got.Code != http.StatusRequestEntityTooLarge || !strings.Contains(body, "limit of 10485760 bytes") || !strings.Contains(body, "still has what you entered") || len(w.Calls) > 0 {
			t.Errorf("%s: status %d: %.2000s", path, got.Code, body)
		}
		checkPage(t, "", got.Header(), body)
	}
	w := newWorld()
	w.graph = func(r core.GraphQLRequest) string {
		return strings.ReplaceAll(donorGraph(r), `"v1"`, `"`+huge+`"`)
	}
	got := send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/catalogues/donors/explore?column=visits.id"})
	if got.Code != http.StatusOK || got.Body.Len() > 1<<20 || !strings.Contains(got.Body.String(), "xxx…</a></td>") {
		t.Errorf("status %d, %d bytes", got.Code, got.Body.Len())
	}
}

// TestActions: every action needs its scope, comes from the console itself, and leads to a page that says what was done.
func TestActions(t *testing.T) {
	for _, a := range actions() {
		t.Run(a.path, func(t *testing.T) {
			for _, token := range []string{"system", "s1", "none", "expired", ""} {
				w := newWorld()
				got := send(t, router(t, w, api.Config{Authenticator: tokens{}}), request{method: "POST", path: a.path, form: a.form, token: token})
				switch {
				case slices.Contains(a.may, token):
					if got.Code != http.StatusSeeOther || got.Header().Get("Location") != a.to || strings.Join(w.Calls, ", ") != a.calls {
						t.Errorf("%s: status %d to %q, calls %q: %s", token, got.Code, got.Header().Get("Location"), w.Calls, got.Body)
					}
				case len(w.Calls) > 0 || got.Code < 400:
					t.Errorf("%s: status %d, calls %q", token, got.Code, w.Calls)
				case token == "expired" && !strings.Contains(got.Body.String(), "the token has expired"), token == "" && got.Code != http.StatusUnauthorized:
					t.Errorf("%s: status %d: %s", token, got.Code, got.Body)
				default:
					checkPage(t, "", got.Header(), got.Body.String())
				}
			}
			for name, header := range map[string]http.Header{
				"another site":   {"Sec-Fetch-Site": {"cross-site"}},
				"a sibling":      {"Sec-Fetch-Site": {"same-site"}},
				"another origin": {"Origin": {"https://evil.example.org"}},
				"a listed one":   {"Origin": {"https://portal.example.org"}},
			} {
				w := newWorld()
				h := router(t, w, api.Config{Authenticator: tokens{}, CORSOrigins: []string{"https://portal.example.org"}})
				got := send(t, h, request{method: "POST", path: a.path, form: a.form, token: "system", header: header})
				if got.Code != http.StatusForbidden || len(w.Calls) > 0 {
					t.Errorf("from %s: status %d, calls %q", name, got.Code, w.Calls)
				}
			}
			w := newWorld()
			got := send(t, router(t, w, api.Config{BasePath: "/tutti"}), request{method: "POST", path: "/tutti" + a.path, form: a.form, header: http.Header{"Sec-Fetch-Site": {"same-origin"}}})
			if got.Code != http.StatusSeeOther || got.Header().Get("Location") != "/tutti"+a.to {
				t.Errorf("under a base path: status %d to %q", got.Code, got.Header().Get("Location"))
			}
		})
	}
}

// TestSignIn: a valid token becomes a cookie that scripts cannot read, which only the console's pages use.
func TestSignIn(t *testing.T) {
	h := router(t, newWorld(), api.Config{Authenticator: tokens{}, BasePath: "/tutti"})
	got := send(t, h, request{method: "GET", path: "/tutti/"})
	if got.Code != http.StatusUnauthorized || !strings.Contains(got.Body.String(), `name="token"`) {
		t.Fatalf("without a token: status %d: %s", got.Code, got.Body)
	}
	welcome := send(t, h, request{method: "GET", path: "/tutti/console/sign-in"}).Body.String()
	for _, says := range []string{"Welcome to tutti", "keeps search indices true to metadata repositories", "<code>tutti keys create</code>", `name="token"`} {
		if !strings.Contains(welcome, says) {
			t.Errorf("the page to sign in does not say %q: %s", says, welcome)
		}
	}
	for given, want := range map[string]string{
		"/tutti/console/jobs?state=failed": "/tutti/console/jobs?state=failed", "": "/tutti/", "https://evil.example.org/": "/tutti/",
		"//evil.example.org/tutti/console/": "/tutti/", "/tutti/metrics": "/tutti/", `/\evil.example.org`: "/tutti/",
	} {
		got = send(t, h, request{method: "POST", path: "/tutti/console/sign-in", form: url.Values{"token": {" system "}, "next": {given}}})
		if got.Code != http.StatusSeeOther || got.Header().Get("Location") != want {
			t.Errorf("next %q leads to %q with %d", given, got.Header().Get("Location"), got.Code)
		}
	}
	cookie := got.Result().Cookies()[0]
	if cookie.Value != "system" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/tutti/" || cookie.Secure {
		t.Errorf("cookie %+v", cookie)
	}
	secure := send(t, h, request{
		method: "POST", path: "/tutti/console/sign-in", form: url.Values{"token": {"s1"}}, header: http.Header{"X-Forwarded-Proto": {"https"}},
	})
	if !secure.Result().Cookies()[0].Secure {
		t.Error("behind a proxy with TLS the cookie is not secure")
	}
	for name, token := range map[string]string{"expired": "x", "empty": " ", "too long": strings.Repeat("x", 4000)} {
		got := send(t, h, request{method: "POST", path: "/tutti/console/sign-in", form: url.Values{"token": {token}}})
		if got.Code < 400 || len(got.Result().Cookies()) > 0 {
			t.Errorf("%s: status %d, cookies %v", name, got.Code, got.Result().Cookies())
		}
	}
	if got := send(t, h, request{method: "GET", path: "/tutti/", token: "system"}); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "root") {
		t.Errorf("signed in: status %d: %s", got.Code, got.Body)
	}
	out := send(t, h, request{method: "POST", path: "/tutti/console/sign-out", token: "system"})
	if c := out.Result().Cookies()[0]; c.MaxAge >= 0 || c.Value != "" || c.Path != "/tutti/" {
		t.Errorf("after signing out: %+v", c)
	}
}

// TestScopes: a page shows only what its caller may see and do.
func TestScopes(t *testing.T) {
	w := newWorld()
	h := router(t, w, api.Config{Authenticator: tokens{}})
	for _, tt := range []struct {
		token, path string
		status      int
		has, lacks  string
	}{
		{"system", "/", 200, "Compare and fix", ""},
		{"s1", "/", 200, "song.ca", "Index all"},
		{"s1", "/", 200, "song.ca", "dead letters</dt>"},
		{"system", "/", 200, `<dt>Last notification</dt><dd><time datetime="2026-05-04T11:59:00Z"`, ""},
		{"system", "/", 200, "<dt>not compared yet</dt>", ""},
		{"system", "/", 200, "Dead letters: see why, and retry", ""},
		{"system", "/", 200, "<dt>records per second</dt><dd>1\u202f234</dd>", ""},
		{"s1", "/", 200, "song.ca", "Last notification"},
		{"s1", "/", 200, "song.ca", "records per second"},
		{"s1", "/console/studies/S1/analyses/a1/suppress", 200, "a1", ""},
		{"none", "/console/studies/S1/analyses/a1/suppress", 403, "S1.WRITE", ""},
		{"system", "/console/dead-letters", 200, "Retry all", ""},
		{"s1", "/console/dead-letters", 200, "r1", "Retry all"},
		{"system", "/console/dead-letters?organization=S1", 200, `<input type="hidden" name="organization" value="S1">`, ""}, // so that "Retry all" leaves those of others
		{"system", "/console/dead-letters?organization=S9", 200, "No dead letters", "r1"},
		{"none", "/console/dead-letters", 200, "No dead letters", "r1"},
		{"none", "/console/dead-letters/l1", 404, "no such dead letter", "mapper_parsing"},
		{"s1", "/console/dead-letters/l1", 200, "mapper_parsing", "Discard…"},
		{"s1", "/console/dead-letters/l1/discard", 403, "tutti.WRITE", ""},
		{"s1", "/console/jobs", 200, "/console/jobs/j2", "/console/jobs/j1"},
		{"s1", "/console/jobs/j1", 404, "there is no such job", ""},
		{"none", "/console/jobs/j2", 404, "there is no such job", ""},
		{"none", "/console/records?repository=song.ca&organization=S1&id=r1", 403, "S1.WRITE", ""},
		{"s1", "/console/records?repository=song.ca&organization=S1&id=r1", 200, "restricted", ""},
		{"none", "/console/studies/S1", 200, "only published", "a1"},
		{"none", "/console/studies/S1", 200, "a2", "Submit an analysis"},
		{"s1", "/console/studies/S1", 200, "analyses/a1/publish", "only published"},
		{"gone", "/console/jobs", 401, "the token has expired", ""},
	} {
		got := send(t, h, request{method: "GET", path: tt.path, token: tt.token})
		if body := got.Body.String(); got.Code != tt.status || !strings.Contains(body, tt.has) || tt.lacks != "" && strings.Contains(body, tt.lacks) {
			t.Errorf("%s %s: status %d, want %d with %q and without %q: %s", tt.token, tt.path, got.Code, tt.status, tt.has, tt.lacks, body)
		}
	}
}

// TestOverviewOfRestricted: a caller of some organizations is not told which repositories fail, so the page does not say that none does.
func TestOverviewOfRestricted(t *testing.T) {
	w := newWorld()
	w.HealthFn = func() system.Health {
		return system.Health{Components: map[string]system.ComponentState{"queue": system.ComponentUp}}
	}
	w.Statuses[1].State, w.Statuses[1].Paused = core.RepositoryFailing, ""
	w.catalogues = core.CatalogueSet{}
	h := router(t, w, api.Config{Authenticator: tokens{}})
	for token, want := range map[string]string{"s1": "No repository is paused and every component works.", "system": "1 repository is not being indexed."} {
		body := send(t, h, request{method: "GET", path: "/", token: token}).Body.String()
		if !strings.Contains(body, "<strong>"+want+"</strong>") || strings.Contains(body, ">Healthy<") != (token == "system") || strings.Contains(body, ">Not paused<") != (token == "s1") {
			t.Errorf("%s: %s", token, body)
		}
	}
	w.Statuses = w.Statuses[:1]
	w.Statuses[0].Type, w.Statuses[0].State = core.TypeLocal, core.RepositoryNeverIndexed // nothing was published yet
	if body := send(t, h, request{method: "GET", path: "/", token: "system"}).Body.String(); !strings.Contains(body, "No repository needs attention, and every component works.") {
		t.Errorf("%s", body)
	}
}

// TestOverviewHints: the overview says what fills an index that is empty, why a catalogue failed, and when no job is in progress.
func TestOverviewHints(t *testing.T) {
	w := newWorld()
	w.Jobs = nil
	for i := range w.Statuses {
		w.Statuses[i].State = core.RepositoryNeverIndexed
	}
	h := router(t, w, api.Config{})
	body := send(t, h, request{method: "GET", path: "/"}).Body.String()
	for _, want := range []string{
		`Publish an analysis of a <a href="/console/studies">study</a>: it is indexed at once.`, "Index the repository to fill its index.",
		`<span class="small">the index does not exist</span>`, "No job is running or queued.",
	} {
		if strings.Count(body, want) != 1 {
			t.Errorf("%q is there %d times in %s", want, strings.Count(body, want), body)
		}
	}
}

// TestRetryJob: the page of a retry of dead letters counts dead letters, and has no organizations; lists name it.
func TestRetryJob(t *testing.T) {
	w := newWorld()
	w.Runs, w.Jobs[1] = nil, core.Job{
		ID: "j1", Scope: core.ScopeRetry, Repository: "song.ca", Reason: core.ReasonRejected, State: core.JobRunning, QueuedAt: noon, StartedAt: &noon,
		Totals: core.Totals{Expected: 1200, Fetched: 512, Retried: 510, Rejected: 2}, ExpectedOrganizations: new(int),
	}
	h := router(t, w, api.Config{})
	page := send(t, h, request{method: "GET", path: "/console/jobs/j1"}).Body.String()
	for _, text := range []string{
		"<h1>Retry of dead letters of song.ca (Rejected)</h1>", "512 of 1\u202f200 dead letters processed", "<dt>retried</dt><dd>510</dd>",
		`<dt>cannot be retried</dt><dd><a href="/console/dead-letters?repository=song.ca&amp;reason=rejected">2</a></dd>`, "Cancel the job",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q: %s", text, page)
		}
	}
	for _, text := range []string{"Organizations", "<dt>Index</dt>", "<dt>indexed</dt>"} {
		if strings.Contains(page, text) {
			t.Errorf("the page has %q", text)
		}
	}
	if list := send(t, h, request{method: "GET", path: "/console/jobs"}).Body.String(); !strings.Contains(list, "dead letters, Rejected") {
		t.Errorf("the list: %s", list)
	}
}

// TestManyOrganizations: the page of a job says how many organizations it does not list.
func TestManyOrganizations(t *testing.T) {
	for organizations, says := range map[int]string{100: "", 101: "And 1 more", 1500: "And 1\u202f400 more"} {
		w := newWorld()
		w.Runs = runs(organizations)
		body := send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/jobs/j1"}).Body.String()
		if !strings.Contains(body, `class="break">S100<`) || strings.Contains(body, `class="break">S101<`) || strings.Contains(body, "And ") != (says != "") || !strings.Contains(body, says) {
			t.Errorf("%d: %s", organizations, body)
		}
	}
}

// TestJobEvents: the stream shows the job, then its end.
func TestJobEvents(t *testing.T) {
	w := newWorld()
	done := w.Jobs[0]
	done.State, done.EndedAt = core.JobSucceeded, &noon
	w.becomes(done)
	got := send(t, router(t, w, api.Config{BasePath: "/tutti"}), request{method: "GET", path: "/tutti/console/jobs/j2/events"})
	body := got.Body.String()
	if got.Header().Get("Content-Type") != "text/event-stream" || strings.Count(body, "event: job\n") != 2 || !strings.HasSuffix(body, "event: end\ndata:\n\n") ||
		!strings.Contains(body, "data: ") || !strings.Contains(body, template.HTMLEscapeString("Succeeded")) {
		t.Errorf("%s", body)
	}
	// A job that is removed ends the stream as a broken connection does: the browser connects again and learns that it does not exist.
	gone := newWorld()
	gone.becomes()
	if body := send(t, router(t, gone, api.Config{}), request{method: "GET", path: "/console/jobs/j2/events"}).Body.String(); strings.Count(body, "event: job\n") != 1 || strings.Contains(body, "event: end") {
		t.Errorf("of a job that is removed: %s", body)
	}
	if got := send(t, router(t, newWorld(), api.Config{}), request{method: "HEAD", path: "/console/jobs/j2/events"}); got.Code != http.StatusOK || got.Body.Len() > 0 {
		t.Errorf("HEAD: status %d: %s", got.Code, got.Body)
	}
	if got := send(t, router(t, newWorld(), api.Config{}), request{method: "GET", path: "/console/jobs/x/events"}); got.Code != http.StatusNotFound {
		t.Errorf("of a job that does not exist: status %d", got.Code)
	}
}

// TestPaths: the base path leads to the overview, and assets are served with their types and revalidated.
func TestPaths(t *testing.T) {
	h := router(t, newWorld(), api.Config{BasePath: "/tutti"})
	if got := send(t, h, request{method: "GET", path: "/tutti"}); got.Code != http.StatusPermanentRedirect || got.Header().Get("Location") != "/tutti/" {
		t.Errorf("status %d to %q", got.Code, got.Header().Get("Location"))
	}
	for name, contentType := range map[string]string{
		"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "query.js": "text/javascript; charset=utf-8", "htmx.min.js": "text/javascript; charset=utf-8",
		"htmx-sse.min.js": "text/javascript; charset=utf-8", "uplot.min.js": "text/javascript; charset=utf-8", "uplot.min.css": "text/css; charset=utf-8", "logo.svg": "image/svg+xml",
	} {
		got := send(t, h, request{method: "GET", path: "/tutti/console/assets/" + name})
		if got.Code != http.StatusOK || got.Header().Get("Content-Type") != contentType || got.Body.Len() == 0 {
			t.Errorf("%s: status %d, %s", name, got.Code, got.Header().Get("Content-Type"))
		}
		again := send(t, h, request{method: "GET", path: "/tutti/console/assets/" + name, header: http.Header{"If-None-Match": {got.Header().Get("ETag")}}})
		if again.Code != http.StatusNotModified {
			t.Errorf("%s again: status %d", name, again.Code)
		}
	}
	if got := send(t, h, request{method: "GET", path: "/tutti/console/assets/none.js"}); got.Code != http.StatusNotFound {
		t.Errorf("status %d", got.Code)
	}
}
