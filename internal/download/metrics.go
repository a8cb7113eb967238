package download

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tutti/internal/core"
)

// Metrics counts downloads; a nil pointer is off. The label format is one of those of files, or archive; outcome is complete,
// refused or cut.
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

// ended counts a download: cut when it failed after it had begun.
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

// labelOf is the label of what was asked for.
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

// clientGone is the error of a download whose client has gone.
func clientGone(err error) error {
	return core.WrapError(core.CodeUnavailable, "writing a download: the client has gone, or the server stops", err)
}
