package metadata

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what is done to analyses. nil counts nothing.
type Metrics struct {
	analyses *prometheus.CounterVec
}

// NewMetrics makes Metrics on reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		analyses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_analyses_total",
			Help: "Changes of analyses of the built-in repository that are durable, by what was done.",
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
