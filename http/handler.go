package http

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tutti/http/openapi"
	"tutti/internal/core"
)

// Paths for monitoring, without the base path.
const (
	pathPing    = "/ping"
	pathReady   = "/ready"
	pathMetrics = "/metrics"
)

// Handler answers every route.
type Handler struct {
	cfg         Config
	ports       Ports
	router      *chi.Mux
	openAPI     func() ([]byte, error) // merges the document at its first call
	crossOrigin crossOrigin
	docs        map[string]docsAsset
	catalogues  *catalogueAnswers
	// smallBodies counts the bytes of the bodies up to smallBody that are held outside Config.Bodies.
	smallBodies atomic.Int64
	// routed are the first segments of all paths that are routed, which are never taken for a catalogue's.
	routed map[string]bool
}

var _ http.Handler = (*Handler)(nil)

// handlerFunc answers a request, or returns the error to answer with; not both.
type handlerFunc func(http.ResponseWriter, *http.Request) error

// New returns a Handler. An invalid body limit, base path or origin is CodeInvalid.
func New(ports Ports, cfg Config) (*Handler, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	h := &Handler{cfg: cfg.withDefaults(), ports: ports, router: chi.NewRouter()}
	var err error
	if h.crossOrigin, err = newCrossOrigin(cfg.CORSOrigins); err != nil {
		return nil, err
	}
	if h.docs, err = loadDocs(); err != nil {
		return nil, err
	}
	h.openAPI = sync.OnceValues(func() ([]byte, error) {
		return openapi.Merge(h.cfg.Version, h.cfg.BasePath, indexingDocument, metadataDocument, searchDocument, systemDocument)
	})
	h.catalogues = &catalogueAnswers{port: ports.Catalogues, basePath: h.cfg.BasePath}
	h.route()
	h.routed = firstSegments(h.Routes())
	return h, nil
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.router.ServeHTTP(w, r) }

// Route is one method and path pattern that a Handler answers, without the base path.
type Route struct{ Method, Pattern string }

// Routes lists every route, in no particular order.
func (h *Handler) Routes() []Route {
	var routes []Route
	// Walk returns only the callback's errors, and this one returns none.
	_ = chi.Walk(h.router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes = append(routes, Route{Method: method, Pattern: pattern[len(h.cfg.BasePath):]})
		return nil
	})
	return routes
}

func (h *Handler) route() {
	h.router.Use(identify, h.pace, h.observe, h.recoverPanic, h.reserve, h.shareAnswers, h.checkHost, h.answerPreflight, h.checkOrigin, h.limitBody,
		routeRaw)
	h.router.NotFound(h.redirectToDocs(h.answerUnrouted))
	h.router.MethodNotAllowed(h.answerUnrouted)

	const repository = "/index/repository/{repositoryCode}"
	const organization = repository + "/organization/{organization}"
	const record = organization + "/id/{id}"
	h.handle(http.MethodPost, record, h.record(core.KindIndex), rejectParams("force", "rebuild"), writerOf("organization"))
	h.handle(http.MethodDelete, record, h.record(core.KindRemove), rejectParams("force", "rebuild"), writerOf("organization"))
	h.handle(http.MethodPost, organization, h.run(core.ScopeOrganization, organizationTarget),
		parameters{allowed: []string{"force"}, rejected: []string{"rebuild"}}, writerOf("organization"))
	h.handle(http.MethodPost, repository, h.run(core.ScopeRepository, repositoryTarget), allowParams("force", "rebuild"), system())

	h.handle(http.MethodGet, "/jobs", h.listJobs, allowParams("repository", "state", "limit", "cursor"), token())
	h.handle(http.MethodGet, "/jobs/{id}", h.getJob, allowParams(), token())
	h.handle(http.MethodDelete, "/jobs/{id}", h.cancelJob, allowParams(), token())
	h.handleMedia(http.MethodGet, "/jobs/{id}/events", []string{contentTypeEvents}, h.streamJob, allowParams("lastEventId"), token())

	h.handleMedia(http.MethodGet, "/dead-letters", []string{contentTypeJSON, contentTypeNDJSON}, h.listDeadLetters,
		allowParams("repository", "reason", "limit", "cursor"), token())
	h.handle(http.MethodPost, "/dead-letters/retry", h.retryDeadLetters, allowParams("repository", "reason"), system())
	h.handle(http.MethodGet, "/dead-letters/{id}", h.getDeadLetter, allowParams(), token())
	h.handle(http.MethodDelete, "/dead-letters/{id}", h.discardDeadLetter, allowParams(), system())
	h.handle(http.MethodPost, "/dead-letters/{id}/retry", h.retryDeadLetter, allowParams(), token())

	h.handle(http.MethodPost, "/notifications/{repositoryCode}", h.notify, allowParams(), signed("repositoryCode"))

	h.routeSchemas()
	h.routeStudies()
	h.routeKeys()
	h.routeIntrospection()
	h.routeSearch()

	h.handle(http.MethodGet, pathPing, h.ping, allowParams(), open())
	h.handle(http.MethodGet, pathReady, h.ready, allowParams(), open())
	h.handle(http.MethodGet, "/openapi.json", h.serveOpenAPI, allowParams(), open())
	h.handleDocs()
	h.handleMetrics()
}

// handle routes a handler that answers JSON and takes the given query parameters.
func (h *Handler) handle(method, pattern string, answer handlerFunc, query parameters, who access) {
	h.handleMedia(method, pattern, []string{contentTypeJSON}, answer, query, who)
}

// handleMedia routes a handler that answers one of the offered media types and takes the given query parameters.
func (h *Handler) handleMedia(method, pattern string, offers []string, answer handlerFunc, query parameters, who access) {
	h.mount(method, pattern, who, h.negotiating(offers, answer, query))
}

// negotiating returns a handler that checks Accept and the query parameters, calls answer and writes its error.
func (h *Handler) negotiating(offers []string, answer handlerFunc, query parameters) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if negotiate(r.Header.Values("Accept"), offers...) == "" {
			h.fail(w, r, notAcceptable(offers))
			return
		}
		err := query.check(r)
		if err == nil {
			err = answer(w, r)
		}
		if err != nil {
			h.fail(w, r, err)
		}
	}
}

// mount adds a route behind requireAccess. Only handleCatalogue and routeIntrospection add routes elsewhere.
func (h *Handler) mount(method, pattern string, who access, next http.HandlerFunc) {
	h.router.MethodFunc(method, h.cfg.BasePath+pattern, h.requireAccess(who, next))
}

// handleMetrics routes /metrics, which answers in Prometheus' formats; name[] picks metrics, as promhttp has it.
func (h *Handler) handleMetrics() {
	metrics := promhttp.HandlerFor(h.cfg.Gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	query := allowParams("name[]")
	h.mount(http.MethodGet, pathMetrics, open(), func(w http.ResponseWriter, r *http.Request) {
		if err := query.check(r); err != nil {
			h.fail(w, r, err)
			return
		}
		metrics.ServeHTTP(chunkWriter{w}, r)
	})
}
