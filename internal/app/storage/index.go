package storage

import (
	"context"
	"time"

	"tutti/internal/app/backup"
	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/index/bulk"
	"tutti/internal/index/elastic"
	indexembedded "tutti/internal/index/embedded"
	"tutti/internal/index/lastwrite"
	"tutti/internal/index/merged"
	"tutti/internal/index/rebuild"
)

// cursorSecret is the name of the secret of the store that cursors are encrypted with.
const cursorSecret = "cursors"

// OpenIndex opens the index; the store must be open.
func (s *Storage) OpenIndex(ctx context.Context) error {
	if err := s.openEngine(ctx); err != nil {
		return err
	}
	s.Written = lastwrite.New(s.Engine, nil)
	s.Index = merged.New(s.Written, s.cfg.CoreRepositories())
	if engine, is := s.Engine.(interface {
		CheckStorage(ctx context.Context, alias string) error
	}); is {
		s.Index.CheckStorage = engine.CheckStorage
	}
	// After the last write, and before the queue is closed. A queue that does not answer does not delay the end.
	s.opts.Cleanup.Push("times of writes", func(ctx context.Context) error {
		s.ShareWriteTimes(ctx)
		return nil
	})
	return nil
}

func (s *Storage) openEngine(ctx context.Context) error {
	if s.opts.Index != nil {
		s.Engine = s.opts.Index
		return nil
	}
	var err error
	if c := s.cfg.Index; c.URL != "" {
		var key []byte
		if key, err = s.Store.Secret(ctx, cursorSecret); err != nil {
			return err
		}
		conn := settings.Connection(c)
		conn.Logger = s.log.With("component", "index")
		cfg := elastic.Config{
			Connection: conn,
			Shards:     c.Shards, Replicas: c.Replicas, Limits: settings.Limits(c), Grown: func(alias string) { s.Grown(alias) }, CursorKey: key,
		}
		if s.opts.Memory != nil { // a command that opens the parts of a stopped tutti has none
			cfg.Memory = s.opts.Memory.Reads
		}
		s.Engine, err = elastic.New(cfg)
	} else {
		if err := checkUsable(s.cfg, backup.PartIndex); err != nil {
			return err
		}
		cfg := indexembedded.Config{
			Dir: settings.IndexDir(s.cfg), Logger: s.log.With("component", "index"), Grown: func(alias string) { s.Grown(alias) },
			Limits: settings.Limits(s.cfg.Index),
		}
		if s.opts.Memory != nil { // a command that opens the parts of a stopped tutti has none
			cfg.Memory = s.opts.Memory.Reads
		}
		s.Engine, err = indexembedded.Open(cfg)
	}
	if err != nil {
		return err
	}
	s.opts.Cleanup.Push("index", func(context.Context) error { return s.Engine.Close() })
	return nil
}

// StartWriter starts the bulk writer of the index. Options.Memory must be set.
func (s *Storage) StartWriter(context.Context) error {
	var err error
	s.Writer, err = bulk.New(rebuild.NewMirror(s.Index, s.Queue.Cells()), bulk.Config{
		BatchBytes: s.cfg.Index.BatchBytes, MaxInFlight: s.cfg.Index.MaxInFlight, Memory: s.opts.Memory.Writes, DocumentWeight: documentWeight(s.cfg.Index),
		Small: s.opts.SmallBatches, Logger: s.log.With("component", "bulk"), Metrics: s.opts.Metrics.Bulk,
	})
	if err != nil {
		return err
	}
	s.opts.Cleanup.Push("bulk writer", s.Writer.Close)
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

// shareTimeout limits ShareWriteTimes, which neither a start nor an end should wait for.
const shareTimeout = 2 * time.Second

// ShareWriteTimes exchanges with other processes when the indices of the repositories were last written, and logs why it cannot.
func (s *Storage) ShareWriteTimes(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	var aliases []string
	for _, rc := range s.cfg.Repositories {
		aliases = append(aliases, rc.IndexName)
	}
	if err := s.Written.Share(within, s.Queue.Cells(), aliases); err != nil && ctx.Err() == nil {
		s.log.Warn("sharing when indices were last written", "err", err)
	}
}
