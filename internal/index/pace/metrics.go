package pace

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics shows the limit and what it follows; nil disables it.
type Metrics struct {
	limit  prometheus.Gauge
	waited prometheus.Counter
	probe  *prometheus.GaugeVec
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	factory := promauto.With(reg)
	return &Metrics{
		limit: factory.NewGauge(prometheus.GaugeOpts{
			Name: "tutti_run_limit_rows_per_second",
			Help: "Rows a second to which the runs of this process are slowed down because searches became slower; 0 for no limit.",
		}),
		waited: factory.NewCounter(prometheus.CounterOpts{
			Name: "tutti_run_limit_waited_seconds_total", Help: "Time for which rows of pages waited because of that limit.",
		}),
		probe: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_run_probe_seconds",
			Help: "80th percentile of the small searches that decide how fast runs may be, while they rest and while they write.",
		}, []string{"runs"}),
	}
}

// wait counts the wait of a row.
func (m *Metrics) wait(d time.Duration) {
	if m != nil {
		m.waited.Add(d.Seconds())
	}
}

// show sets what was measured while runs rest or write, and the limit that follows.
func (m *Metrics) show(runs string, took time.Duration, rate float64) {
	if m != nil {
		m.probe.WithLabelValues(runs).Set(took.Seconds())
		m.limit.Set(rate)
	}
}
