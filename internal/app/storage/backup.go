package storage

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"tutti/internal/app/backup"
	"tutti/internal/config"
	"tutti/internal/core"
	indexembedded "tutti/internal/index/embedded"
)

// Backup writes a backup of the embedded store, queue and index as a tar archive, while tutti runs. CodeConflict while another backup
// is written, or when nothing is embedded.
//
// The store is read first, then the queue, then the index. A change that the store's outbox no longer has is then in the queue, and a
// Request that the queue no longer has is in the index or among the dead letters: each part contains what the parts before it do not.
func (s *Storage) Backup(ctx context.Context, w io.Writer) error {
	if !s.backingUp.TryLock() {
		return &core.Error{Code: core.CodeConflict, Message: "another backup is in progress", Hint: "wait until it has ended"}
	}
	defer s.backingUp.Unlock()
	embedded, inProcess := s.Engine.(*indexembedded.Index)
	ownStore, ownQueue := !s.Store.Postgres(), s.cfg.Queue.URL == ""
	if !ownStore && !ownQueue && !inProcess {
		return &core.Error{
			Code: core.CodeConflict, Message: "store, queue and index are on other servers: there is nothing to back up here",
			Hint: "use pg_dump, nats stream backup, and snapshots of Elasticsearch or OpenSearch",
		}
	}
	out := backup.NewWriter(contextWriter{ctx, w}, s.opts.Version)
	part := func(name string, own bool, read func(add addFile) error) error {
		if !own {
			out.NotIncluded(name)
			return nil
		}
		out.Part(name)
		return read(func(file string, size int64, write func(io.Writer) error) error {
			return out.File(name+"/"+file, size, write)
		})
	}
	err := part(backup.PartStore, ownStore, func(add addFile) error { return s.Store.Backup(ctx, add) })
	if err != nil {
		return err
	}
	if err := part(backup.PartQueue, ownQueue, func(addFile) error {
		return s.Queue.Backup(ctx, func(stream string, write func(io.Writer) error) error {
			return out.Stream(backup.PartQueue+"/"+stream, write)
		})
	}); err != nil {
		return err
	}
	if err := part(backup.PartIndex, inProcess, func(add addFile) error { return embedded.Backup(add) }); err != nil {
		return err
	}
	return out.Close()
}

// addFile adds a file of size bytes to a backup.
type addFile = func(name string, size int64, write func(io.Writer) error) error

// contextWriter is a writer that fails once a context has ended.
type contextWriter struct {
	ctx context.Context //nolint:containedctx // the caller's, for the length of one call
	w   io.Writer
}

// Write implements io.Writer.
func (c contextWriter) Write(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, core.WrapError(core.CodeUnavailable, "the backup was cancelled", err)
	}
	return c.w.Write(b)
}

// WriteBackup writes a backup of the data of a configuration without a running server. CodeConflict if a tutti runs on the data folder.
func WriteBackup(ctx context.Context, cfg config.Config, log *slog.Logger, version string, w io.Writer) (err error) {
	s := forCommand(cfg, log, version)
	defer func() { err = errors.Join(err, s.opts.Cleanup.Run(context.WithoutCancel(ctx))) }()
	for _, open := range []func(context.Context) error{s.OpenQueue, s.OpenStore, s.OpenIndex} {
		if err := open(ctx); err != nil {
			return inUse(err, "use --server instead of --config to back up a running server")
		}
	}
	return s.Backup(ctx, w)
}
