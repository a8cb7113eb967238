package schemas

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tutti/internal/core"
)

// Metrics counts validations (CONTRACT section 9); a nil pointer is off. The label result is "valid", "invalid", "unavailable" if
// only a failed external service prevented the validation, "timeout" if the version is quarantined because its validation took
// too long, or "error".
type Metrics struct {
	validations *prometheus.CounterVec
	external    *prometheus.HistogramVec
	quarantine  prometheus.Gauge
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	return &Metrics{
		validations: f.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_schema_validations_total", Help: "Analyses that were validated, by result.",
		}, []string{"result"}),
		external: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tutti_schema_external_duration_seconds", Help: "Duration of requests to external validation services, by result.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 14),
		}, []string{"result"}),
		quarantine: f.NewGauge(prometheus.GaugeOpts{
			Name: "tutti_schema_quarantined_versions", Help: "Versions of analysis types that accept no analyses because validating one took too long.",
		}),
	}
}

func (m *Metrics) quarantined(versions int) {
	if m != nil {
		m.quarantine.Set(float64(versions))
	}
}

func (m *Metrics) validated(err error) {
	if m == nil {
		return
	}
	m.validations.WithLabelValues(resultOf(err)).Inc()
}

func (m *Metrics) called(result string, took time.Duration) {
	if m != nil {
		m.external.WithLabelValues(result).Observe(took.Seconds())
	}
}

func resultOf(err error) string {
	switch core.CodeOf(err) {
	case "":
		return "valid"
	case core.CodeInvalid:
		if errors.Is(err, errOverdue) {
			return "timeout"
		}
		if retryable(err) {
			return "unavailable"
		}
		return "invalid"
	case core.CodeNotFound, core.CodeConflict:
		return "invalid"
	default:
		return "error"
	}
}
