package outcome

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"tutti/internal/core"
)

// Metrics counts fetched records, outcomes and times to index (CONTRACT section 9). A nil *Metrics counts nothing.
type Metrics struct {
	fetched     *prometheus.CounterVec
	documents   *prometheus.CounterVec
	toIndex     *prometheus.HistogramVec
	clockAlarms *prometheus.CounterVec
	lastSuccess *prometheus.GaugeVec
	drift       *prometheus.CounterVec
}

// NewMetrics returns the metrics, registered with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		fetched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_fetched_records_total",
			Help: "Records fetched from a repository, by result: ok, absent, unavailable or refused.",
		}, []string{"repository", "result"}),
		documents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_documents_total",
			Help: "Documents by outcome: indexed, removed, stale, mismatch, retried or rejected; and excluded records.",
		}, []string{"index", "outcome"}),
		toIndex: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tutti_request_to_index_seconds",
			Help:    "Time from the storing of a request in the queue to the final outcome of its documents.",
			Buckets: []float64{.005, .01, .02, .03, .05, .1, .2, .5, 1, 2, 5, 15, 60, 300, 1800},
		}, []string{"repository", "scope"}),
		clockAlarms: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_clock_alarms_total",
			Help: "Writes rejected because the stored version is later than the clock.",
		}, []string{"repository"}),
		lastSuccess: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_last_success_timestamp_seconds",
			Help: "Unix time when the documents of a record or a page were last written to the index, or found to be up to date; after a start the end of the last job that wrote any, 0 for none.",
		}, []string{"repository"}),
	}
	m.drift = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tutti_drift_records_total",
		Help: "Records whose documents a run of the difference found missing, different, surplus or uncompared, at the end of the run.",
	}, []string{"repository", "kind"})
	reg.MustRegister(m.fetched, m.documents, m.toIndex, m.clockAlarms, m.lastSuccess, m.drift)
	return m
}

// AddFetched counts n records fetched from a repository with a result.
func (m *Metrics) AddFetched(repository, result string, n int) {
	if m != nil && n > 0 {
		m.fetched.WithLabelValues(repository, result).Add(float64(n))
	}
}

// Count counts n documents with an outcome.
func (o *Outcomes) Count(outcome core.Outcome, n int) {
	o.cfg.Metrics.addDocuments(o.cfg.Repository.IndexName, outcome, n)
}

// Ended observes the time from storing a Request with the given version to the final outcome of its documents. success is
// true when one of them was written or needed no write.
func (o *Outcomes) Ended(scope core.Scope, stored core.Version, success bool) {
	o.cfg.Metrics.observeToIndex(o.code, scope, stored)
	if success {
		o.cfg.Metrics.succeeded(o.code)
	}
}

// EndedRecord is Ended for a Request for one record, whose documents it counts.
func (o *Outcomes) EndedRecord(stored core.Version, documents []Document) {
	o.Ended(core.ScopeRecord, stored, o.CountRecord(documents) != core.OutcomeRejected)
}

// CountRecord counts the outcomes of the documents of a record, and returns that of the record: OutcomeRejected if one of its documents was
// rejected, else OutcomeIndexed if one was written, else that of the first one, which is the record's own.
func (o *Outcomes) CountRecord(documents []Document) core.Outcome {
	of := documents[0].Outcome
	for _, d := range documents {
		if !d.Marker || d.Outcome == core.OutcomeExcluded {
			o.Count(d.Outcome, 1)
		}
		if d.Outcome == core.OutcomeRejected || d.Outcome == core.OutcomeIndexed && of != core.OutcomeRejected {
			of = d.Outcome
		}
	}
	return of
}

// AddDrift counts what a run of the difference found.
func (o *Outcomes) AddDrift(d core.Drift) { o.cfg.Metrics.addDrift(o.code, d) }

func (m *Metrics) addDocuments(index string, o core.Outcome, n int) {
	if m != nil && n > 0 {
		m.documents.WithLabelValues(index, o.String()).Add(float64(n))
	}
}

func (m *Metrics) observeToIndex(repository string, scope core.Scope, stored core.Version) {
	if m != nil {
		m.toIndex.WithLabelValues(repository, string(scope)).Observe(time.Since(time.Unix(0, int64(stored))).Seconds())
	}
}

func (m *Metrics) succeeded(repository string) {
	if m != nil {
		m.lastSuccess.WithLabelValues(repository).SetToCurrentTime()
	}
}

// SetLastSuccess sets when a repository was last written to the index; the zero time for never.
func (m *Metrics) SetLastSuccess(repository string, at time.Time) {
	seconds := 0.0
	if !at.IsZero() {
		seconds = float64(at.UnixMilli()) / 1000
	}
	m.lastSuccess.WithLabelValues(repository).Set(seconds)
}

// LastSuccess returns what SetLastSuccess or a later success set, the zero time for none.
func (m *Metrics) LastSuccess(repository string) time.Time {
	var read dto.Metric
	if err := m.lastSuccess.WithLabelValues(repository).Write(&read); err != nil || read.GetGauge().GetValue() == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(read.GetGauge().GetValue() * 1000))
}

func (m *Metrics) addDrift(repository string, d core.Drift) {
	if m == nil {
		return
	}
	for kind, n := range map[string]int64{"missing": d.Missing, "different": d.Different, "surplus": d.Surplus, "uncompared": d.Uncompared} {
		m.drift.WithLabelValues(repository, kind).Add(float64(n))
	}
}

func (m *Metrics) addClockAlarm(repository string) {
	if m != nil {
		m.clockAlarms.WithLabelValues(repository).Inc()
	}
}
