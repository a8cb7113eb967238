package store

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics measures transactions. nil measures nothing.
type Metrics struct {
	duration *prometheus.HistogramVec
	together prometheus.Histogram
}

// NewMetrics makes Metrics on reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tutti_store_transaction_duration_seconds", Help: "Time from asking for a transaction until it was durable, or failed.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"result"}),
		together: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tutti_store_commit_transactions", Help: "Transactions that one commit of the embedded store made durable.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 9),
		}),
	}
	reg.MustRegister(m.duration, m.together)
	return m
}

func (m *Metrics) observe(started time.Time, err error) {
	if m == nil {
		return
	}
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.duration.WithLabelValues(result).Observe(time.Since(started).Seconds())
}

func (m *Metrics) commit(transactions int) {
	if m != nil {
		m.together.Observe(float64(transactions))
	}
}
