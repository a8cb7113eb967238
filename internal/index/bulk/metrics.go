package bulk

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tutti/internal/core"
)

// Metrics are the metrics of a Writer (CONTRACT section 9); nil is off. The label status is "ok", or the core.Code of a request
// that failed as a whole.
type Metrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
	bytes    prometheus.Histogram
	inFlight prometheus.Gauge
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	return &Metrics{
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_bulk_requests_total", Help: "Bulk requests to the index by status.",
		}, []string{"status"}),
		duration: f.NewHistogram(prometheus.HistogramOpts{
			Name: "tutti_bulk_request_duration_seconds", Help: "Duration of a bulk request.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
		bytes: f.NewHistogram(prometheus.HistogramOpts{
			Name: "tutti_bulk_request_bytes", Help: "Size of a bulk request's body before compression.",
			Buckets: prometheus.ExponentialBuckets(1024, 4, 9),
		}),
		inFlight: f.NewGauge(prometheus.GaugeOpts{
			Name: "tutti_bulk_in_flight", Help: "Bulk requests in flight.",
		}),
	}
}

func (m *Metrics) begin() {
	if m != nil {
		m.inFlight.Inc()
	}
}

func (m *Metrics) end(code core.Code, took time.Duration, size int) {
	if m == nil {
		return
	}
	status := "ok"
	if code != "" {
		status = string(code)
	}
	m.inFlight.Dec()
	m.requests.WithLabelValues(status).Inc()
	m.duration.Observe(took.Seconds())
	m.bytes.Observe(float64(size))
}
