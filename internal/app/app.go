package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tutti/http/server"
	"tutti/internal/app/housekeeping"
	"tutti/internal/app/storage"
	"tutti/internal/base/budget"
	"tutti/internal/base/cleanup"
	"tutti/internal/base/span"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/rebuild"
	"tutti/internal/queue"
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
	// FolderEvery is how often the folder of the catalogues is checked for changes, which are taken up when nothing more has changed for half of
	// it; by default 10 s.
	FolderEvery time.Duration
	// Examples is passed to the HTTP handler's Config.
	Examples func() []string
}

// App is one tutti process.
type App struct {
	*base
	search   *searching
	builtIn  *builtIn
	indexer  *indexer
	contents *housekeeping.Contents
	jobs     *housekeeping.Jobs

	server      *server.Server
	certificate *server.Certificate // nil without TLS
	// indexCheck and storeCheck check for Health that index and store take durable writes, fillCheck what was indexed.
	indexCheck, storeCheck, fillCheck *cachedCheck
	// indexDefect is what the index engine was known to do wrong when it was last checked, nil for nothing.
	indexDefect atomic.Pointer[string]
	// connectionCheck checks again the connections that failed.
	connectionCheck *cachedCheck

	started sync.Once
	// stopping is true once Stop was called.
	stopping atomic.Bool
}

// base holds what every part of the process uses.
type base struct {
	cfg  config.Config
	opts Options
	log  *slog.Logger

	registry *prometheus.Registry
	metrics  metrics
	cleanup  cleanup.Stack
	memory   *budget.Budget
	data     *storage.Storage
	// tracer starts the spans of the process; nil when traces are off.
	tracer *span.Tracer
	// connections are those to other servers that failed when they were last used.
	connections tlsconfig.Failures
}

// New returns an App for a validated configuration. It opens nothing.
func New(cfg config.Config, opts Options) (*App, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Version = cmp.Or(opts.Version, "dev")
	opts.FolderEvery = cmp.Or(opts.FolderEvery, folderCheckEvery)
	memory, err := budget.New(cfg.Server.MaxBytesInFlight, nil)
	if err != nil {
		return nil, err
	}
	b := &base{cfg: cfg, opts: opts, registry: prometheus.NewRegistry(), memory: memory}
	b.log = b.withTraceIDs(opts.Logger)
	b.measure()
	search := &searching{base: b}
	b.data = storage.New(cfg, storage.Options{
		Logger: b.log, Version: opts.Version, Index: opts.Index, Memory: memory, Cleanup: &b.cleanup,
		Metrics: storage.Metrics{Queue: b.metrics.queue, Store: b.metrics.store, Bulk: b.metrics.bulk}, SmallBatches: func() bool { return search.pace.Limited() },
	})
	a := &App{base: b, search: search, builtIn: &builtIn{base: b}}
	a.indexer = &indexer{
		base: b, search: a.search, builtIn: a.builtIn, upstreams: make(map[string]*watchedUpstream),
		rebuilds: make(map[string]*rebuild.Rebuild), contradictions: make(map[string]*atomic.Pointer[contradiction]), declared: &declarations{},
	}
	return a, nil
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
		{"starting traces", a.startTracing},
		{"reading the certificate of server.tls", a.openCertificate},
		{"listening for profiles", a.serveProfiles},
		{"opening the queue", a.data.OpenQueue},
		{"checking whether a move was interrupted", a.retried(a.data.CheckMove)},
		{"opening the store", a.data.OpenStore},
		{"opening the index", a.data.OpenIndex},
		{"preparing searches", a.search.openSearch},
		{"reading the catalogues", a.search.openCatalogues},
		{"preparing downloads", a.search.openDownloads},
		{"opening the metadata repository", a.builtIn.openMetadata},
		{"starting the bulk writer", a.data.StartWriter},
		{"preparing ingest", a.indexer.openIngest},
		{"checking what was indexed", a.retried(a.startFilled)},
		{"reading when repositories were last indexed", a.retried(func(ctx context.Context) error { return a.contents.SetLastSuccess(ctx) })},
		{"starting the consumers", a.indexer.startConsumers},
		{"starting the readers of notifications", a.indexer.startSources},
		{"starting the outbox relay", a.indexer.startRelay},
		{"starting housekeeping", a.startHousekeeping},
		{"starting the catalogues", a.search.startCatalogues},
		{"starting the alerts", a.startAlerts},
		{"listening", a.listen},
	}
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", step.name, err), a.Stop(context.WithoutCancel(ctx)))
		}
	}
	return nil
}

// retried returns a step that is repeated while the queue does not answer, as while a cluster elects a leader.
func (a *App) retried(step func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		return a.data.Queue.RetryStart(ctx, func(context.Context) error { return step(ctx) })
	}
}

// Stop shuts the App down. It reports that it is not ready and serves for the configured delay; then it stops in reverse order, for no
// longer than the configured timeout: it stops listening, waits for work in flight, and returns the rest to the queue. It may be
// called more than once.
func (a *App) Stop(ctx context.Context) error {
	if !a.stopping.Swap(true) && a.server != nil {
		a.server.Drain(ctx, a.cfg.Server.ShutdownDelay)
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Server.ShutdownTimeout)
	defer cancel()
	return a.cleanup.Run(ctx)
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
func (a *App) Index() index.Index { return a.data.Index }

// Queue returns the queue, for benchmarks; valid after Start.
func (a *App) Queue() *queue.Queue { return a.data.Queue }

// Backup writes a backup of what runs inside the process, for GET /backup; valid after Start.
func (a *App) Backup(ctx context.Context, w io.Writer) error { return a.data.Backup(ctx, w) }

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
	a.cleanup.Push("certificate", a.certificate.Stop)
	return nil
}

// partOf returns a context that ends after a part of the time that ctx leaves.
func partOf(ctx context.Context, part, whole time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)*part/whole)
}
