package store

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tutti/internal/core"
)

// Metrics measures transactions. A nil Metrics measures nothing.
type Metrics struct {
	duration  *prometheus.HistogramVec
	groupSize prometheus.Histogram
	retries   prometheus.Counter
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	return &Metrics{
		duration: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tutti_store_transaction_duration_seconds", Help: "Time from the request for a transaction until it was committed (ok), rolled back by its change (undone), or failed (failed).",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"result"}),
		groupSize: f.NewHistogram(prometheus.HistogramOpts{
			Name: "tutti_store_commit_transactions", Help: "Transactions committed together by the embedded store.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 9),
		}),
		retries: f.NewCounter(prometheus.CounterOpts{
			Name: "tutti_store_transaction_retries_total", Help: "Transactions retried after a conflict with another one in PostgreSQL.",
		}),
	}
}

func (m *Metrics) observe(started time.Time, err error) {
	if m == nil {
		return
	}
	m.duration.WithLabelValues(result(err)).Observe(time.Since(started).Seconds())
}

// result returns the label of a transaction's result.
func result(err error) string {
	switch core.CodeOf(err) {
	case "":
		return "ok"
	case core.CodeUnavailable, core.CodeInternal:
		return "failed"
	default:
		return "undone"
	}
}

func (m *Metrics) commit(transactions int) {
	if m != nil && transactions > 0 {
		m.groupSize.Observe(float64(transactions))
	}
}

func (m *Metrics) retried() {
	if m != nil {
		m.retries.Inc()
	}
}
