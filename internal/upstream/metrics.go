package upstream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the measurements of all upstream clients of a process. Nil is off.
type Metrics struct {
	fetchDuration *prometheus.HistogramVec
	up            *prometheus.GaugeVec
}

// NewMetrics registers the measurements (CONTRACT section 9) with reg; a nil reg registers none of them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		fetchDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tutti_fetch_duration_seconds",
			Help:    "Time that an upstream took for one call, its body included and the time that the index held it up left out.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2.5, 12),
		}, []string{"repository"}),
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_upstream_up",
			Help: "1 when the last call to the repository was answered in whole, 0 when it was not.",
		}, []string{"repository"}),
	}
	if reg != nil {
		reg.MustRegister(m.fetchDuration, m.up)
	}
	return m
}

// observe notes one call that ended after spending took. known is false for a call that its caller gave up.
func (m *Metrics) observe(repository string, took time.Duration, up, known bool) {
	if known {
		m.Observe(repository, took, up)
	}
}

// Observe notes one call to a repository that took so long; up is false when it was not answered in whole. Clients of this
// package do it by themselves; it is for those that ask without HTTP.
func (m *Metrics) Observe(repository string, took time.Duration, up bool) {
	if m == nil {
		return
	}
	m.fetchDuration.WithLabelValues(repository).Observe(took.Seconds())
	value := 0.0
	if up {
		value = 1
	}
	m.up.WithLabelValues(repository).Set(value)
}
