package mcp

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
)

// Values of the label result.
const (
	resultOK          = "ok"
	resultInvalid     = "invalid"
	resultDenied      = "denied"
	resultUnavailable = "unavailable"
	resultInternal    = "internal"
)

// unknownTool is the label of a call of a tool that does not exist.
const unknownTool = "unknown"

// Metrics measures calls of tools. A nil *Metrics measures nothing.
type Metrics struct {
	duration *prometheus.HistogramVec
}

// NewMetrics registers the package's metrics with reg, which panics on a duplicate name.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tutti_mcp_call_duration_seconds",
		Help:    "Time of a call of a tool by a client of the Model Context Protocol. The result is ok, invalid (the input), denied, unavailable or internal.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"tool", "result"})}
	reg.MustRegister(m.duration)
	return m
}

func (m *Metrics) observe(tool string, err error, d time.Duration) {
	if m != nil {
		m.duration.WithLabelValues(tool, resultOf(err)).Observe(d.Seconds())
	}
}

// resultOf returns the label of an error of a tool.
func resultOf(err error) string {
	switch core.CodeOf(err) {
	case "":
		return resultOK
	case core.CodeUnauthenticated, core.CodeForbidden:
		return resultDenied
	case core.CodeUnavailable, core.CodeOverloaded, core.CodeIndexBlocked:
		return resultUnavailable
	case core.CodeInternal:
		return resultInternal
	default:
		return resultInvalid
	}
}
