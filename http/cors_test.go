package http_test

import (
	"net/http"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
)

const portal = "https://portal.example.org"

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
	shared := map[string]string{"Allow-Origin": portal, "Allow-Credentials": "true", "Expose-Headers": exposed}
	open := map[string]string{"Allow-Origin": "*", "Expose-Headers": exposed}
	for name, tt := range map[string]struct {
		origins        []string
		method, target string
		origin         string
		status         int
		want           map[string]string
	}{
		"off":                     {nil, "GET", "/jobs", portal, 200, nil},
		"off, changing":           {nil, "POST", repositoryPath, portal, 403, nil},
		"listed":                  {[]string{portal}, "GET", "/jobs", portal, 200, shared},
		"listed, changing":        {[]string{portal}, "POST", repositoryPath, portal, 202, shared},
		"listed, capitals":        {[]string{"HTTPS://Portal.Example.ORG:443"}, "POST", repositoryPath, portal, 202, shared},
		"no origin":               {[]string{portal}, "POST", repositoryPath, "", 202, nil},
		"another":                 {[]string{portal}, "GET", "/jobs", "https://evil.example", 200, nil},
		"another, changing":       {[]string{portal}, "POST", repositoryPath, "https://evil.example", 403, nil},
		"another scheme":          {[]string{portal}, "POST", repositoryPath, "http://portal.example.org", 403, nil},
		"another port":            {[]string{portal}, "POST", repositoryPath, portal + ":8443", 403, nil},
		"longer":                  {[]string{portal}, "POST", repositoryPath, portal + ".evil.example", 403, nil},
		"null":                    {[]string{portal}, "POST", repositoryPath, "null", 403, nil},
		"any":                     {[]string{"*"}, "GET", "/jobs", "https://evil.example", 200, open},
		"any, a sandbox":          {[]string{"*"}, "GET", "/jobs", "null", 200, open},
		"any, changing":           {[]string{"*"}, "POST", repositoryPath, "https://evil.example", 403, open},
		"any and listed":          {[]string{"*", portal}, "POST", repositoryPath, portal, 202, shared},
		"any beside listed":       {[]string{portal, "*"}, "GET", "/jobs", "https://evil.example", 200, open},
		"problem":                 {[]string{portal}, "GET", "/nowhere", portal, 404, shared},
		"problem of a query":      {[]string{portal}, "GET", "/jobs?x=1", portal, 400, shared},
		"problem of a method":     {[]string{portal}, "PUT", "/jobs", portal, 405, shared},
		"documentation":           {[]string{portal}, "GET", "/api-docs", portal, 200, shared},
		"problem of another page": {[]string{"*"}, "DELETE", "/jobs/j", "https://evil.example", 403, open},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t, working(), api.Config{CORSOrigins: tt.origins})
			header := http.Header{}
			if tt.origin != "" {
				header.Set("Origin", tt.origin)
				header.Set("Sec-Fetch-Site", "cross-site")
			}
			res, body := do(t, h, ask{method: tt.method, target: tt.target, header: header})
			if res.StatusCode != tt.status {
				t.Errorf("got %d, want %d: %s", res.StatusCode, tt.status, body)
			}
			wantCORS(t, res.Header, tt.want)
			if tt.status == 403 {
				p := wantProblem(t, res, body, 403, "forbidden", "another origin")
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
	h := newHandler(t, working(), api.Config{CORSOrigins: []string{portal}, CheckHost: true})
	header := http.Header{"Origin": {portal}, "Access-Control-Request-Method": {"GET"}}
	for _, method := range []string{"GET", "OPTIONS"} {
		res, body := do(t, h, ask{method: method, target: "/jobs", header: header, host: "evil.example"})
		wantProblem(t, res, body, 421, "misdirected_request", "Host header")
		if got := corsOf(res.Header); got["Allow-Origin"] != portal || got["Allow-Methods"] != "" {
			t.Errorf("%s: got %v", method, got)
		}
	}
}

// TestCORSOfAFailedCatalogue: a page of a listed origin reads why a catalogue has failed where it would ask its GraphQL.
func TestCORSOfAFailedCatalogue(t *testing.T) {
	h, s := catalogued(t, api.Config{CORSOrigins: []string{portal}}, biosamples())
	header := http.Header{"Origin": {portal}, "Access-Control-Request-Method": {"POST"}}
	res, body := preflight(t, h, "/biosamples/graphql", header)
	if got := corsOf(res.Header); res.StatusCode != 204 || body != "" || got["Allow-Methods"] != "GET, HEAD, POST" || got["Allow-Origin"] != portal {
		t.Errorf("got %d %q, %v", res.StatusCode, body, got)
	}
	res, body = preflight(t, h, "/biosamples/anything", header)
	if got := corsOf(res.Header); res.StatusCode != 204 || body != "" || got["Allow-Methods"] != "GET, HEAD, POST" {
		t.Errorf("another path: got %d %q, %v", res.StatusCode, body, got)
	}
	s.put(participants())
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
			"job":               {[]string{portal}, "/jobs/j", portal, "GET, HEAD, DELETE"},
			"events":            {[]string{portal}, "/jobs/j/events", portal, "GET, HEAD"},
			"record":            {[]string{portal}, recordPath, portal, "GET, HEAD, POST, DELETE"},
			"documentation":     {[]string{portal}, "/api-docs/page.js", portal, "GET, HEAD"},
			"query":             {[]string{portal}, "/jobs?limit=1", portal, "GET, HEAD"},
			"any":               {[]string{"*"}, "/jobs/j", "https://other.example", "GET, HEAD"},
			"any, but listed":   {[]string{"*", portal}, recordPath, portal, "GET, HEAD, POST, DELETE"},
			"any beside listed": {[]string{"*", portal}, "/jobs/j", "https://other.example", "GET, HEAD"},
		} {
			t.Run(base+" "+name, func(t *testing.T) {
				h := newHandler(t, working(), api.Config{CORSOrigins: tt.origins, BasePath: base})
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
				if (got["Allow-Origin"] == portal) != (tt.origin == portal) || got["Allow-Origin"] == "" {
					t.Errorf("origin: got %q", got["Allow-Origin"])
				}
			})
		}
	}
}

// preflight asks without holding the answer against the document, which describes no OPTIONS.
func preflight(t *testing.T, h handler, target string, header http.Header) (*http.Response, string) {
	t.Helper()
	s := open(t, h, "OPTIONS", target, header)
	<-s.done
	return s.w.Result(), s.text()
}

func TestOptionsThatIsNoPreflight(t *testing.T) {
	asks := http.Header{"Origin": {portal}, "Access-Control-Request-Method": {"GET"}}
	for name, tt := range map[string]struct {
		origins []string
		target  string
		header  http.Header
		status  int
		code    string
		text    string
	}{
		"off":                    {nil, "/jobs", asks, 405, "method_not_allowed", "does not support this method"},
		"on, no browser":         {[]string{portal}, "/jobs", nil, 405, "method_not_allowed", "does not support this method"},
		"on, no method":          {[]string{portal}, "/jobs", http.Header{"Origin": {portal}}, 405, "method_not_allowed", "does not support"},
		"on, nothing there":      {[]string{portal}, "/nowhere", asks, 404, "not_found", "no resource has this path"},
		"on, of another":         {[]string{"https://other.example"}, "/jobs", asks, 403, "forbidden", "another origin"},
		"any, changing":          {[]string{"*"}, organizationPath, asks, 403, "forbidden", "another origin"},
		"any beside listed":      {[]string{"*", "https://other.example"}, organizationPath, asks, 403, "forbidden", "another origin"},
		"on, of another, no way": {[]string{"https://other.example"}, "/nowhere", asks, 404, "not_found", "no resource has this path"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t, working(), api.Config{CORSOrigins: tt.origins})
			res, body := do(t, h, ask{method: "OPTIONS", target: tt.target, header: tt.header})
			wantProblem(t, res, body, tt.status, tt.code, tt.text)
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
	if _, err := assemble(working(), api.Config{CORSOrigins: []string{portal, portal + "/"}}); core.CodeOf(err) != core.CodeInvalid {
		t.Errorf("got %v", err)
	}
}
