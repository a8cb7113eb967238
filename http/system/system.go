package system

import (
	"context"
	_ "embed"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tutti/http/api"
	"tutti/internal/core"
)

//go:embed openapi.yaml
var document []byte

// Surface is the surface for probes, monitoring, API keys and documentation.
type Surface struct {
	ports Ports
	docs  docs
}

// New returns a Surface that uses ports.
func New(ports Ports) (*Surface, error) {
	if ports.Gatherer == nil {
		ports.Gatherer = prometheus.NewRegistry()
	}
	pages, err := loadDocs()
	if err != nil {
		return nil, err
	}
	return &Surface{ports: ports, docs: pages}, nil
}

// OpenAPI implements Surface.
func (s *Surface) OpenAPI() []byte { return document }

// Register implements Surface.
func (s *Surface) Register(r *api.Router) {
	keys{s.ports.Keys}.register(r)
	r.HandleMedia(http.MethodGet, "/backup", []string{contentTypeTar}, s.backup, api.StrictParams(), api.System())
	r.Handle(http.MethodGet, api.PathPing, s.ping, api.StrictParams(), api.Open())
	r.Handle(http.MethodGet, "/health", s.health, api.LenientParams(), api.Open())
	r.Handle(http.MethodGet, "/isAlive", s.isAlive, api.LenientParams(), api.Open())
	r.Handle(http.MethodGet, api.PathReady, s.ready, api.StrictParams(), api.Open())
	r.Handle(http.MethodGet, api.PathServiceInfo, s.serviceInfo(r), api.StrictParams(), api.Open())
	r.Handle(http.MethodGet, "/openapi.json", s.openAPI(r), api.StrictParams(), api.Open())
	s.docs.register(r)
	metrics := promhttp.HandlerFor(s.ports.Gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	// promhttp negotiates Prometheus' formats itself; name[] selects metrics.
	r.HandleFunc(http.MethodGet, api.PathMetrics, api.RequireAccess(api.Open(), func(w http.ResponseWriter, req *http.Request) {
		if err := api.StrictParams().Check(req); err != nil {
			api.Fail(w, req, err)
			return
		}
		metrics.ServeHTTP(api.ChunkWriter{ResponseWriter: w}, req)
	}))
}

// openAPI serves the OpenAPI document of all surfaces.
func (s *Surface) openAPI(router *api.Router) api.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		document, err := router.OpenAPI()
		if err != nil {
			return err
		}
		if s.ports.Examples != nil {
			document = []byte(strings.NewReplacer(s.ports.Examples()...).Replace(string(document)))
		}
		api.WriteEncoded(w, document)
		return nil
	}
}

// isAlive serves the check that Song's clients make first.
func (s *Surface) isAlive(w http.ResponseWriter, _ *http.Request) error {
	api.WriteEncoded(w, []byte("true"))
	return nil
}

// healthTimeout bounds the probes of the components.
const healthTimeout = 5 * time.Second

type readyBody struct {
	// Status is that of the catalogues, or unhealthy when the process is not ready.
	Status core.CatalogueStatus `json:"status"`
	// Ready is false exactly when the status is 503.
	Ready bool `json:"ready"`
	// Reasons describes what is wrong, one sentence for each.
	Reasons    []string                  `json:"reasons"`
	Components map[string]ComponentState `json:"components"`
	Paused     []core.Pause              `json:"paused"`
}

type pingBody struct {
	Message string `json:"message"`
}

func (s *Surface) ping(w http.ResponseWriter, r *http.Request) error {
	return api.WriteJSON(w, http.StatusOK, pingBody{Message: "tutti is alive"})
}

// health serves the check that Overture's Conductor makes of Maestro and Lyric: its scripts search the text "message":"OK"
// in the body.
func (s *Surface) health(w http.ResponseWriter, r *http.Request) error {
	return api.WriteJSON(w, http.StatusOK, pingBody{Message: "OK"})
}

// ready responds with 503, and the same body with the status unhealthy, when the process stops, the catalogues are unhealthy, or the
// queue or the store is down (CONTRACT section 0).
func (s *Surface) ready(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	health := s.ports.Readiness.Health(ctx)
	catalogues := s.ports.Catalogues.Catalogues()
	body := readyBody{
		Status: catalogues.Status(), Reasons: append([]string{}, health.Reasons...), Components: health.Components, Paused: health.Paused,
	}
	for _, p := range health.Paused {
		body.Reasons = append(body.Reasons, "repository "+p.Repository+" is paused: "+p.Reason)
	}
	for _, c := range catalogues.Catalogues {
		if c.Problem != nil {
			body.Reasons = append(body.Reasons, "catalogue "+c.ID+" failed: "+c.Problem.Message)
		}
	}
	if body.Components == nil {
		body.Components = map[string]ComponentState{}
	}
	if body.Paused == nil {
		body.Paused = []core.Pause{}
	}
	if health.Stopping {
		body.Reasons = append(body.Reasons, "the process is stopping")
	}
	body.Ready = !health.Stopping && body.Status != core.CataloguesUnhealthy &&
		body.Components["queue"] != ComponentDown && body.Components["store"] != ComponentDown
	status := http.StatusOK
	if !body.Ready {
		// A client of the status alone must not take a process that cannot store anything for a healthy one.
		body.Status = core.CataloguesUnhealthy
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", api.RetryAfter(0))
	}
	return api.WriteJSON(w, status, body)
}
