package deadletter

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics holds the metrics of dead letters. A nil *Metrics counts nothing.
type Metrics struct {
	stored *prometheus.GaugeVec
	total  *prometheus.CounterVec
}

// NewMetrics registers the metrics of dead letters on reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		stored: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_dead_letters",
			Help: "Stored dead letters, by reason.",
		}, []string{"repository", "reason"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_dead_letters_total",
			Help: "Dead letters written, including replacements.",
		}, []string{"repository", "reason"}),
	}
	reg.MustRegister(m.stored, m.total)
	return m
}

// labels are the labels of a count of dead letters.
type labels struct{ repository, reason string }

func (m *Metrics) set(counts map[labels]int) {
	if m == nil {
		return
	}
	m.stored.Reset()
	for of, n := range counts {
		m.stored.WithLabelValues(of.repository, of.reason).Set(float64(n))
	}
}

func (m *Metrics) count(repository, reason string) {
	if m != nil {
		m.total.WithLabelValues(repository, reason).Inc()
	}
}
