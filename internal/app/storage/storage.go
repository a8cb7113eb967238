package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"tutti/internal/app/backup"
	"tutti/internal/app/settings"
	"tutti/internal/base/budget"
	"tutti/internal/base/cleanup"
	"tutti/internal/base/retry"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/bulk"
	"tutti/internal/index/lastwrite"
	"tutti/internal/index/merged"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
	"tutti/internal/store"
)

// Options are what a process that serves adds to a configuration. Commands leave what they do not need zero.
type Options struct {
	// Logger receives all log records; it must be set.
	Logger *slog.Logger
	// Version is the program's version.
	Version string
	// Index replaces the index that the configuration names; for benchmarks and tests.
	Index index.Index
	// Memory bounds what is read from the index and written to it at once. A command has no such bound.
	Memory *budget.Budget
	// Cleanup receives the steps that close what is opened; it must be set.
	Cleanup *cleanup.Stack
	Metrics Metrics
	// SmallBatches is bulk.Config.Small.
	SmallBatches func() bool
}

// Metrics holds one metrics struct per part, nil where nothing is measured.
type Metrics struct {
	Queue *queue.Metrics
	Store *store.Metrics
	Bulk  *bulk.Metrics
}

// Storage is the queue, the store and the index of a configuration. Each is there once its method has opened it.
type Storage struct {
	Queue *queue.Queue
	Store *store.Store
	// Engine is the search index, Written the same with the times of its writes, Index that for repositories that may share indices, and
	// Writer what writes to it in batches.
	Engine  index.Index
	Written *lastwrite.Index
	Index   *merged.Index
	Writer  *bulk.Writer
	// Grown is called with the alias of an index that has new fields; the process sets it before anything is written.
	Grown func(alias string)

	cfg  config.Config
	opts Options
	log  *slog.Logger
	// backingUp is locked while a backup is written.
	backingUp sync.Mutex
	// damage is what of the embedded queue could not be read at the start.
	damage embedded.Damage
}

// New returns the storage of a configuration. It opens nothing.
func New(cfg config.Config, opts Options) *Storage {
	return &Storage{cfg: cfg, opts: opts, log: opts.Logger}
}

// forCommand returns the storage of a configuration for a command.
func forCommand(cfg config.Config, log *slog.Logger, version string) *Storage {
	s := New(cfg, Options{Logger: log, Version: version, Cleanup: new(cleanup.Stack)})
	s.Grown = func(string) {}
	return s
}

// queueConfig returns the configuration of the queue.
func (s *Storage) queueConfig() queue.Config {
	return queue.Config{
		URL: s.cfg.Queue.URL.Reveal(), Security: settings.QueueSecurity(s.cfg.Queue), Replicas: s.cfg.Queue.Replicas,
		MaxPending: s.cfg.Queue.MaxPending, MaxDeadLetterBodies: s.cfg.DeadLetters.MaxBodies,
		StartTimeout: s.cfg.Server.StartTimeout,
		Logger:       s.log.With("component", "queue"), Metrics: s.opts.Metrics.Queue,
	}
}

// OpenQueue connects to the queue, or starts the embedded one.
func (s *Storage) OpenQueue(ctx context.Context) error {
	cfg := s.queueConfig()
	var err error
	if cfg.URL != "" {
		s.Queue, err = queue.Connect(ctx, cfg)
	} else {
		s.Queue, err = s.openEmbeddedQueue(ctx, cfg)
	}
	if err != nil {
		return err
	}
	s.opts.Cleanup.Push("queue", s.Queue.Close)
	return nil
}

func (s *Storage) openEmbeddedQueue(ctx context.Context, cfg queue.Config) (*queue.Queue, error) {
	if err := checkUsable(s.cfg, backup.PartQueue); err != nil {
		return nil, err
	}
	server, err := embedded.Start(ctx, embedded.Config{
		Dir: settings.QueueDir(s.cfg), Logger: s.log.With("component", "nats"),
	})
	if err != nil {
		return nil, err
	}
	s.opts.Cleanup.Push("embedded queue", server.Stop)
	q, err := queue.ConnectInProcess(ctx, server, cfg)
	if err != nil {
		return nil, err
	}
	s.damage = server.Damage()
	s.opts.Metrics.Queue.SetUnreadable(s.damage)
	if len(s.DamageReasons()) > 0 {
		err = q.RequestRunAll(ctx, queue.RunAllDifference)
	}
	if err == nil {
		err = server.DamageHandled()
	}
	if err != nil {
		s.log.Warn("requesting the runs that repair the damage of the queue; the next start does it", "err", err)
	}
	return q, nil
}

// DamageReasons returns the reasons for Health of stored messages that could not be read.
func (s *Storage) DamageReasons() []string {
	var reasons []string
	for _, stream := range slices.Sorted(maps.Keys(s.damage)) {
		if n := s.damage[stream]; n > 0 {
			reasons = append(reasons, fmt.Sprintf("queue: %d stored messages of the stream %s were damaged on the disk and are lost; "+
				"a run of the difference of every repository was queued", n, stream))
		}
	}
	return reasons
}

// openDatabase opens the store of a configuration. It locks the folder of an embedded store for this process; call release after
// closing the store to unlock it.
func openDatabase(
	ctx context.Context, cfg config.Config, log *slog.Logger, metrics *store.Metrics,
) (s *store.Store, release func() error, err error) {
	release = func() error { return nil }
	c := settings.Store(cfg)
	c.Logger, c.Metrics = log.With("component", "store"), metrics
	if c.URL == "" {
		if err := checkUsable(cfg, backup.PartStore); err != nil {
			return nil, nil, err
		}
		lock, err := embedded.LockDir(c.Dir)
		if err != nil {
			return nil, nil, err
		}
		release = lock.Unlock
	}
	if s, err = store.Open(ctx, c); err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return s, release, nil
}

// Delays between the attempts of a start to open the store; they double.
const (
	firstStoreDelay = 100 * time.Millisecond
	lastStoreDelay  = 5 * time.Second
)

// OpenStore opens the store. It waits for a PostgreSQL that does not answer, or that starts or recovers, as long as a start may.
func (s *Storage) OpenStore(ctx context.Context) error {
	starting, cancel := context.WithTimeout(ctx, s.cfg.Server.StartTimeout)
	defer cancel()
	db, release, err := openDatabase(starting, s.cfg, s.log, s.opts.Metrics.Store)
	for try := 0; s.cfg.Store.URL != "" && core.Retryable(err); try++ {
		s.log.Warn("the start waits for the store", "err", err, "hint", core.HintOf(err))
		if retry.Sleep(starting, retry.Delay(try, firstStoreDelay, lastStoreDelay)) != nil {
			return &core.Error{
				Code: core.CodeOf(err), Message: fmt.Sprintf("%s; gave up after %s", core.MessageOf(err), s.cfg.Server.StartTimeout), Hint: core.HintOf(err), Err: err,
			}
		}
		var last error
		if db, release, last = openDatabase(starting, s.cfg, s.log, s.opts.Metrics.Store); !errors.Is(last, context.DeadlineExceeded) {
			err = last // else the end of the wait may have cut the attempt short, and the error before says more
		}
	}
	if err != nil {
		return err
	}
	s.Store = db
	s.opts.Cleanup.Push("store", func(ctx context.Context) error { return errors.Join(db.Close(ctx), release()) })
	return nil
}
