package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"tutti/internal/base/disk"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/store/connection"
	"tutti/internal/store/prepared"
)

// DefaultMaxConnections is the default of Config.MaxConnections.
const DefaultMaxConnections = 16

// minFreeBytes is the free disk space that Ready requires after SQLite failed to write.
const minFreeBytes = 1 << 20

// Config configures a Store. Dir or URL is required.
type Config struct {
	// URL is that of PostgreSQL, postgres://user:password@host:5432/database; empty for SQLite.
	URL string
	// TLS names the files of TLS of PostgreSQL; without any the URL says whether and how connections use it.
	TLS tlsconfig.Files
	// Dir is the directory of SQLite's file; it is created when missing.
	Dir string
	// MaxConnections bounds the connections to PostgreSQL. Default DefaultMaxConnections.
	MaxConnections int
	// IdleTimeout bounds the wait for the next bytes of PostgreSQL before the connection is closed. Default 30 s.
	IdleTimeout time.Duration
	// Logger logs what an operator should know. Default: no logging.
	Logger *slog.Logger
	// Metrics measures transactions; nil measures nothing.
	Metrics *Metrics
}

func (c Config) validate() error {
	if c.URL == "" && c.Dir == "" {
		return core.NewError(core.CodeInvalid, "the store needs a directory or the URL of a PostgreSQL database")
	}
	if c.URL != "" && !strings.HasPrefix(c.URL, "postgres://") && !strings.HasPrefix(c.URL, "postgresql://") {
		return core.NewError(core.CodeInvalid, "the store's URL must start with postgres://")
	}
	if c.IdleTimeout < 0 {
		return core.NewError(core.CodeInvalid, "the idle timeout of the database must not be negative")
	}
	if c.MaxConnections < 0 {
		return core.NewError(core.CodeInvalid, "the number of connections must not be negative")
	}
	return nil
}

// target returns how to connect to PostgreSQL.
func (c Config) target() (*connection.Target, error) {
	return connection.New(connection.Settings{URL: c.URL, URLKey: "store.url", ReadWrite: true, TLS: c.TLS})
}

func (c Config) withDefaults() Config {
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = postgresIdleTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Conn runs statements: on the database, or in a transaction.
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Store is the database. It is safe for concurrent use.
type Store struct {
	cfg          Config
	postgres     bool
	transactions drainGroup      // running transactions
	lost         connection.Lost // PostgreSQL only
	// direct is how to connect to PostgreSQL, begin what its transactions begin with, "" for nothing.
	direct *connection.Target
	begin  string
	reader Conn
	read   *sql.DB
	write  *sql.DB
	writer *writer // SQLite only
	// full is set when SQLite could not write, until Ready proves that it can.
	full atomic.Bool
}

// Open opens the database and migrates its tables. CodeInvalid for a bad Config or a directory that cannot be written,
// CodeUnavailable when the database does not answer, CodeForbidden when it rejects the user, CodeConflict when its content is not a store of this version: tables of a
// newer version, another program's tables, or a damaged file.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg.withDefaults(), postgres: cfg.URL != ""}
	open := s.openSQLite
	if s.postgres {
		open = s.openPostgres
	}
	if err := open(ctx); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		_ = s.closeDatabases() // nothing was written
		return nil, err
	}
	return s, nil
}

// prepare migrates an open database and starts the writer.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if s.postgres {
		s.reader = connection.Reader{DB: s.read, Lost: &s.lost}
		return nil
	}
	s.reader = prepared.NewReader(s.read)
	var err error
	s.writer, err = newWriter(ctx, s.write, s.cfg.Metrics)
	return err
}

// Postgres reports whether the database is PostgreSQL, which other processes may use too.
func (s *Store) Postgres() bool { return s.postgres }

// Read returns a Conn for statements that change nothing; each sees what was committed when it started. While PostgreSQL restarts, a
// statement waits for a few seconds.
func (s *Store) Read() Conn { return s.reader }

// Ready commits a transaction that changes nothing but is written to disk. CodeUnavailable when that fails: the database does not
// answer, or its disk is full. Calls must not overlap.
func (s *Store) Ready(ctx context.Context) error {
	const doing = "checking that the store accepts writes"
	if s.full.Load() {
		// A small transaction may still fit where the failed one did not.
		if err := disk.ProbeSpace(s.cfg.Dir, minFreeBytes); err != nil {
			return core.WrapError(core.CodeUnavailable, doing+": the store's disk is full", err)
		}
	}
	written := "PRAGMA user_version = 0" // SQLite always writes its page
	if s.postgres {
		written = "SELECT pg_logical_emit_message(true, 'tutti', '')" // writes only to the write-ahead log
	}
	err := s.Update(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.ExecContext(ctx, written)
		return WrapError(doing, err)
	})
	if err == nil {
		s.full.Store(false)
	}
	return err
}

// Update runs change in a transaction, which is durable when Update returns nil. After a CodeUnavailable error of the commit it may
// be durable too.
//
// change may be called again after the database rolled it back, so it must not keep results of an earlier call. It must use only
// its Tx, close the rows that it reads, and return an error to roll back; a failed statement always rolls back. On SQLite
// transactions run one after the other, and those that wait are synced together, so change must be quick. CodeUnavailable for a
// closed Store, CodeInternal within another change.
func (s *Store) Update(ctx context.Context, change func(ctx context.Context, tx *Tx) error) error {
	if ctx.Value(inTransaction{}) != nil {
		return core.NewError(core.CodeInternal, "a transaction was started within another one")
	}
	started := time.Now()
	err := s.update(ctx, change)
	s.cfg.Metrics.observe(started, err)
	return err
}

func (s *Store) update(ctx context.Context, change func(ctx context.Context, tx *Tx) error) error {
	if !s.transactions.add() {
		return closedError()
	}
	defer s.transactions.done()
	if s.postgres {
		return s.updatePostgres(ctx, change)
	}
	err := s.writer.do(ctx, change)
	if isWriteFailure(err) {
		s.full.Store(true)
	}
	return err
}

// Close waits for running transactions and closes the database. When ctx ends first, transactions that have not started fail,
// those in flight go on, and Close returns CodeUnavailable. It may be called again.
func (s *Store) Close(ctx context.Context) error {
	finished := s.transactions.drain(ctx)
	if s.writer != nil {
		s.writer.stop()
		if finished {
			<-s.writer.ended
		}
	}
	if err := s.closeDatabases(); err != nil {
		return err
	}
	if !finished {
		return core.WrapError(core.CodeUnavailable, "closing the store: transactions are still in flight", ctx.Err())
	}
	return nil
}

// closeDatabases closes the connections, each as soon as it is unused.
func (s *Store) closeDatabases() error {
	// Readers first: the last connection to SQLite writes the log back into the database, which needs a writing connection.
	err := s.read.Close()
	if s.write != s.read {
		err = errors.Join(err, s.write.Close())
	}
	return WrapError("closing the store", err)
}

// Micros returns t as stored: microseconds since 1970 in UTC, 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Time returns the time of a result of Micros.
func Time(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
