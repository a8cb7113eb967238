package http_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tutti/http/api"
	"tutti/internal/auth"
	"tutti/internal/core"
	"tutti/internal/tools/fakes"
)

// Who a test asks as. Each of those with scopes has an API key and a JWT.
const (
	nobody       = "nobody"
	malformed    = "malformed"
	unknown      = "unknown token"
	expired      = "expired"
	foreignRight = "another organization's writer"
	readRight    = "reader"
	writeRight   = "writer"
	systemRight  = "system"
)

// scopesOf are the scopes of those who have a token that is good.
func scopesOf() map[string][]string {
	return map[string][]string{
		foreignRight: {"S2.WRITE", "S2.READ"}, readRight: {"S1.READ"}, writeRight: {"S1.WRITE"}, systemRight: {"tutti.WRITE"},
	}
}

// tokenIssuer makes tokens and is the Authenticator that takes them.
type tokenIssuer struct {
	*auth.Authenticator
	key *ecdsa.PrivateKey
	// headers are the values of Authorization by caller and kind of token; empty for the anonymous caller.
	headers map[string]map[string][]string
}

// memoryKeyStore is an auth.KeyStore in memory.
type memoryKeyStore struct {
	mu    sync.Mutex
	keys  []core.APIKey
	fault error
}

func (s *memoryKeyStore) AddKey(_ context.Context, key core.APIKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, key)
	return nil
}

func (s *memoryKeyStore) Key(_ context.Context, id string) (core.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.keys {
		if s.fault == nil && key.ID == id {
			return key, nil
		}
	}
	if s.fault != nil {
		return core.APIKey{}, s.fault
	}
	return core.APIKey{}, core.NewError(core.CodeNotFound, "there is no such API key")
}

func (s *memoryKeyStore) Keys(context.Context) ([]core.APIKey, error) { return nil, nil }

func (s *memoryKeyStore) RevokeKey(context.Context, string, time.Time) (core.APIKey, error) {
	return core.APIKey{}, core.NewError(core.CodeNotFound, "there is no such API key")
}

// newTokenIssuer makes tokens of every kind, at noon; store is where the API keys are.
func newTokenIssuer(t *testing.T, store *memoryKeyStore) tokenIssuer {
	t.Helper()
	now := func() time.Time { return noon }
	keys, err := auth.NewKeys(store, auth.KeysConfig{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.NewJWT(t.Context(), auth.JWTConfig{
		PublicKey: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), Issuer: "issuer", Audience: "tutti", Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tokens.Close)
	d := tokenIssuer{Authenticator: auth.New(keys, tokens, nil), key: key, headers: map[string]map[string][]string{
		nobody: {"none": nil},
		malformed: {
			"basic": {"Basic dHV0dGk6dHV0dGk="}, "scheme alone": {"Bearer"}, "no token": {"Bearer "}, "only padding": {"Bearer =="},
			"two words": {"Bearer a b"}, "no scheme": {"abc"}, "a list": {"Bearer a, Bearer b"}, "quotes": {`Bearer "a"`}, "empty": {""},
		},
		unknown: {
			"api key": {"Bearer tutti_0123456789abcdef_" + strings.Repeat("A", 43)}, "text": {"Bearer hunter2"},
			"unsigned": {"Bearer eyJhbGciOiJub25lIn0.eyJzY29wZSI6InR1dHRpLldSSVRFIn0."},
		},
		expired: {"jwt": {"Bearer " + signed(t, key, []string{"tutti.WRITE"}, -time.Hour)}},
	}}
	for who, scopes := range scopesOf() {
		_, text, err := keys.Create(t.Context(), who, scopes, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		d.headers[who] = map[string][]string{
			"api key": {"Bearer " + text}, "jwt": {"bearer  " + signed(t, key, scopes, time.Hour)},
		}
	}
	_, short, err := keys.Create(t.Context(), expired, []string{"tutti.WRITE"}, noon.Add(time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	store.keys[len(store.keys)-1].ExpiresAt = noon
	d.headers[expired]["api key"] = []string{"Bearer " + short}
	system := d.headers[systemRight]["api key"][0]
	d.headers[malformed]["twice"] = []string{system, system}
	return d
}

// signed signs a token that is good for a time from noon on.
func signed(t *testing.T, key *ecdsa.PrivateKey, scopes []string, good time.Duration) string {
	t.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"iss": "issuer", "aud": "tutti", "sub": "alice", "exp": noon.Add(good).Unix(), "scope": strings.Join(scopes, " "),
	}).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// header returns one Authorization header of a caller.
func (d tokenIssuer) header(who string) []string { return d.headers[who]["api key"] }

func guardedHandler(t *testing.T, p *ports, authenticator api.Authenticator, cfg api.Config) handler {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return noon }
	}
	cfg.Authenticator = authenticator
	h, err := assemble(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return handler{Router: h}
}

// silent returns ports that fail the test when they are called.
func silent() *ports {
	return &ports{Ports: &fakes.Ports{Letters: &fakes.Letters{}}, metadata: &metadataMock{}, catalogues: newShelf(), searches: &searches{}}
}

// unread is a body that records whether it is read.
type unread struct {
	io.Reader
	read bool
}

func (u *unread) Read(b []byte) (int, error) {
	u.read = true
	return u.Reader.Read(b)
}

// accessAnswer is the answer to one request.
type accessAnswer struct {
	*http.Response
	body []byte
	read bool
}

// requestWith asks for a target with Authorization headers, and holds the answer against the OpenAPI document.
func requestWith(t *testing.T, h handler, method, target string, authorization []string) accessAnswer {
	t.Helper()
	body := &unread{Reader: strings.NewReader("{}")}
	r := httptest.NewRequestWithContext(t.Context(), method, target, body)
	r.ContentLength = 2
	r.Header.Set("X-Request-Id", testRequestID)
	r.Header.Set("Content-Type", "application/json")
	for _, v := range authorization {
		r.Header.Add("Authorization", v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	got := accessAnswer{Response: w.Result(), body: w.Body.Bytes(), read: body.read}
	if method != http.MethodHead {
		checkAgainstDocument(t, h, r, got.Response, got.body)
	}
	return got
}

// Who may use a route, as CONTRACT section 6 has it.
var (
	everybody = []string{nobody, malformed, unknown, expired, foreignRight, readRight, writeRight, systemRight}
	// unlessInvalid: no token is required, but a token in the request must be valid.
	unlessInvalid = []string{nobody, foreignRight, readRight, writeRight, systemRight}
	anyToken      = []string{foreignRight, readRight, writeRight, systemRight}
	writers       = []string{writeRight, systemRight}
	systemOnly    = []string{systemRight}
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
		{Method: "POST", Pattern: "/index/repository/{repositoryCode}"}:                                 {may: systemOnly},
		{Method: "POST", Pattern: "/index/repository/{repositoryCode}/organization/{organization}/ids"}: {may: writers},
		{Method: "POST", Pattern: "/index/repository/{repositoryCode}/ids"}:                             {may: systemOnly},
		{Method: "POST", Pattern: "/index/repository/{repositoryCode}/rollback"}:                        {may: systemOnly},
		{Method: "DELETE", Pattern: "/index/repository/{repositoryCode}/previous"}:                      {may: systemOnly},
		{Method: "GET", Pattern: "/index/repository/{repositoryCode}/mapping"}:                          {may: systemOnly},

		{Method: "GET", Pattern: "/repositories"}:     {may: anyToken},
		{Method: "GET", Pattern: "/jobs"}:             {may: anyToken},
		{Method: "GET", Pattern: "/jobs/{id}"}:        {may: writers, hides: true},
		{Method: "DELETE", Pattern: "/jobs/{id}"}:     {may: writers, hides: true},
		{Method: "GET", Pattern: "/jobs/{id}/events"}: {may: writers, hides: true},
		{Method: "GET", Pattern: "/jobs/{id}/ids"}:    {may: writers, hides: true},

		{Method: "GET", Pattern: "/jobs/{id}/organizations"}: {may: writers, hides: true},

		{Method: "GET", Pattern: "/dead-letters"}:             {may: anyToken},
		{Method: "GET", Pattern: "/dead-letters/{id}"}:        {may: writers, hides: true},
		{Method: "POST", Pattern: "/dead-letters/{id}/retry"}: {may: writers, hides: true},
		{Method: "DELETE", Pattern: "/dead-letters/{id}"}:     {may: systemOnly},
		{Method: "POST", Pattern: "/dead-letters/retry"}:      {may: systemOnly},

		{Method: "POST", Pattern: "/notifications/{repositoryCode}"}: {may: systemOnly},

		{Method: "GET", Pattern: "/schemas"}:                           {may: anyToken},
		{Method: "GET", Pattern: "/schemas/registration"}:              {may: anyToken},
		{Method: "GET", Pattern: "/schemas/{name}"}:                    {may: anyToken},
		{Method: "GET", Pattern: "/schemas/{name}/versions/{version}"}: {may: anyToken},
		{Method: "POST", Pattern: "/schemas"}:                          {may: systemOnly},

		{Method: "GET", Pattern: "/studies/all"}:             {may: anyToken},
		{Method: "GET", Pattern: "/studies/{study}"}:         {may: anyToken},
		{Method: "POST", Pattern: "/studies/{study}"}:        {may: systemOnly},
		{Method: "GET", Pattern: analysis}:                   {may: anyToken},
		{Method: "GET", Pattern: analysis + "/paginated"}:    {may: anyToken},
		{Method: "GET", Pattern: analysis + "/{id}"}:         {may: unlessInvalid},
		{Method: "GET", Pattern: analysis + "/{id}/files"}:   {may: anyToken},
		{Method: "POST", Pattern: "/submit/{study}"}:         {may: writers},
		{Method: "PUT", Pattern: analysis + "/{id}"}:         {may: writers},
		{Method: "PATCH", Pattern: analysis + "/{id}"}:       {may: writers},
		{Method: "PUT", Pattern: analysis + "/publish/{id}"}: {may: writers}, {Method: "PUT", Pattern: analysis + "/unpublish/{id}"}: {may: writers},
		{Method: "PUT", Pattern: analysis + "/suppress/{id}"}: {may: writers},

		{Method: "GET", Pattern: analysis + "/search/id"}:          {may: anyToken},
		{Method: "GET", Pattern: "/studies/{study}/files/{id}"}:    {may: anyToken},
		{Method: "PUT", Pattern: "/studies/{study}/files/{id}"}:    {may: writers},
		{Method: "DELETE", Pattern: "/studies/{study}/files/{id}"}: {may: writers},
		{Method: "GET", Pattern: "/entities"}:                      {may: everybody},
		{Method: "GET", Pattern: "/entities/{id}"}:                 {may: everybody},
		{Method: "GET", Pattern: "/export/studies/{study}"}:        {may: []string{readRight, writeRight, systemRight}},
		{Method: "GET", Pattern: "/export/analysis/{ids}"}:         {may: anyToken},
		{Method: "GET", Pattern: "/v2/api-docs"}:                   {may: everybody},

		{Method: "GET", Pattern: "/.well-known/oauth-protected-resource"}:     {may: everybody},
		{Method: "GET", Pattern: "/.well-known/oauth-protected-resource/mcp"}: {may: everybody},
		{Method: "POST", Pattern: "/mcp"}:                                     {may: unlessInvalid},
		{Method: "GET", Pattern: "/introspection"}:                            {may: everybody},
		{Method: "GET", Pattern: "/introspection/fields"}:                     {may: everybody},
		{Method: "GET", Pattern: "/introspection/sqon"}:                       {may: everybody},
		{Method: "GET", Pattern: "/introspection/{catalogueId}"}:              {may: everybody},
		{Method: "GET", Pattern: "/introspection/"}:                           {may: everybody},
		{Method: "GET", Pattern: "/{catalogueId}/introspection"}:              {may: everybody},

		{Method: "GET", Pattern: "/{catalogueId}/graphql"}:        {may: unlessInvalid},
		{Method: "POST", Pattern: "/{catalogueId}/graphql"}:       {may: unlessInvalid},
		{Method: "POST", Pattern: "/{catalogueId}/graphql/{tag}"}: {may: unlessInvalid},
		{Method: "GET", Pattern: "/graphql"}:                      {may: unlessInvalid},
		{Method: "POST", Pattern: "/graphql"}:                     {may: unlessInvalid},
		{Method: "POST", Pattern: "/graphql/{tag}"}:               {may: unlessInvalid},
		{Method: "POST", Pattern: "/{catalogueId}/download"}:      {may: unlessInvalid},
		{Method: "POST", Pattern: "/download"}:                    {may: unlessInvalid},

		{Method: "GET", Pattern: "/backup"}:       {may: systemOnly},
		{Method: "GET", Pattern: "/keys"}:         {may: systemOnly},
		{Method: "POST", Pattern: "/keys"}:        {may: systemOnly},
		{Method: "DELETE", Pattern: "/keys/{id}"}: {may: systemOnly},
	}
}

// filled fills a pattern.
func filled(pattern string) string {
	return strings.NewReplacer("{repositoryCode}", "song.ca", "{organization}", "S1", "{study}", "S1", "{id}", "x1", "{ids}", "x1,x2",
		"{asset}", "page.css", "{name}", "variant_call", "{version}", "1",
		"{catalogueId}", "participants", "{tag}", "Arranger-Table").Replace(pattern)
}

// ofS1 returns ports that all succeed, whose jobs and dead letters are S1's, with one catalogue.
func ofS1() *ports {
	p := working()
	p.catalogues.put(participants())
	p.GetFn = func(id string) (core.Job, error) { return organizationJob(id, "S1"), nil }
	p.WatchFn = func(_ context.Context, _ string, each func(core.JobChange) error) error {
		job := organizationJob("x1", "S1")
		job.State = core.JobSucceeded
		_ = each(core.JobChange{Revision: 1, Job: &job})
		return each(core.JobChange{})
	}
	letter := core.DeadLetter{ID: "x1", Repository: "song.ca", Organization: "S1", RecordID: "r1", Reason: core.ReasonRejected}
	p.Letters.GetFn = func(string) (core.DeadLetter, error) { return letter, nil }
	return p
}

func organizationJob(id, organization string) core.Job {
	job := queuedJob(id)
	job.Scope, job.Organization = core.ScopeOrganization, organization
	return job
}

// TestEveryRouteAsksForWhatItNeeds asks every route as everybody. Who is refused is refused before the body is read and
// before anything is looked for.
func TestEveryRouteAsksForWhatItNeeds(t *testing.T) {
	d := newTokenIssuer(t, &memoryKeyStore{})
	open, shut := guardedHandler(t, ofS1(), d, api.Config{}), guardedHandler(t, silent(), d, api.Config{})
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
				for who, headers := range d.headers {
					for kind, header := range headers {
						name := who + ", " + kind
						if slices.Contains(admission.may, who) {
							wantAdmitted(t, name, requestWith(t, open, method, filled(route.Pattern), header))
						} else if admission.hides && slices.Contains(anyToken, who) {
							if got := requestWith(t, open, method, filled(route.Pattern), header); got.StatusCode != http.StatusNotFound {
								t.Errorf("%s: status %d, want 404", name, got.StatusCode)
							}
						} else {
							wantRefused(t, name, who, method, requestWith(t, shut, method, filled(route.Pattern), header))
						}
					}
				}
			})
		}
	}
}

// wantAdmitted: what a handler makes of the request is not looked at, only that it has got to one and found what it names.
func wantAdmitted(t *testing.T, name string, got accessAnswer) {
	t.Helper()
	switch got.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusInternalServerError:
		t.Errorf("%s: refused: %d %s", name, got.StatusCode, got.body)
	}
	if c := got.Header.Get("WWW-Authenticate"); c != "" {
		t.Errorf("%s: challenge %q", name, c)
	}
}

func wantRefused(t *testing.T, name, who, method string, got accessAnswer) {
	t.Helper()
	if got.read {
		t.Errorf("%s: the body was read", name)
	}
	status, code, challenge := http.StatusForbidden, "forbidden", `Bearer error="insufficient_scope", scope="`
	switch who {
	case nobody, malformed:
		status, code, challenge = http.StatusUnauthorized, "unauthenticated", "Bearer"
	case unknown, expired:
		status, code, challenge = http.StatusUnauthorized, "unauthenticated", `Bearer error="invalid_token"`
	}
	c := got.Header.Get("WWW-Authenticate")
	if c != challenge && (status != http.StatusForbidden || !strings.HasPrefix(c, challenge)) {
		t.Errorf("%s: challenge %q, want %q", name, c, challenge)
	}
	if method == http.MethodHead && len(got.body) == 0 {
		if got.StatusCode != status {
			t.Errorf("%s: status %d, want %d", name, got.StatusCode, status)
		}
		return
	}
	wantProblem(t, got.Response, got.body, status, code, "")
}

// TestRefusalsSayWhatIsMissing and no more.
func TestRefusalsSayWhatIsMissing(t *testing.T) {
	store := &memoryKeyStore{}
	d := newTokenIssuer(t, store)
	h := guardedHandler(t, silent(), d, api.Config{})
	const organization = "/index/repository/song.ca/organization/"
	for _, tc := range []struct {
		name, method, target    string
		header                  []string
		status                  int
		code, detail, hint, say string
	}{
		{
			"nobody", "GET", "/jobs", nil, 401, "unauthenticated", "a token is required",
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
			"expired", "GET", "/jobs", d.header(expired), 401, "unauthenticated", "the API key has expired",
			"ask for a new one", `Bearer error="invalid_token"`,
		},
		{
			"in the query", "GET", "/jobs?access_token=" + strings.TrimPrefix(d.header(systemRight)[0], "Bearer "), nil, 401, "unauthenticated",
			"a token is required", "send the header Authorization: Bearer <API key or JWT>", "Bearer",
		},
		{
			"another organization", "POST", organization + "S1", d.header(foreignRight), 403, "forbidden", `the scope "S1.WRITE" is required`,
			"use a token with this scope, or with tutti.WRITE", `Bearer error="insufficient_scope", scope="S1.WRITE"`,
		},
		{
			"the system", "POST", "/index/repository/no-such", d.header(writeRight), 403, "forbidden", `the scope "tutti.WRITE" is required`,
			"use a token with this scope", `Bearer error="insufficient_scope", scope="tutti.WRITE"`,
		},
		{
			"a name that does not fit the header", "POST", organization + "S%22%C3%A4", d.header(writeRight), 403, "forbidden",
			"the scope \"S\\\"ä.WRITE\" is required", "use a token with this scope, or with tutti.WRITE", `Bearer error="insufficient_scope"`,
		},
		{
			"a part of the name", "POST", organization + "S1%2FS2", d.header(writeRight), 403, "forbidden", `the scope "S1/S2.WRITE" is required`,
			"use a token with this scope, or with tutti.WRITE", `Bearer error="insufficient_scope", scope="S1/S2.WRITE"`,
		},
		{"a name that is none, nobody", "POST", organization + "%01", nil, 401, "unauthenticated", "a token is required", "send the header Authorization: Bearer <API key or JWT>", "Bearer"},
		{"a name that is none", "POST", organization + "%01", d.header(writeRight), 400, "invalid", "organization contains a control character", "", ""},
		{
			"force", "POST", organization + "S1?force=true", d.header(writeRight), 403, "forbidden", `the scope "tutti.WRITE" is required`,
			"use a token with this scope", `Bearer error="insufficient_scope", scope="tutti.WRITE"`,
		},
		{"an unknown path", "GET", "/no-such", nil, 404, "not_found", "no resource has this path", "all paths are in /openapi.json", ""},
		{"an unknown method", "PUT", "/jobs", nil, 405, "method_not_allowed", "this path does not support this method", "use GET, HEAD", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := requestWith(t, h, tc.method, tc.target, tc.header)
			p := wantProblem(t, got.Response, got.body, tc.status, tc.code, tc.detail)
			if p.Detail != tc.detail || p.Hint != tc.hint {
				t.Errorf("got %q, %q", p.Detail, p.Hint)
			}
			if c := got.Header.Get("WWW-Authenticate"); c != tc.say {
				t.Errorf("challenge %q, want %q", c, tc.say)
			}
		})
	}
	t.Run("the store does not answer", func(t *testing.T) {
		store.fault = core.NewError(core.CodeUnavailable, "the database is gone")
		got := requestWith(t, guardedHandler(t, silent(), newColdAuthenticator(t, store), api.Config{}), "GET", "/jobs", d.header(writeRight))
		p := wantProblem(t, got.Response, got.body, 503, "unavailable", "API keys cannot be verified now")
		if got.Header.Get("Retry-After") == "" || got.Header.Get("WWW-Authenticate") != "" || p.Hint != "" {
			t.Errorf("headers %v, hint %q", got.Header, p.Hint)
		}
	})
}

// newColdAuthenticator returns an Authenticator that has looked at none of the keys of a store.
func newColdAuthenticator(t *testing.T, store *memoryKeyStore) *auth.Authenticator {
	t.Helper()
	keys, err := auth.NewKeys(store, auth.KeysConfig{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return auth.New(keys, nil, nil)
}

// TestForceIsTheSystems also where the organization's own writer may index.
func TestForceIsTheSystems(t *testing.T) {
	d := newTokenIssuer(t, &memoryKeyStore{})
	h := guardedHandler(t, ofS1(), d, api.Config{})
	const target = "/index/repository/song.ca/organization/S1?force="
	for who, want := range map[string]map[string]int{
		writeRight: {"true": 403, "false": 202}, systemRight: {"true": 202, "false": 202},
	} {
		for force, status := range want {
			if got := requestWith(t, h, "POST", target+force, d.header(who)); got.StatusCode != status {
				t.Errorf("%s, force=%s: %d, want %d", who, force, got.StatusCode, status)
			}
		}
	}
}

// TestNotificationsAreSignedOrTheSystems: where a signature is asked for it decides, whatever token is shown.
func TestNotificationsAreSignedOrTheSystems(t *testing.T) {
	d := newTokenIssuer(t, &memoryKeyStore{})
	p := ofS1()
	p.NotifyFn = func(_ string, _ []byte, signature, _ string) (core.NotificationResult, error) {
		if signature == "" {
			return core.NotificationResult{}, core.NewError(core.CodeUnauthenticated, "the signature is missing")
		}
		return core.NotificationResult{Accepted: 1}, nil
	}
	h := guardedHandler(t, p, d, api.Config{})
	for _, who := range []string{nobody, writeRight, systemRight} {
		t.Run(who, func(t *testing.T) {
			got := requestWith(t, h, "POST", "/notifications/"+fakes.SignedRepository, d.header(who))
			wantProblem(t, got.Response, got.body, 401, "unauthenticated", "the signature is missing")
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
	t.Run("unknown repository, nobody", func(t *testing.T) {
		got := requestWith(t, h, "POST", "/notifications/%2e%2e", nil)
		wantProblem(t, got.Response, got.body, 401, "unauthenticated", "a token is required")
	})
}

// TestLogNamesTheCaller and holds no token.
func TestLogNamesTheCaller(t *testing.T) {
	d := newTokenIssuer(t, &memoryKeyStore{})
	for _, tc := range []struct{ name, method, target, who, want string }{
		{"admitted", "GET", "/jobs", writeRight, "principal=writer"},
		{"forbidden", "POST", "/keys", writeRight, "principal=writer"},
		{"open", "GET", "/isAlive", writeRight, ""},
		{"unknown", "GET", "/jobs", unknown, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			h := guardedHandler(t, ofS1(), d, api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			requestWith(t, h, tc.method, tc.target, d.header(tc.who))
			line := log.String()
			if strings.Contains(line, "principal=") != (tc.want != "") || !strings.Contains(line, tc.want) {
				t.Errorf("logged: %s", line)
			}
			token := strings.TrimPrefix(d.header(tc.who)[0], "Bearer ")
			if strings.Contains(line, token) || strings.Contains(line, token[len(token)-20:]) {
				t.Errorf("the token is logged: %s", line)
			}
		})
	}
}

// TestNobodyIsAskedWithoutAuthenticator: auth.mode none.
func TestNobodyIsAskedWithoutAuthenticator(t *testing.T) {
	h := newHandler(t, ofS1(), api.Config{})
	for route := range routeAccess() {
		got := requestWith(t, h, route.Method, filled(route.Pattern), []string{"Bearer hunter2"})
		wantAdmitted(t, route.Method+" "+route.Pattern, got)
	}
	if got := requestWith(t, h, "POST", "/index/repository/song.ca/organization/S1?force=true", nil); got.StatusCode != 202 {
		t.Errorf("force: %d", got.StatusCode)
	}
}
