package ingest

import (
	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
)

// Metrics counts what comes in. A nil *Metrics counts nothing.
type Metrics struct {
	received *prometheus.CounterVec
}

// NewMetrics makes the package's metrics and registers them with reg, which panics on a name registered twice.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_requests_received_total",
			Help: "Triggers that passed validation, by where they came from and what they want done.",
		}, []string{"source", "kind"}),
	}
	reg.MustRegister(m.received)
	return m
}

func (m *Metrics) receive(source core.Cause, kind core.Kind) {
	if m != nil {
		m.received.WithLabelValues(string(source), string(kind)).Inc()
	}
}
