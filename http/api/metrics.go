package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics measures requests. A nil *Metrics measures nothing.
type Metrics struct {
	duration *prometheus.HistogramVec
	slow     prometheus.Counter
}

// NewMetrics registers the package's metrics with reg, which panics on a duplicate name.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tutti_http_request_duration_seconds",
			Help:    "Time to respond to a request, by the route's pattern.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route", "method", "code"}),
		slow: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tutti_http_slow_bodies_total", Help: "Bodies of requests that were sent too slowly to be read to their end.",
		}),
	}
	reg.MustRegister(m.duration, m.slow)
	return m
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
