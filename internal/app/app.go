package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"tutti/consumers"
	"tutti/http/api"
	"tutti/http/server"
	"tutti/ingest"
	"tutti/ingest/kafka"
	"tutti/internal/auth"
	"tutti/internal/budget"
	"tutti/internal/bulk"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/disk"
	"tutti/internal/index"
	"tutti/internal/metadata"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/download"
	"tutti/internal/search/federation"
	"tutti/internal/search/graphql"
	"tutti/internal/search/sets"
	"tutti/internal/search/view"
	"tutti/internal/store"
	"tutti/internal/upstream"
	"tutti/schemas"
)

// Options are the settings of an App outside its configuration. The zero value is the default.
type Options struct {
	// Logger receives all log records; by default they are discarded.
	Logger *slog.Logger
	// Version is the program's version, "dev" by default.
	Version string
	// Index replaces the index that the configuration names; for benchmarks and tests.
	Index index.Index
	// AckWait and MaxDeliver replace those of the durable consumers: how long the queue waits for an acknowledgement of a
	// Request, and after how many deliveries it stops redelivering one. For tests, which need shorter times.
	AckWait    time.Duration
	MaxDeliver int
	// Examples is passed to the HTTP handler's Config.
	Examples func() []string
}

// App is one tutti process.
type App struct {
	cfg  config.Config
	opts Options
	log  *slog.Logger

	registry   *prometheus.Registry
	metrics    metrics
	cleanup    cleanup
	memory     *budget.Budget
	queue      *queue.Queue
	index      index.Index
	catalogues *catalogue.Registry
	// sets stores saved sets; searches, graphs and downloads serve documents.
	sets      *sets.Service
	searches  *view.Service
	graphs    *graphql.Service
	downloads *download.Service
	network   *federation.Federation
	// expected holds one channel for each repository, closed once its index was prepared or could not be.
	expected []<-chan struct{}
	// upstreams are the upstreams of the consumers, by repository code.
	upstreams map[string]*watchedUpstream
	store     *store.Store
	// analysisTypes, metadata and keys are kept in store; authenticator is nil with auth.mode none.
	analysisTypes *schemas.Service
	metadata      *metadata.Repository
	keys          *auth.Keys
	authenticator *auth.Authenticator
	writer        *bulk.Writer
	consumers     *consumers.Consumers
	ingest        *ingest.Service
	readers       []*kafka.Reader
	relay         *ingest.Relay // nil without a repository that the built-in one feeds
	server        *server.Server
	certificate   *server.Certificate // nil without TLS
	// indexCheck and storeCheck check for Health that index and store take durable writes.
	indexCheck, storeCheck *cachedCheck
	// filled are the repositories whose index was filled, and fills spaces the runs that fill the index of the built-in one; only
	// fillCheck changes both. neverIndexed lists those that were not filled, as one reason of Health each.
	filled       map[string]struct{}
	fills        fillBackoff
	fillCheck    *cachedCheck
	neverIndexed atomic.Pointer[[]string]

	started sync.Once
}

// metrics holds one metrics struct per package.
type metrics struct {
	queue      *queue.Metrics
	bulk       *bulk.Metrics
	upstream   *upstream.Metrics
	consumers  *consumers.Metrics
	ingest     *ingest.Metrics
	kafka      *kafka.Metrics
	http       *api.Metrics
	server     *server.Metrics
	store      *store.Metrics
	schemas    *schemas.Metrics
	metadata   *metadata.Metrics
	catalogues *catalogue.Metrics
	search     *view.Metrics
	downloads  *download.Metrics
	federation *federation.Metrics
	jobs       *prometheus.GaugeVec
	outbox     prometheus.Gauge
	components *prometheus.GaugeVec
	paused     *prometheus.GaugeVec
	progress   *jobProgress
}

// New returns an App for a validated configuration. It opens nothing.
func New(cfg config.Config, opts Options) (*App, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Version == "" {
		opts.Version = "dev"
	}
	memory, err := budget.New(cfg.Server.MaxBytesInFlight, nil)
	if err != nil {
		return nil, err
	}
	a := &App{cfg: cfg, opts: opts, log: opts.Logger, registry: prometheus.NewRegistry(), memory: memory, upstreams: make(map[string]*watchedUpstream)}
	a.measure()
	return a, nil
}

// measure registers the metrics of every package on the App's own registry.
func (a *App) measure() {
	reg := a.registry
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tutti_build_info", Help: "1, with the program's version.",
	}, []string{"version"})
	build.WithLabelValues(a.opts.Version).Set(1)
	jobs := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tutti_jobs", Help: "Jobs that are kept, by state.",
	}, []string{"state"})
	outbox := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tutti_outbox_pending_events", Help: "Changes of the built-in repository that the queue has not been told of.",
	})
	components := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tutti_component_up", Help: "1 when a component of the process works, also when it is degraded; 0 when it is down, as a queue, index or store that cannot store is.",
	}, []string{"component"})
	paused := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tutti_repository_paused", Help: "1 while the consumers of a repository wait for something, as GET /ready says; 0 otherwise.",
	}, []string{"repository"})
	progress := newJobProgress()
	reg.MustRegister(build, jobs, outbox, components, paused, progress.ratio)
	if _, known := disk.FreeBytes("."); known {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tutti_data_free_bytes", Help: "Free space of the file system of the data folder; 0 when it cannot be read.",
		}, func() float64 {
			free, _ := disk.FreeBytes(a.cfg.DataDir)
			return float64(free)
		}))
	}
	a.metrics = metrics{
		queue: queue.NewMetrics(reg), bulk: bulk.NewMetrics(reg), upstream: upstream.NewMetrics(reg),
		consumers: consumers.NewMetrics(reg), ingest: ingest.NewMetrics(reg), kafka: kafka.NewMetrics(reg), http: api.NewMetrics(reg),
		server: server.NewMetrics(reg),
		store:  store.NewMetrics(reg), schemas: schemas.NewMetrics(reg), metadata: metadata.NewMetrics(reg),
		catalogues: catalogue.NewMetrics(reg), search: view.NewMetrics(reg), downloads: download.NewMetrics(reg), federation: federation.NewMetrics(reg), jobs: jobs, outbox: outbox, components: components, paused: paused, progress: progress,
	}
}

// Start opens queue, index and store, starts the consumers and listens. If it fails, it closes everything that it opened.
func (a *App) Start(ctx context.Context) (err error) {
	err = core.NewError(core.CodeConflict, "the app was started already")
	a.started.Do(func() { err = a.start(ctx) })
	return err
}

func (a *App) start(ctx context.Context) error {
	for _, w := range a.cfg.Warnings {
		a.log.Warn("configuration", "warning", w)
	}
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"reading the certificate of server.tls", a.openCertificate},
		{"opening the queue", a.openQueue},
		{"opening the store", a.openStore},
		{"opening the index", a.openIndex},
		{"preparing searches", a.openSearch},
		{"reading the catalogues", a.openCatalogues},
		{"preparing downloads", a.openDownloads},
		{"opening the metadata repository", a.openMetadata},
		{"starting the bulk writer", a.startWriter},
		{"preparing ingest", a.openIngest},
		{"checking what was indexed", a.startFilled},
		{"reading when repositories were last indexed", a.setLastSuccess},
		{"starting the consumers", a.startConsumers},
		{"starting the readers of notifications", a.startSources},
		{"starting the outbox relay", a.startRelay},
		{"starting housekeeping", a.startHousekeeping},
		{"starting the catalogues", a.startCatalogues},
		{"listening", a.listen},
	}
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", step.name, err), a.Stop(context.WithoutCancel(ctx)))
		}
	}
	return nil
}

// Stop shuts the App down in reverse order: it stops listening, waits for work in flight, and returns the rest to the queue. It
// takes no longer than the configured stop timeout. It may be called more than once.
func (a *App) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Server.ShutdownTimeout)
	defer cancel()
	return a.cleanup.run(ctx)
}

// Failed returns a channel that receives the error of a server that stopped unexpectedly; valid after Start.
func (a *App) Failed() <-chan error { return a.server.Failed() }

// URL returns the server's base URL; valid after Start.
func (a *App) URL() string {
	scheme := "http://"
	if a.certificate != nil {
		scheme = "https://"
	}
	return scheme + a.server.Addr().String() + a.cfg.Server.BasePath
}

// Registry returns the registry that GET /metrics serves.
func (a *App) Registry() *prometheus.Registry { return a.registry }

// Index returns the index, for tests that read documents back; valid after Start.
func (a *App) Index() index.Index { return a.index }

// DeadLetters returns the dead letters; valid after Start.
func (a *App) DeadLetters() *queue.DeadLetters { return a.queue.DeadLetters() }

// openCertificate reads the TLS certificate first, so that its errors are reported before slower steps run.
func (a *App) openCertificate(ctx context.Context) (err error) {
	files := a.cfg.Server.TLS
	if !files.Enabled() {
		return nil
	}
	a.certificate, err = server.NewCertificate(ctx, files.CertFile, files.KeyFile, a.log.With("component", "http"), a.metrics.server)
	if err != nil {
		return err
	}
	a.cleanup.push("certificate", a.certificate.Stop)
	return nil
}

func (a *App) openQueue(ctx context.Context) error {
	cfg := queue.Config{
		URL: a.cfg.Queue.URL, CredentialsFile: a.cfg.Queue.CredentialsFile, Replicas: a.cfg.Queue.Replicas,
		MaxPending: a.cfg.Queue.MaxPending, MaxDeadLetterBodies: a.cfg.DeadLetters.MaxBodies,
		StartTimeout: a.cfg.Server.StartTimeout,
		Logger:       a.log.With("component", "queue"), Metrics: a.metrics.queue,
	}
	var err error
	if cfg.URL != "" {
		a.queue, err = queue.Connect(ctx, cfg)
	} else {
		a.queue, err = a.openEmbeddedQueue(ctx, cfg)
	}
	if err != nil {
		return err
	}
	a.cleanup.push("queue", a.queue.Close)
	return nil
}

func (a *App) openEmbeddedQueue(ctx context.Context, cfg queue.Config) (*queue.Queue, error) {
	server, err := embedded.Start(ctx, embedded.Config{
		Dir: filepath.Join(a.cfg.DataDir, "queue"), Logger: a.log.With("component", "nats"),
	})
	if err != nil {
		return nil, err
	}
	a.cleanup.push("embedded queue", server.Stop)
	return queue.ConnectInProcess(ctx, server, cfg)
}

func (a *App) startWriter(context.Context) error {
	var err error
	a.writer, err = bulk.New(a.index, bulk.Config{
		BatchBytes: a.cfg.Index.BatchBytes, MaxInFlight: a.cfg.Index.MaxInFlight, Memory: a.memory.Writes, DocumentWeight: documentWeight(a.cfg.Index),
		Logger: a.log.With("component", "bulk"), Metrics: a.metrics.bulk,
	})
	if err != nil {
		return err
	}
	a.cleanup.push("bulk writer", a.writer.Close)
	return nil
}

// documentWeight returns the memory that writing a document takes, as a multiple of its size. It is larger for the embedded index,
// which builds columns and postings in this process.
func documentWeight(c config.Index) int {
	if c.URL == "" {
		return 10
	}
	return bulk.DefaultDocumentWeight
}

func (a *App) startConsumers(ctx context.Context) error {
	work := make([]consumers.Repository, 0, len(a.cfg.Repositories))
	codes := make([]string, 0, len(a.cfg.Repositories))
	for _, rc := range a.cfg.Repositories {
		w, err := a.consumed(ctx, rc, rc.Core())
		if err != nil {
			return fmt.Errorf("repository %s: %w", rc.Code, err)
		}
		work, codes = append(work, w), append(codes, rc.Code)
	}
	moved, err := a.queue.MoveUnknown(ctx, codes)
	if err != nil {
		return err
	}
	if moved > 0 {
		a.log.Warn("requests of repositories that are no longer configured became dead letters", "count", moved)
	}
	jobs := a.queue.Jobs()
	a.consumers, err = consumers.New(work, consumers.Deps{
		Requests: a.queue, DeadLetters: a.queue.DeadLetters(), Jobs: jobs, Organizations: jobs, Pages: a.queue.PageNotes(),
		Cells: a.queue.Cells(),
		Index: a.index, Writer: a.writer,
	}, consumers.Config{
		Logger: a.log.With("component", "consumers"), Metrics: a.metrics.consumers, AckWait: a.ackWait(),
		MaxDeliver: a.opts.MaxDeliver, MaxRecordBytes: a.cfg.Index.MaxRecordBytes,
	})
	if err != nil {
		return err
	}
	a.consumers.Start()
	a.cleanup.push("consumers", a.stopConsumers)
	return nil
}

// stopConsumers stops the consumers. It leaves part of the stop timeout to the steps after it.
func (a *App) stopConsumers(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)*3/4)
		defer cancel()
	}
	err := a.consumers.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		a.log.Info("work in flight was returned to the queue")
		return nil
	}
	return err
}
