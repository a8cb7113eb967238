package federation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics records the state of remote nodes; nil disables it. The label catalogue is a configured ID, node the configured name of
// a node of it.
type Metrics struct {
	up       *prometheus.GaugeVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	with, labels := promauto.With(reg), []string{"catalogue", "node"}
	return &Metrics{
		up: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_federation_node_up", Help: "Whether a remote node of a federation answered when it was asked last: 1 when it did.",
		}, labels),
		duration: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tutti_federation_request_duration_seconds", Help: "How long a remote node of a federation took to answer a search, or not to.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 13),
		}, labels),
	}
}

func (m *Metrics) show(r *remote, up bool) {
	if m == nil {
		return
	}
	value := 0.0
	if up {
		value = 1
	}
	m.up.WithLabelValues(r.catalogue, r.label).Set(value)
}

func (m *Metrics) observe(r *remote, took time.Duration) {
	if m != nil {
		m.duration.WithLabelValues(r.catalogue, r.label).Observe(took.Seconds())
	}
}

// forget deletes the series of a node that is no longer configured.
func (m *Metrics) forget(r *remote) {
	if m != nil {
		m.up.DeleteLabelValues(r.catalogue, r.label)
		m.duration.DeleteLabelValues(r.catalogue, r.label)
	}
}
