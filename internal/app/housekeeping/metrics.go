package housekeeping

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of housekeeping.
type Metrics struct {
	jobs     *prometheus.GaugeVec
	prunes   prometheus.Counter
	progress *jobProgress
}

// NewMetrics registers the metrics of housekeeping.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		jobs: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_jobs", Help: "Stored jobs, by state.",
		}, []string{"state"}),
		prunes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tutti_housekeeping_runs_total", Help: "Times that this process removed old jobs and expired sets. Of several processes one does, every ten minutes.",
		}),
		progress: newJobProgress(),
	}
	reg.MustRegister(m.jobs, m.prunes, m.progress.ratio)
	return m
}
