package kafka

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics holds the metrics of Readers. If several Readers read topics of the same name, the topic is up when all
// of them are, and its lag is the sum of theirs. A nil *Metrics records nothing.
type Metrics struct {
	up     *prometheus.GaugeVec
	lag    *prometheus.GaugeVec
	missed *prometheus.CounterVec

	mu      sync.Mutex
	readers map[*Reader]readerState
}

type readerState struct {
	up  bool
	lag int64
}

// NewMetrics registers the package's metrics with reg, which panics on a duplicate name.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_kafka_up", Help: "1 when the brokers answer, the topic is read and its offsets are committed, else 0.",
		}, []string{"topic"}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_kafka_lag_messages",
			Help: "Messages of the topic that are not yet committed, in the partitions that this process reads.",
		}, []string{"topic"}),
		missed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_kafka_missed_offsets_total",
			Help: "Offsets that the topic no longer had when they were to be read, as retention removes them; a difference run replaces them.",
		}, []string{"topic"}),
		readers: map[*Reader]readerState{},
	}
	reg.MustRegister(m.up, m.lag, m.missed)
	return m
}

func (m *Metrics) setUp(r *Reader, up bool) {
	m.change(r, func(v *readerState) { v.up = up })
}

func (m *Metrics) setLag(r *Reader, lag int64) {
	m.change(r, func(v *readerState) { v.lag = lag })
}

func (m *Metrics) addMissed(topic string, offsets int64) {
	if m != nil {
		m.missed.WithLabelValues(topic).Add(float64(offsets))
	}
}

func (m *Metrics) change(r *Reader, change func(*readerState)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.readers[r]
	change(&v)
	m.readers[r] = v
	m.updateGauges(r.cfg.Topic)
}

// forget removes a Reader that has stopped.
func (m *Metrics) forget(r *Reader) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.readers, r)
	m.updateGauges(r.cfg.Topic)
}

// updateGauges sets the gauges of a topic from its Readers.
func (m *Metrics) updateGauges(topic string) {
	up, lag, found := 1.0, int64(0), false
	for r, v := range m.readers {
		if r.cfg.Topic != topic {
			continue
		}
		found = true
		lag += v.lag
		if !v.up {
			up = 0
		}
	}
	if !found {
		m.up.DeleteLabelValues(topic)
		m.lag.DeleteLabelValues(topic)
		return
	}
	m.up.WithLabelValues(topic).Set(up)
	m.lag.WithLabelValues(topic).Set(float64(lag))
}
