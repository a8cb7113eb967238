package api_test

import (
	"net/http"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// corsOf returns what an answer says of other origins.
func corsOf(header http.Header) map[string]string {
	got := map[string]string{}
	for name := range header {
		if short, ok := strings.CutPrefix(name, "Access-Control-"); ok {
			got[short] = header.Get(name)
		}
	}
	return got
}

func TestCORSAnswers(t *testing.T) {
	const exposed = "X-Request-Id, Content-Disposition, Location, Retry-After, ETag, WWW-Authenticate"
	shared := map[string]string{"Allow-Origin": apitest.Portal, "Allow-Credentials": "true", "Expose-Headers": exposed}
	open := map[string]string{"Allow-Origin": "*", "Expose-Headers": exposed}
	for name, tt := range map[string]struct {
		origins        []string
		method, target string
		origin         string
		status         int
		want           map[string]string
	}{
		"off":                     {nil, "GET", "/jobs", apitest.Portal, 200, nil},
		"off, changing":           {nil, "POST", apitest.RepositoryPath, apitest.Portal, 403, nil},
		"listed":                  {[]string{apitest.Portal}, "GET", "/jobs", apitest.Portal, 200, shared},
		"listed, changing":        {[]string{apitest.Portal}, "POST", apitest.RepositoryPath, apitest.Portal, 202, shared},
		"listed, capitals":        {[]string{"HTTPS://Portal.Example.ORG:443"}, "POST", apitest.RepositoryPath, apitest.Portal, 202, shared},
		"no origin":               {[]string{apitest.Portal}, "POST", apitest.RepositoryPath, "", 202, nil},
		"another":                 {[]string{apitest.Portal}, "GET", "/jobs", "https://evil.example", 200, nil},
		"another, changing":       {[]string{apitest.Portal}, "POST", apitest.RepositoryPath, "https://evil.example", 403, nil},
		"another scheme":          {[]string{apitest.Portal}, "POST", apitest.RepositoryPath, "http://portal.example.org", 403, nil},
		"another port":            {[]string{apitest.Portal}, "POST", apitest.RepositoryPath, apitest.Portal + ":8443", 403, nil},
		"longer":                  {[]string{apitest.Portal}, "POST", apitest.RepositoryPath, apitest.Portal + ".evil.example", 403, nil},
		"null":                    {[]string{apitest.Portal}, "POST", apitest.RepositoryPath, "null", 403, nil},
		"any":                     {[]string{"*"}, "GET", "/jobs", "https://evil.example", 200, open},
		"any, a sandbox":          {[]string{"*"}, "GET", "/jobs", "null", 200, open},
		"any, changing":           {[]string{"*"}, "POST", apitest.RepositoryPath, "https://evil.example", 403, open},
		"any and listed":          {[]string{"*", apitest.Portal}, "POST", apitest.RepositoryPath, apitest.Portal, 202, shared},
		"any beside listed":       {[]string{apitest.Portal, "*"}, "GET", "/jobs", "https://evil.example", 200, open},
		"problem":                 {[]string{apitest.Portal}, "GET", "/nowhere", apitest.Portal, 404, shared},
		"problem of a query":      {[]string{apitest.Portal}, "GET", "/jobs?x=1", apitest.Portal, 400, shared},
		"problem of a method":     {[]string{apitest.Portal}, "PUT", "/jobs", apitest.Portal, 405, shared},
		"documentation":           {[]string{apitest.Portal}, "GET", "/api-docs", apitest.Portal, 200, shared},
		"problem of another page": {[]string{"*"}, "DELETE", "/jobs/j", "https://evil.example", 403, open},
	} {
		t.Run(name, func(t *testing.T) {
			h := apitest.NewHandler(t, apitest.Working(), api.Config{CORSOrigins: tt.origins})
			header := http.Header{}
			if tt.origin != "" {
				header.Set("Origin", tt.origin)
				header.Set("Sec-Fetch-Site", "cross-site")
			}
			res, body := apitest.Do(t, h, apitest.Ask{Method: tt.method, Target: tt.target, Header: header})
			if res.StatusCode != tt.status {
				t.Errorf("got %d, want %d: %s", res.StatusCode, tt.status, body)
			}
			wantCORS(t, res.Header, tt.want)
			if tt.status == 403 {
				p := apitest.WantProblem(t, res, body, 403, "forbidden", "another origin")
				if p.Hint != "add the origin to server.cors.origins; if it is this server's own, let the proxy in front of it keep the browser's Host header" {
					t.Errorf("hint %q", p.Hint)
				}
			}
			if vary := strings.Join(res.Header.Values("Vary"), ", "); strings.Contains(vary, "Origin") != (tt.origins != nil) {
				t.Errorf("vary: %q", vary)
			}
		})
	}
}

func wantCORS(t *testing.T, header http.Header, want map[string]string) {
	t.Helper()
	got := corsOf(header)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: got %q, want %q", name, got[name], value)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("also got %v", got)
	}
}

func TestCORSOfAMisdirectedRequest(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{CORSOrigins: []string{apitest.Portal}, CheckHost: true})
	header := http.Header{"Origin": {apitest.Portal}, "Access-Control-Request-Method": {"GET"}}
	for _, method := range []string{"GET", "OPTIONS"} {
		res, body := apitest.Do(t, h, apitest.Ask{Method: method, Target: "/jobs", Header: header, Host: "evil.example"})
		apitest.WantProblem(t, res, body, 421, "misdirected_request", "Host header")
		if got := corsOf(res.Header); got["Allow-Origin"] != apitest.Portal || got["Allow-Methods"] != "" {
			t.Errorf("%s: got %v", method, got)
		}
	}
}

// TestCORSOfAFailedCatalogue: a page of a listed origin reads why a catalogue has failed where it would ask its GraphQL.
func TestCORSOfAFailedCatalogue(t *testing.T) {
	h, s := apitest.Catalogued(t, api.Config{CORSOrigins: []string{apitest.Portal}}, apitest.Biosamples())
	header := http.Header{"Origin": {apitest.Portal}, "Access-Control-Request-Method": {"POST"}}
	res, body := preflight(t, h, "/biosamples/graphql", header)
	if got := corsOf(res.Header); res.StatusCode != 204 || body != "" || got["Allow-Methods"] != "GET, HEAD, POST" || got["Allow-Origin"] != apitest.Portal {
		t.Errorf("got %d %q, %v", res.StatusCode, body, got)
	}
	res, body = preflight(t, h, "/biosamples/anything", header)
	if got := corsOf(res.Header); res.StatusCode != 204 || body != "" || got["Allow-Methods"] != "GET, HEAD, POST" {
		t.Errorf("another path: got %d %q, %v", res.StatusCode, body, got)
	}
	s.Put(apitest.Participants())
	if res, _ := preflight(t, h, "/biosamples/anything", header); res.StatusCode != 404 || corsOf(res.Header)["Allow-Methods"] != "" {
		t.Errorf("without the catalogue: got %d, %v", res.StatusCode, corsOf(res.Header))
	}
}

func TestCORSPreflight(t *testing.T) {
	for _, base := range []string{"", "/base"} {
		for name, tt := range map[string]struct {
			origins        []string
			target, origin string
			methods        string
		}{
			"job":               {[]string{apitest.Portal}, "/jobs/j", apitest.Portal, "GET, HEAD, DELETE"},
			"events":            {[]string{apitest.Portal}, "/jobs/j/events", apitest.Portal, "GET, HEAD"},
			"record":            {[]string{apitest.Portal}, apitest.RecordPath, apitest.Portal, "GET, HEAD, POST, DELETE"},
			"documentation":     {[]string{apitest.Portal}, "/api-docs/page.js", apitest.Portal, "GET, HEAD"},
			"query":             {[]string{apitest.Portal}, "/jobs?limit=1", apitest.Portal, "GET, HEAD"},
			"any":               {[]string{"*"}, "/jobs/j", "https://other.example", "GET, HEAD"},
			"any, but listed":   {[]string{"*", apitest.Portal}, apitest.RecordPath, apitest.Portal, "GET, HEAD, POST, DELETE"},
			"any beside listed": {[]string{"*", apitest.Portal}, "/jobs/j", "https://other.example", "GET, HEAD"},
		} {
			t.Run(base+" "+name, func(t *testing.T) {
				h := apitest.NewHandler(t, apitest.Working(), api.Config{CORSOrigins: tt.origins, BasePath: base})
				r := http.Header{
					"Origin": {tt.origin}, "Access-Control-Request-Method": {"DELETE"}, "Sec-Fetch-Site": {"cross-site"},
					"Access-Control-Request-Headers": {"authorization"},
				}
				res, body := preflight(t, h, base+tt.target, r)
				if res.StatusCode != 204 || body != "" {
					t.Errorf("got %d %q", res.StatusCode, body)
				}
				got := corsOf(res.Header)
				if got["Allow-Methods"] != tt.methods {
					t.Errorf("methods: got %q, want %q", got["Allow-Methods"], tt.methods)
				}
				if got["Allow-Headers"] != "Authorization, Content-Type, If-None-Match, Last-Event-ID, X-Request-Id, X-Signature-256, "+
					"Apollo-Require-Preflight, Apollographql-Client-Name, Apollographql-Client-Version, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id" || got["Max-Age"] != "600" {
					t.Errorf("got %v", got)
				}
				if (got["Allow-Origin"] == apitest.Portal) != (tt.origin == apitest.Portal) || got["Allow-Origin"] == "" {
					t.Errorf("origin: got %q", got["Allow-Origin"])
				}
			})
		}
	}
}

// preflight asks without holding the answer against the document, which describes no OPTIONS.
func preflight(t *testing.T, h apitest.Handler, target string, header http.Header) (*http.Response, string) {
	t.Helper()
	s := apitest.Open(t, h, "OPTIONS", target, header)
	<-s.Done
	return s.W.Result(), s.Text()
}

func TestOptionsThatIsNoPreflight(t *testing.T) {
	asks := http.Header{"Origin": {apitest.Portal}, "Access-Control-Request-Method": {"GET"}}
	for name, tt := range map[string]struct {
		origins []string
		target  string
		header  http.Header
		status  int
		code    string
		text    string
	}{
		"off":                    {nil, "/jobs", asks, 405, "method_not_allowed", "does not support this method"},
		"on, no browser":         {[]string{apitest.Portal}, "/jobs", nil, 405, "method_not_allowed", "does not support this method"},
		"on, no method":          {[]string{apitest.Portal}, "/jobs", http.Header{"Origin": {apitest.Portal}}, 405, "method_not_allowed", "does not support"},
		"on, nothing there":      {[]string{apitest.Portal}, "/nowhere", asks, 404, "not_found", "no resource has this path"},
		"on, of another":         {[]string{"https://other.example"}, "/jobs", asks, 403, "forbidden", "another origin"},
		"any, changing":          {[]string{"*"}, apitest.OrganizationPath, asks, 403, "forbidden", "another origin"},
		"any beside listed":      {[]string{"*", "https://other.example"}, apitest.OrganizationPath, asks, 403, "forbidden", "another origin"},
		"on, of another, no way": {[]string{"https://other.example"}, "/nowhere", asks, 404, "not_found", "no resource has this path"},
	} {
		t.Run(name, func(t *testing.T) {
			h := apitest.NewHandler(t, apitest.Working(), api.Config{CORSOrigins: tt.origins})
			res, body := apitest.Do(t, h, apitest.Ask{Method: "OPTIONS", Target: tt.target, Header: tt.header})
			apitest.WantProblem(t, res, body, tt.status, tt.code, tt.text)
			if allow := res.Header.Get("Allow"); (allow == "GET, HEAD") != (tt.status == 405) {
				t.Errorf("allow: %q", allow)
			}
			if got := corsOf(res.Header); got["Allow-Methods"] != "" || got["Allow-Headers"] != "" {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestNewRefusesABadOrigin(t *testing.T) {
	if _, err := apitest.Assemble(apitest.Working(), api.Config{CORSOrigins: []string{apitest.Portal, apitest.Portal + "/"}}); core.CodeOf(err) != core.CodeInvalid {
		t.Errorf("got %v", err)
	}
}
