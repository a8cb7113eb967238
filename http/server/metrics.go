package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics measures connections and certificates. A nil *Metrics measures nothing.
type Metrics struct {
	// expires and reloads have no values without TLS.
	expires *prometheus.GaugeVec
	reloads *prometheus.CounterVec
	open    prometheus.Gauge
	over    *prometheus.CounterVec
}

// NewMetrics registers the package's metrics with reg, which panics on a duplicate name.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tutti_http_connections", Help: "Connections that are open."}),
		over: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_http_connections_refused_total",
			Help: "Connections over a limit: they can request only /ping, /ready and /metrics.",
		}, []string{"limit"}),
		expires: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_tls_certificate_expiry_timestamp_seconds", Help: "Unix time at which the certificate in use expires.",
		}, nil),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_tls_certificate_reloads_total", Help: "Changes of the certificate's files, by whether the new pair is used.",
		}, []string{"result"}),
	}
	for _, limit := range []string{limitTotal, limitAddress} {
		m.over.WithLabelValues(limit)
	}
	reg.MustRegister(m.open, m.over, m.expires, m.reloads)
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

// connections sets the number of open connections.
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
