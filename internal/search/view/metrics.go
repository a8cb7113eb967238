package view

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics records search durations (CONTRACT section 9); nil disables it. The label catalogue is a configured ID, kind one of
// Kind.
type Metrics struct {
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	return &Metrics{duration: promauto.With(reg).NewHistogramVec(prometheus.HistogramOpts{
		Name: "tutti_search_duration_seconds", Help: "How long the index took to answer a search.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
	}, []string{"catalogue", "kind"})}
}

func (m *Metrics) observe(catalogue string, kind Kind, took time.Duration) {
	if m != nil {
		m.duration.WithLabelValues(catalogue, string(kind)).Observe(took.Seconds())
	}
}
