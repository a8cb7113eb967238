package catalogue

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics is the state of the catalogues (CONTRACT section 9); nil disables it. The label catalogue is a configured ID.
type Metrics struct {
	available *prometheus.GaugeVec
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	return &Metrics{available: promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{
		Name: "tutti_catalogue_available", Help: "Whether a catalogue can be searched: 1 when it can, 0 when it failed.",
	}, []string{"catalogue"})}
}

// forget deletes the series of an ID that no catalogue has any more.
func (m *Metrics) forget(id string) {
	if m != nil {
		m.available.DeleteLabelValues(id)
	}
}

func (m *Metrics) show(id string, available bool) {
	if m == nil {
		return
	}
	value := 0.0
	if available {
		value = 1
	}
	m.available.WithLabelValues(id).Set(value)
}
