package alert

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Results of an attempt to send a message.
const (
	// resultSent: the receiver took it. resultFailed: it is sent again later. resultRejected: the receiver will never take it.
	resultSent     = "sent"
	resultFailed   = "failed"
	resultRejected = "rejected"
)

// Metrics are the metrics of this package; nil is off.
type Metrics struct{ sent *prometheus.CounterVec }

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{sent: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "tutti_alerts_sent_total",
		Help: "Attempts to send an alert by result: sent, failed (it is sent again), rejected (the receiver answered with a 4xx status, the alert is dropped).",
	}, []string{"result"})}
	for _, result := range []string{resultSent, resultFailed, resultRejected} {
		m.sent.WithLabelValues(result)
	}
	return m
}

func (m *Metrics) count(result string) {
	if m != nil {
		m.sent.WithLabelValues(result).Inc()
	}
}
