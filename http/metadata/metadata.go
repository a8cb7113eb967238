package metadata

import (
	_ "embed"
	"net/http"
	"net/url"

	"tutti/http/api"
	"tutti/http/problem"
)

//go:embed openapi.yaml
var document []byte

// Surface is the surface of the analysis types (CONTRACT section 7) and of the built-in metadata repository (section 8).
type Surface struct{ ports Ports }

// New returns a Surface that uses ports.
func New(ports Ports) *Surface {
	if ports.Payloads == nil {
		ports.Payloads = api.Unbounded{}
	}
	return &Surface{ports: ports}
}

// OpenAPI implements Surface.
func (s *Surface) OpenAPI() []byte { return document }

// Register implements Surface.
func (s *Surface) Register(r *api.Router) {
	r.ExtendProblems(func(p problem.Problem, req *http.Request, err error) problem.Problem {
		for _, path := range []string{"/schemas", "/studies", "/submit", "/entities", "/export", "/v2"} {
			if r.Below(req, path) {
				return p.WithMetadataMembers(problem.ErrorIDOf(err), requestURL(req), r.Now())
			}
		}
		return p
	})
	analysisTypes{s.ports.AnalysisTypes}.register(r)
	studies{s.ports.Studies}.register(r)
	analyses{s.ports.Analyses}.register(r)
	files{s.ports.Files}.register(r)
	entities{s.ports.Entities}.register(r)
	exports{s.ports.Exports}.register(r)
	registerAPIDocs(r)
	submissions{port: s.ports.Submissions, memory: s.ports.Payloads, notIndexed: s.ports.NotIndexed}.register(r)
}

// requestURL returns the URL of a request as this server knows it, without the query, which may contain secrets.
func requestURL(r *http.Request) string {
	if r.Host == "" {
		return api.InstanceOf(r)
	}
	u := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	return u.String()
}
