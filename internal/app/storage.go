package app

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
	"tutti/internal/auth"
	"tutti/internal/base/retry"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/bulk"
	"tutti/internal/index/elastic"
	indexembedded "tutti/internal/index/embedded"
	"tutti/internal/index/lastwrite"
	"tutti/internal/index/merged"
	"tutti/internal/index/rebuild"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
	"tutti/internal/store"
)

// storage holds the queue, the store and the index of the process.
type storage struct {
	*base
	queue *queue.Queue
	store *store.Store
	// engine is the search index, written the same with the times of its writes, index that for repositories that may share indices.
	engine  index.Index
	written *lastwrite.Index
	index   *merged.Index
	writer  *bulk.Writer
	// grown is called with the alias of an index that has new fields. Nothing is written before it is set.
	grown func(alias string)
	// backingUp is locked while a backup is written.
	backingUp sync.Mutex
	// damage is what of the embedded queue could not be read at the start.
	damage embedded.Damage
}

// queueConfig returns the configuration of the queue.
func (s *storage) queueConfig() queue.Config {
	return queue.Config{
		URL: s.cfg.Queue.URL.Reveal(), Security: settings.QueueSecurity(s.cfg.Queue), Replicas: s.cfg.Queue.Replicas,
		MaxPending: s.cfg.Queue.MaxPending, MaxDeadLetterBodies: s.cfg.DeadLetters.MaxBodies,
		StartTimeout: s.cfg.Server.StartTimeout,
		Logger:       s.log.With("component", "queue"), Metrics: s.metrics.queue,
	}
}

func (s *storage) openQueue(ctx context.Context) error {
	cfg := s.queueConfig()
	var err error
	if cfg.URL != "" {
		s.queue, err = queue.Connect(ctx, cfg)
	} else {
		s.queue, err = s.openEmbeddedQueue(ctx, cfg)
	}
	if err != nil {
		return err
	}
	s.cleanup.push("queue", s.queue.Close)
	return nil
}

func (s *storage) openEmbeddedQueue(ctx context.Context, cfg queue.Config) (*queue.Queue, error) {
	if err := checkUsable(s.cfg, backup.PartQueue); err != nil {
		return nil, err
	}
	server, err := embedded.Start(ctx, embedded.Config{
		Dir: settings.QueueDir(s.cfg), Logger: s.log.With("component", "nats"),
	})
	if err != nil {
		return nil, err
	}
	s.cleanup.push("embedded queue", server.Stop)
	q, err := queue.ConnectInProcess(ctx, server, cfg)
	if err != nil {
		return nil, err
	}
	s.damage = server.Damage()
	s.metrics.queue.SetUnreadable(s.damage)
	if len(s.damageReasons()) > 0 {
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

// damageReasons returns the reasons for Health of stored messages that could not be read.
func (s *storage) damageReasons() []string {
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

// openStore opens the store. It waits for a PostgreSQL that does not answer, or that starts or recovers, as long as a start may.
func (s *storage) openStore(ctx context.Context) error {
	starting, cancel := context.WithTimeout(ctx, s.cfg.Server.StartTimeout)
	defer cancel()
	db, release, err := openDatabase(starting, s.cfg, s.log, s.metrics.store)
	for try := 0; s.cfg.Store.URL != "" && core.Retryable(err); try++ {
		s.log.Warn("the start waits for the store", "err", err, "hint", core.HintOf(err))
		if retry.Sleep(starting, retry.Delay(try, firstStoreDelay, lastStoreDelay)) != nil {
			return &core.Error{
				Code: core.CodeOf(err), Message: fmt.Sprintf("%s; gave up after %s", core.MessageOf(err), s.cfg.Server.StartTimeout), Hint: core.HintOf(err), Err: err,
			}
		}
		var last error
		if db, release, last = openDatabase(starting, s.cfg, s.log, s.metrics.store); !errors.Is(last, context.DeadlineExceeded) {
			err = last // else the end of the wait may have cut the attempt short, and the error before says more
		}
	}
	if err != nil {
		return err
	}
	s.store = db
	s.cleanup.push("store", func(ctx context.Context) error { return errors.Join(db.Close(ctx), release()) })
	return nil
}

// cursorSecret is the name of the secret of the store that cursors are encrypted with.
const cursorSecret = "cursors"

func (s *storage) openIndex(ctx context.Context) error {
	if err := s.openEngine(ctx); err != nil {
		return err
	}
	s.written = lastwrite.New(s.engine, nil)
	s.index = merged.New(s.written, s.cfg.CoreRepositories())
	if engine, is := s.engine.(interface {
		CheckStorage(ctx context.Context, alias string) error
	}); is {
		s.index.CheckStorage = engine.CheckStorage
	}
	// After the last write, and before the queue is closed. A queue that does not answer does not delay the end.
	s.cleanup.push("times of writes", func(ctx context.Context) error {
		s.tryShareWriteTimes(ctx)
		return nil
	})
	return nil
}

func (s *storage) openEngine(ctx context.Context) error {
	if s.opts.Index != nil {
		s.engine = s.opts.Index
		return nil
	}
	var err error
	if c := s.cfg.Index; c.URL != "" {
		var key []byte
		if key, err = s.store.Secret(ctx, cursorSecret); err != nil {
			return err
		}
		conn := settings.Connection(c)
		conn.Logger = s.log.With("component", "index")
		cfg := elastic.Config{
			Connection: conn,
			Shards:     c.Shards, Replicas: c.Replicas, Limits: settings.Limits(c), Grown: func(alias string) { s.grown(alias) }, CursorKey: key,
		}
		if s.memory != nil { // a command that opens the parts of a stopped tutti has none
			cfg.Memory = s.memory.Reads
		}
		s.engine, err = elastic.New(cfg)
	} else {
		if err := checkUsable(s.cfg, backup.PartIndex); err != nil {
			return err
		}
		cfg := indexembedded.Config{
			Dir: settings.IndexDir(s.cfg), Logger: s.log.With("component", "index"), Grown: func(alias string) { s.grown(alias) },
			Limits: settings.Limits(s.cfg.Index),
		}
		if s.memory != nil { // a command that opens the parts of a stopped tutti has none
			cfg.Memory = s.memory.Reads
		}
		s.engine, err = indexembedded.Open(cfg)
	}
	if err != nil {
		return err
	}
	s.cleanup.push("index", func(context.Context) error { return s.engine.Close() })
	return nil
}

func (s *storage) startWriter(context.Context) error {
	var err error
	s.writer, err = bulk.New(rebuild.NewMirror(s.index, s.queue.Cells()), bulk.Config{
		BatchBytes: s.cfg.Index.BatchBytes, MaxInFlight: s.cfg.Index.MaxInFlight, Memory: s.memory.Writes, DocumentWeight: documentWeight(s.cfg.Index),
		Logger: s.log.With("component", "bulk"), Metrics: s.metrics.bulk,
	})
	if err != nil {
		return err
	}
	s.cleanup.push("bulk writer", s.writer.Close)
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

// scopes returns the format of scopes.
func scopes(c config.Auth) auth.Scopes {
	return auth.Scopes{
		System: c.SystemScope, OrganizationPrefix: c.OrganizationPrefix, WriteSuffix: c.WriteSuffix, ReadSuffix: c.ReadSuffix,
	}
}

// KeyStore manages the API keys in a store without a running server.
type KeyStore struct {
	*auth.Keys
	store   *store.Store
	release func() error
}

// OpenKeys opens the API keys in the store of a configuration. It returns CodeConflict if a tutti runs on the data folder.
func OpenKeys(ctx context.Context, cfg config.Config) (*KeyStore, error) {
	s, release, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler), nil)
	if core.CodeOf(err) == core.CodeConflict {
		return nil, &core.Error{
			Code: core.CodeConflict, Message: core.MessageOf(err), Hint: "use --server instead of --config to call the running server",
		}
	}
	if err != nil {
		return nil, err
	}
	keys, err := auth.NewKeys(s, auth.KeysConfig{Scopes: scopes(cfg.Auth)})
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx), release())
	}
	return &KeyStore{Keys: keys, store: s, release: release}, nil
}

// Close closes the store.
func (k *KeyStore) Close(ctx context.Context) error {
	return errors.Join(k.store.Close(ctx), k.release())
}
