package ingest

import (
	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
)

// Metrics holds the metrics of ingest. A nil *Metrics counts nothing.
type Metrics struct {
	received      *prometheus.CounterVec
	notifications *prometheus.CounterVec
	relayed       *prometheus.CounterVec
}

// Values of the label source of tutti_notifications_total.
const (
	viaWebhook = "webhook"
	viaKafka   = "kafka"
)

// Values of the label result of tutti_notifications_total.
const (
	resultAccepted      = "accepted"
	resultNotUnderstood = "not_understood"
	resultOtherServer   = "other_server"
	resultSkipped       = "skipped"
)

// Values of the label result of tutti_outbox_events_total.
const (
	resultPublished  = "published"
	resultDeadLetter = "dead_letter"
	resultFailed     = "failed"
)

// NewMetrics registers the package's metrics with reg, which panics on a duplicate name.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_requests_received_total",
			Help: "Triggers that passed validation, by source and kind.",
		}, []string{"source", "kind"}),
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_notifications_total",
			Help: "Notification events received, by source and result.",
		}, []string{"source", "result"}),
		relayed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_outbox_events_total",
			Help: "Attempts to publish an event of the built-in repository's outbox, by result; failed ones are retried.",
		}, []string{"result"}),
	}
	reg.MustRegister(m.received, m.notifications, m.relayed)
	return m
}

func (m *Metrics) receive(source core.Cause, kind core.Kind) {
	if m != nil {
		m.received.WithLabelValues(string(source), string(kind)).Inc()
	}
}

func (m *Metrics) notify(via, result string, n int) {
	if m != nil && n > 0 {
		m.notifications.WithLabelValues(via, result).Add(float64(n))
	}
}

func (m *Metrics) relay(result string) {
	if m != nil {
		m.relayed.WithLabelValues(result).Inc()
	}
}
