package metadata

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts changes of analyses. A nil Metrics counts nothing.
type Metrics struct {
	analyses *prometheus.CounterVec
}

// NewMetrics registers the metrics with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		analyses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_analyses_total",
			Help: "Committed changes of analyses of the built-in repository, by action.",
		}, []string{"action"}),
	}
	reg.MustRegister(m.analyses)
	return m
}

func (m *Metrics) changed(action action) {
	if m != nil {
		m.analyses.WithLabelValues(string(action)).Inc()
	}
}
