package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"tutti/http/cors"
	"tutti/http/media"
	"tutti/http/openapi"
	"tutti/http/problem"
	"tutti/internal/base/cache"
	"tutti/internal/core"
)

// Paths for monitoring, without the base path. They are served also over the connection limit and for any Host.
const (
	PathPing = "/ping"
	// PathServiceInfo is a path that a catalogue may have as its id: it is newer than the first release, and has nothing below it.
	PathServiceInfo = "/service-info"
	PathReady       = "/ready"
	PathMetrics     = "/metrics"
)

// Surface is a part of the API: its routes and their part of the OpenAPI document.
type Surface interface {
	// Register adds the routes to r. It is called once.
	Register(r *Router)
	// OpenAPI returns the part of the OpenAPI document in YAML.
	OpenAPI() []byte
}

// Router serves the routes of its surfaces.
type Router struct {
	cfg Config
	mux *chi.Mux
	// document makes the OpenAPI document on the first call.
	document    func() (document, error)
	crossOrigin cors.Policy
	// smallBodies counts the bytes of the bodies up to SmallBody that are held outside Config.Bodies.
	smallBodies atomic.Int64
	// routed are the first segments of all paths that are routed.
	routed map[string]bool
	// extensions complete problems, and redirects serve some paths without a route.
	extensions []ProblemExtension
	redirects  []func(http.ResponseWriter, *http.Request) bool
	// challenges add parameters to the WWW-Authenticate headers of some paths.
	challenges []ChallengeExtension
	// errorPages show problems of some paths as pages.
	errorPages []ErrorPage
	wildcards  Wildcards
	// slashed holds the patterns of the paths that may end with a slash, without the base path.
	slashed map[string]bool
	// ignoredQueries holds the parameters that logIgnored has logged.
	ignoredQueries *cache.LRU[string, struct{}]
}

var _ http.Handler = (*Router)(nil)

// document is an OpenAPI document in JSON, with the names of the query parameters of each operation by its path and its method in lower case.
type document struct {
	encoded []byte
	queries map[string]map[string][]string
}

// newDocument reads the query parameters of an OpenAPI document.
func newDocument(encoded []byte) (document, error) {
	d := document{encoded, map[string]map[string][]string{}}
	var read struct {
		Paths map[string]map[string]struct{ Parameters []struct{ Name, In string } }
	}
	err := json.Unmarshal(encoded, &read)
	for path, operations := range read.Paths {
		d.queries[path] = map[string][]string{}
		for method, operation := range operations {
			names := []string{}
			for _, p := range operation.Parameters {
				if p.In == "query" {
					names = append(names, p.Name)
				}
			}
			d.queries[path][method] = names
		}
	}
	return d, err
}

// HandlerFunc writes the response to a request, or returns the error to respond with; not both.
type HandlerFunc func(http.ResponseWriter, *http.Request) error

// ProblemExtension adds the members of one surface to a problem.
type ProblemExtension func(p problem.Problem, r *http.Request, err error) problem.Problem

// ChallengeExtension returns a parameter for the WWW-Authenticate header of an error response, "" for none.
type ChallengeExtension func(r *http.Request) string

// ErrorPage writes a problem as a page for people, with its status; it reports whether it did.
type ErrorPage func(w http.ResponseWriter, r *http.Request, p problem.Problem) bool

// Wildcards decides about paths whose first segment is a parameter, which also match patterns of other surfaces.
type Wildcards interface {
	// Owns reports whether a pattern that begins with a parameter may match a path.
	Owns(path string) bool
	// Override returns the handler for a path without a route; nil for the usual problem.
	Override(path string) http.HandlerFunc
}

// New returns a Router for the surfaces. An invalid body limit, base path or origin is CodeInvalid.
func New(cfg Config, surfaces ...Surface) (*Router, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	h := &Router{
		cfg: cfg.withDefaults(), mux: chi.NewRouter(), slashed: map[string]bool{},
		ignoredQueries: cache.NewLRU[string, struct{}](maxIgnoredQueries),
	}
	var err error
	if h.crossOrigin, err = cors.New(cors.Config{
		Origins: cfg.CORSOrigins, RequestHeaders: requestHeaders, ResponseHeaders: responseHeaders, Methods: h.preflightMethods, Fail: Fail,
	}); err != nil {
		return nil, err
	}
	h.mux.Use(h.identify, pace(h.cfg.Metrics, h.cfg.MaxBodyBytes), h.cfg.observe, recoverPanic, h.cfg.serveOverLimit, h.crossOrigin.Share,
		h.cfg.checkHost, h.crossOrigin.ServePreflight, h.crossOrigin.Check, limitBody(h.cfg.MaxBodyBytes), h.routeRaw)
	h.mux.NotFound(h.serveMissing)
	h.mux.MethodNotAllowed(h.ServeUnrouted)
	var parts [][]byte
	for _, s := range surfaces {
		s.Register(h)
		parts = append(parts, s.OpenAPI())
	}
	h.routed = firstSegments(h.Routes())
	h.document = sync.OnceValues(func() (d document, err error) {
		encoded, err := openapi.Merge(h.cfg.Version, h.cfg.BasePath, parts...)
		if err != nil {
			return d, err
		}
		return newDocument(encoded)
	})
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// OpenAPI returns the OpenAPI document of all surfaces as JSON.
func (h *Router) OpenAPI() ([]byte, error) {
	d, err := h.document()
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "making the OpenAPI document", err)
	}
	return d.encoded, nil
}

// BasePath returns the prefix of every path, "" for none.
func (h *Router) BasePath() string { return h.cfg.BasePath }

// Authenticates reports whether authentication is on.
func (h *Router) Authenticates() bool { return h.cfg.Authenticator != nil }

// Now returns the time by the clock of Config.
func (h *Router) Now() time.Time { return h.cfg.Now() }

// ExtendProblems registers extend, which completes all problems. Surfaces call it in Register.
func (h *Router) ExtendProblems(extend ProblemExtension) { h.extensions = append(h.extensions, extend) }

// ExtendChallenges registers extend, which is called for all WWW-Authenticate headers. Surfaces call it in Register.
func (h *Router) ExtendChallenges(extend ChallengeExtension) {
	h.challenges = append(h.challenges, extend)
}

// extendChallenge returns a challenge with the parameters that surfaces add.
func (h *Router) extendChallenge(r *http.Request, challenge string) string {
	for _, extend := range h.challenges {
		if parameter := extend(r); parameter != "" {
			separator := ", "
			if challenge == bearer {
				separator = " "
			}
			challenge += separator + parameter
		}
	}
	return challenge
}

// Redirect registers answer for paths without a route; it reports whether it wrote a response.
func (h *Router) Redirect(answer func(http.ResponseWriter, *http.Request) bool) {
	h.redirects = append(h.redirects, answer)
}

// ShowErrors registers show for problems that people read. Surfaces call it in Register.
func (h *Router) ShowErrors(show ErrorPage) { h.errorPages = append(h.errorPages, show) }

// UseWildcards registers w, which decides about paths whose first segment is a parameter.
func (h *Router) UseWildcards(w Wildcards) { h.wildcards = w }

// Route is one method and path pattern of a Router, without the base path.
type Route struct{ Method, Pattern string }

// Routes lists every route, in no particular order.
func (h *Router) Routes() []Route {
	var routes []Route
	// Walk returns only the callback's errors, and this one returns none.
	_ = chi.Walk(h.mux, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes = append(routes, Route{Method: method, Pattern: pattern[len(h.cfg.BasePath):]})
		return nil
	})
	return routes
}

// firstSegments returns the first segments of the paths of routes, without parameters.
func firstSegments(routes []Route) map[string]bool {
	first := map[string]bool{}
	for _, r := range routes {
		segment, _, _ := strings.Cut(strings.TrimPrefix(r.Pattern, "/"), "/")
		if !strings.HasPrefix(segment, "{") && r.Pattern != PathServiceInfo {
			first[segment] = true
		}
	}
	return first
}

// Begins reports whether the path of a route begins with a segment, so that no catalogue can have it as its id.
func (h *Router) Begins(segment string) bool { return h.routed[segment] }

// Handle routes a handler that responds with JSON, with the given rules for query parameters.
func (h *Router) Handle(method, pattern string, answer HandlerFunc, query Parameters, who Access) {
	h.HandleMedia(method, pattern, []string{media.JSON}, answer, query, who)
}

// HandleMedia routes a handler that responds with one of the offered media types, with the given rules for query parameters.
func (h *Router) HandleMedia(method, pattern string, offers []string, answer HandlerFunc, query Parameters, who Access) {
	if query.slash {
		h.slashed[pattern] = true
	}
	h.HandleFunc(method, pattern, RequireAccess(who, Negotiating(offers, answer, query)))
}

// HandleFunc routes a handler as it is: it must check access and parameters itself.
func (h *Router) HandleFunc(method, pattern string, next http.HandlerFunc) {
	h.mux.MethodFunc(method, h.cfg.BasePath+pattern, next)
}

// Negotiating returns a handler that checks Accept and the query parameters, calls answer and writes its error.
func Negotiating(offers []string, answer HandlerFunc, query Parameters) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if media.Negotiate(r.Header.Values("Accept"), offers...) == "" {
			Fail(w, r, NotAcceptable(offers))
			return
		}
		err := query.Check(r)
		if err == nil {
			err = answer(w, r)
		}
		if err != nil {
			Fail(w, r, err)
		}
	}
}
