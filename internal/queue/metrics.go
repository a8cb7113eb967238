package queue

import (
	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
	"tutti/internal/queue/deadletter"
)

// Metrics holds the metrics of the queue (CONTRACT section 9). A nil Metrics counts nothing.
type Metrics struct {
	published    *prometheus.CounterVec
	pending      *prometheus.GaugeVec
	held, limit  prometheus.Gauge
	redeliveries *prometheus.CounterVec
	deadLetters  *deadletter.Metrics
	restarts     prometheus.Counter
	undelivered  prometheus.Counter
	unreadable   *prometheus.GaugeVec
}

// NewMetrics registers the queue's metrics on reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_requests_published_total",
			Help: "Requests published to the queue, by result: stored or the error code.",
		}, []string{"result"}),
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_consumer_pending_messages",
			Help: "Requests pending for a durable consumer, not yet delivered.",
		}, []string{"consumer"}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tutti_queue_requests",
			Help: "Requests that the queue holds, pending or in flight, of all repositories.",
		}),
		limit: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tutti_queue_max_requests",
			Help: "Requests that the queue may hold (queue.maxPending); more get 503.",
		}),
		redeliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_consumer_redeliveries_total",
			Help: "Deliveries of a Request to a durable consumer after the first.",
		}, []string{"consumer"}),
		deadLetters: deadletter.NewMetrics(reg),
		restarts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tutti_queue_restarts_total",
			Help: "Restarts of the embedded queue's server after storage errors.",
		}),
		undelivered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tutti_queue_undelivered_total",
			Help: "Requests that the queue's server would not have delivered any more, such as after it was killed: published again, removed because of a newer Request, or stored as dead letters.",
		}),
		unreadable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_queue_unreadable_messages",
			Help: "Messages of the embedded queue that could not be read at the start, because they were damaged on the disk.",
		}, []string{"stream"}),
	}
	reg.MustRegister(m.published, m.pending, m.held, m.limit, m.redeliveries, m.restarts, m.undelivered, m.unreadable)
	return m
}

func (m *Metrics) countPublished(err error) {
	if m == nil {
		return
	}
	result := "stored"
	if err != nil {
		result = string(core.CodeOf(err))
	}
	m.published.WithLabelValues(result).Inc()
}

func (m *Metrics) countRestart() {
	if m != nil {
		m.restarts.Inc()
	}
}

func (m *Metrics) countUndelivered(n int) {
	if m != nil {
		m.undelivered.Add(float64(n))
	}
}

// SetUnreadable sets the number of messages of each stream that could not be read at the start.
func (m *Metrics) SetUnreadable(byStream map[string]int) {
	if m == nil {
		return
	}
	for stream, n := range byStream {
		m.unreadable.WithLabelValues(stream).Set(float64(n))
	}
}

func (m *Metrics) setPending(consumer string, n uint64) {
	if m != nil {
		m.pending.WithLabelValues(consumer).Set(float64(n))
	}
}

func (m *Metrics) setHeld(held, limit int) {
	if m != nil {
		m.held.Set(float64(held))
		m.limit.Set(float64(limit))
	}
}

func (m *Metrics) countRedelivery(consumer string) {
	if m != nil {
		m.redeliveries.WithLabelValues(consumer).Inc()
	}
}

func (m *Metrics) deadLetterMetrics() *deadletter.Metrics {
	if m == nil {
		return nil
	}
	return m.deadLetters
}
