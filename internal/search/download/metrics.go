package download

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tutti/internal/core"
)

// Metrics counts downloads; nil disables it. The label format is a file format or archive; outcome is complete, refused or cut.
type Metrics struct {
	downloads *prometheus.CounterVec
	rows      *prometheus.CounterVec
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	return &Metrics{
		downloads: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_downloads_total", Help: "Downloads that have ended, by how.",
		}, []string{"format", "outcome"}),
		rows: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_download_rows_total", Help: "Rows that were written to downloads.",
		}, []string{"format"}),
	}
}

// ended counts a download: cut if it failed after it had started.
func (m *Metrics) ended(format string, begun bool, err error) {
	if m == nil {
		return
	}
	outcome := "complete"
	switch {
	case err != nil && begun:
		outcome = "cut"
	case err != nil:
		outcome = "refused"
	}
	m.downloads.WithLabelValues(format, outcome).Inc()
}

func (m *Metrics) wrote(f Format, rows int64) {
	if m != nil {
		m.rows.WithLabelValues(f.String()).Add(float64(rows))
	}
}

// labelOf returns the label of the requested format.
func labelOf(o *params) string {
	switch {
	case o == nil:
		return "unknown"
	case o.archive:
		return "archive"
	default:
		return o.files[0].format.String()
	}
}

// clientGone returns the error of a download whose client has disconnected.
func clientGone(err error) error {
	return core.WrapError(core.CodeUnavailable, "writing a download: the client disconnected, or the server is stopping", err)
}
