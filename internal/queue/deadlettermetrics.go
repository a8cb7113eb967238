package queue

import (
	"github.com/prometheus/client_golang/prometheus"
)

// DeadLetterMetrics holds the metrics of dead letters. A nil *DeadLetterMetrics counts nothing.
type DeadLetterMetrics struct {
	stored *prometheus.GaugeVec
	total  *prometheus.CounterVec
}

func newDeadLetterMetrics(reg prometheus.Registerer) *DeadLetterMetrics {
	m := &DeadLetterMetrics{
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

// deadLetterLabels are the labels of a count of dead letters.
type deadLetterLabels struct{ repository, reason string }

func (m *DeadLetterMetrics) set(counts map[deadLetterLabels]int) {
	if m == nil {
		return
	}
	m.stored.Reset()
	for of, n := range counts {
		m.stored.WithLabelValues(of.repository, of.reason).Set(float64(n))
	}
}

func (m *DeadLetterMetrics) count(repository, reason string) {
	if m != nil {
		m.total.WithLabelValues(repository, reason).Inc()
	}
}
