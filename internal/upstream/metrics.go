package upstream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of all upstream clients of a process. A nil Metrics records nothing.
type Metrics struct {
	fetchDuration *prometheus.HistogramVec
	up            *prometheus.GaugeVec
}

// NewMetrics returns metrics (CONTRACT section 9) registered with reg; a nil reg registers none.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		fetchDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tutti_fetch_duration_seconds",
			Help:    "Duration of one call to an upstream, including its body, without the time spent waiting for the index.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2.5, 12),
		}, []string{"repository"}),
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_upstream_up",
			Help: "1 when the last call to the repository got a complete response of its own, 0 otherwise.",
		}, []string{"repository"}),
	}
	if reg != nil {
		reg.MustRegister(m.fetchDuration, m.up)
	}
	return m
}

// Observe records the duration of a call to a repository; up is false without a complete response. The clients of this package
// call it themselves; it is exported for upstreams that are not called over HTTP.
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

// markDown records that the last call was answered by another server, such as a proxy.
func (m *Metrics) markDown(repository string) {
	if m != nil {
		m.up.WithLabelValues(repository).Set(0)
	}
}
