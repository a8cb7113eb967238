package app

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"tutti/consumers"
	"tutti/http/api"
	"tutti/http/mcp"
	"tutti/http/server"
	"tutti/ingest"
	"tutti/ingest/kafka"
	"tutti/internal/app/housekeeping"
	"tutti/internal/app/tracing"
	"tutti/internal/base/disk"
	"tutti/internal/index/bulk"
	"tutti/internal/index/pace"
	"tutti/internal/metadata"
	"tutti/internal/queue"
	"tutti/internal/report/alert"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/download"
	"tutti/internal/search/federation"
	"tutti/internal/search/view"
	"tutti/internal/store"
	"tutti/internal/upstream"
	"tutti/schemas"
)

// metrics holds one metrics struct per package.
type metrics struct {
	queue      *queue.Metrics
	bulk       *bulk.Metrics
	pace       *pace.Metrics
	upstream   *upstream.Metrics
	consumers  *consumers.Metrics
	ingest     *ingest.Metrics
	kafka      *kafka.Metrics
	http       *api.Metrics
	server     *server.Metrics
	mcp        *mcp.Metrics
	store      *store.Metrics
	schemas    *schemas.Metrics
	metadata   *metadata.Metrics
	catalogues *catalogue.Metrics
	search     *view.Metrics
	downloads  *download.Metrics
	federation *federation.Metrics
	alerts     *alert.Metrics
	traces     *tracing.Metrics
	keeping    *housekeeping.Metrics
	outbox     prometheus.Gauge
	components *prometheus.GaugeVec
	paused     *prometheus.GaugeVec
}

// measure registers the metrics of every package on the process's own registry.
func (b *base) measure() {
	reg := b.registry
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tutti_build_info", Help: "1, with the program's version.",
	}, []string{"version"})
	build.WithLabelValues(b.opts.Version).Set(1)
	outbox := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tutti_outbox_pending_events", Help: "Changes of the built-in repository that are not yet published to the queue.",
	})
	components := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tutti_component_up", Help: "1 when a component of the process is up or degraded, 0 when it is down, such as a queue, index or store that cannot write.",
	}, []string{"component"})
	paused := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tutti_repository_paused", Help: "1 while the consumers of a repository are paused, for the reason in GET /ready; 0 otherwise.",
	}, []string{"repository"})
	reg.MustRegister(build, outbox, components, paused)
	if _, known := disk.FreeBytes("."); known {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tutti_data_free_bytes", Help: "Free space of the file system of the data folder; 0 when it cannot be read.",
		}, func() float64 {
			free, _ := disk.FreeBytes(b.cfg.DataDir)
			return float64(free)
		}))
	}
	b.metrics = metrics{
		queue: queue.NewMetrics(reg), bulk: bulk.NewMetrics(reg), pace: pace.NewMetrics(reg), upstream: upstream.NewMetrics(reg),
		consumers: consumers.NewMetrics(reg), ingest: ingest.NewMetrics(reg), kafka: kafka.NewMetrics(reg), http: api.NewMetrics(reg),
		server: server.NewMetrics(reg), mcp: mcp.NewMetrics(reg),
		store: store.NewMetrics(reg), schemas: schemas.NewMetrics(reg), metadata: metadata.NewMetrics(reg),
		catalogues: catalogue.NewMetrics(reg), search: view.NewMetrics(reg), downloads: download.NewMetrics(reg), federation: federation.NewMetrics(reg), alerts: alert.NewMetrics(reg), traces: tracing.NewMetrics(reg), keeping: housekeeping.NewMetrics(reg), outbox: outbox, components: components, paused: paused,
	}
}
