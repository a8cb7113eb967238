package tracing

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts recorded spans.
type Metrics struct{ spans *prometheus.CounterVec }

// Results of a span.
const (
	resultSent    = "sent"
	resultFailed  = "failed"
	resultDropped = "dropped"
)

// NewMetrics registers the package's metrics with reg, which panics on a duplicate name.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{spans: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tutti_trace_spans_total",
		Help: "Recorded spans: sent to the receiver of traces, failed because it did not take them, dropped because too many waited.",
	}, []string{"result"})}
	reg.MustRegister(m.spans)
	return m
}

func (m *Metrics) count(result string, n int) {
	if m != nil {
		m.spans.WithLabelValues(result).Add(float64(n))
	}
}
