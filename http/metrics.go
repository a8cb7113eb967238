package http

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics measures requests. A nil *Metrics measures nothing.
type Metrics struct {
	duration *prometheus.HistogramVec
	// expires and reloads show nothing without TLS.
	expires *prometheus.GaugeVec
	reloads *prometheus.CounterVec
	open    prometheus.Gauge
	over    *prometheus.CounterVec
	slow    prometheus.Counter
}

// NewMetrics makes the package's metrics and registers them with reg, which panics on a name registered twice.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tutti_http_request_duration_seconds",
			Help:    "Time to answer a request, by the route's pattern.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route", "method", "code"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tutti_http_connections", Help: "Connections that are open."}),
		over: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_http_connections_refused_total",
			Help: "Connections over a limit, on which at most /ping, /ready and /metrics are answered.",
		}, []string{"limit"}),
		slow: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tutti_http_slow_bodies_total", Help: "Bodies of requests that were sent too slowly to be read to their end.",
		}),
	}
	m.expires = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tutti_tls_certificate_expiry_timestamp_seconds", Help: "Unix time at which the certificate in use expires.",
	}, nil)
	m.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tutti_tls_certificate_reloads_total", Help: "Changes of the certificate's files, by whether the new pair is used.",
	}, []string{"result"})
	for _, limit := range []string{limitTotal, limitAddress} {
		m.over.WithLabelValues(limit)
	}
	reg.MustRegister(m.duration, m.open, m.over, m.slow, m.expires, m.reloads)
	return m
}

func (m *Metrics) certificateExpires(at time.Time) {
	if m != nil {
		m.expires.WithLabelValues().Set(float64(at.Unix()))
		for _, result := range []string{resultUsed, resultRefused} {
			m.reloads.WithLabelValues(result)
		}
	}
}

func (m *Metrics) certificateReloaded(used bool) {
	if m == nil {
		return
	}
	result := resultRefused
	if used {
		result = resultUsed
	}
	m.reloads.WithLabelValues(result).Inc()
}

// Values of the label result of reloads.
const (
	resultUsed    = "used"
	resultRefused = "refused"
)

// connections notes how many are open.
func (m *Metrics) connections(n int) {
	if m != nil {
		m.open.Set(float64(n))
	}
}

// limited counts a connection over a limit.
func (m *Metrics) limited(limit string) {
	if m != nil {
		m.over.WithLabelValues(limit).Inc()
	}
}

// slowBody counts a body that ended by its deadline.
func (m *Metrics) slowBody() {
	if m != nil {
		m.slow.Inc()
	}
}

func (m *Metrics) observe(route, method string, status int, d time.Duration) {
	if m != nil {
		m.duration.WithLabelValues(route, methodLabel(method), strconv.Itoa(status)).Observe(d.Seconds())
	}
}

// methodLabel bounds the label: a client may send any word as its method.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions:
		return method
	default:
		return "other"
	}
}
