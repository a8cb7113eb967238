package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"tutti/internal/core"
	"tutti/internal/disk"
)

// DefaultMaxConnections is how many connections to PostgreSQL are open at most unless Config says otherwise.
const DefaultMaxConnections = 16

// roomBytes is what the folder of SQLite must have room for after a transaction could not be written.
const roomBytes = 1 << 20

// Config says where the database is. The zero value is a database that no Open accepts: Dir or URL is needed.
type Config struct {
	// URL is that of PostgreSQL, postgres://user:password@host:5432/database; empty for SQLite.
	URL string
	// Dir is the folder that SQLite's file is kept in; it is made when it is missing.
	Dir string
	// MaxConnections bounds the connections to PostgreSQL. Default DefaultMaxConnections.
	MaxConnections int
	// Silence is how long PostgreSQL may take for the next bytes of an answer before the connection is given up. Default 30 s.
	Silence time.Duration
	// Logger takes what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
	// Metrics measures transactions; nil measures nothing.
	Metrics *Metrics
}

func (c Config) validate() error {
	if c.URL == "" && c.Dir == "" {
		return core.NewError(core.CodeInvalid, "the store needs a folder or the URL of a PostgreSQL database")
	}
	if c.URL != "" && !strings.HasPrefix(c.URL, "postgres://") && !strings.HasPrefix(c.URL, "postgresql://") {
		return core.NewError(core.CodeInvalid, "the store's URL does not begin with postgres://")
	}
	if c.Silence < 0 {
		return core.NewError(core.CodeInvalid, "the silence of the database must not be negative")
	}
	if c.MaxConnections < 0 {
		return core.NewError(core.CodeInvalid, "the number of connections must not be negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	if c.Silence == 0 {
		c.Silence = postgresSilence
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Conn runs statements: on the database as a whole, or inside a transaction.
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Store is the database. Its methods may be called from several goroutines at once.
type Store struct {
	cfg      Config
	postgres bool
	gate     gate // transactions are inside
	reading  Conn
	read     *sql.DB
	write    *sql.DB
	writer   *writer // SQLite alone
	// full is set when SQLite could not write, until Ready has proved that it can.
	full atomic.Bool
}

// Open opens the database and brings its tables up to date. CodeInvalid for a bad Config or a folder that cannot be written,
// CodeUnavailable when the database does not answer, CodeConflict when what is there is no store of this tutti: tables of a
// newer one, another program's, or a damaged file.
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
		_ = s.closeDatabases() // nothing was written that could be lost
		return nil, err
	}
	return s, nil
}

// prepare makes an open database ready for transactions.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return err
	}
	s.reading = s.read
	if s.postgres {
		return nil
	}
	s.reading = newReader(s.read)
	var err error
	s.writer, err = newWriter(ctx, s.write, s.cfg.Metrics)
	return err
}

// Postgres reports whether the database is PostgreSQL, which other processes may use as well.
func (s *Store) Postgres() bool { return s.postgres }

// Read returns what runs statements that change nothing, each on what was committed when it began.
func (s *Store) Read() Conn { return s.reading }

// Ready commits a transaction that changes nothing and is written all the same. CodeUnavailable when that fails: the
// database does not answer, or has no room. Calls must not overlap.
func (s *Store) Ready(ctx context.Context) error {
	const doing = "proving that the store takes changes"
	if s.full.Load() {
		// A small transaction may find room where the one that failed finds none.
		if err := disk.ProveRoom(s.cfg.Dir, roomBytes); err != nil {
			return core.WrapError(core.CodeUnavailable, doing+": the store's disk is full", err)
		}
	}
	written := "PRAGMA user_version = 0" // SQLite writes the page that holds it, whatever it held
	if s.postgres {
		written = "SELECT pg_logical_emit_message(true, 'tutti', '')" // a record of the write-ahead log, and no row
	}
	err := s.Update(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.ExecContext(ctx, written)
		return Fault(doing, err)
	})
	if err == nil {
		s.full.Store(false)
	}
	return err
}

// Update runs change in a transaction, which is durable when Update returns nil. After an error of CodeUnavailable that
// came from the commit it may be durable all the same.
//
// change may be called again when the database had to undo it, so it keeps nothing of an earlier call. It uses its Tx
// alone, closes the rows that it reads, and returns an error to undo what it did; a failed statement undoes the transaction
// in any case. On SQLite transactions run one after the other, and those that wait together are synced together, so
// change must be quick. CodeUnavailable for a Store that was closed, CodeInternal inside another change.
func (s *Store) Update(ctx context.Context, change func(ctx context.Context, tx *Tx) error) error {
	if ctx.Value(inTransaction{}) != nil {
		return core.NewError(core.CodeInternal, "a transaction was begun inside another one")
	}
	started := time.Now()
	err := s.update(ctx, change)
	s.cfg.Metrics.observe(started, err)
	return err
}

func (s *Store) update(ctx context.Context, change func(ctx context.Context, tx *Tx) error) error {
	if !s.gate.enter() {
		return closedFault()
	}
	defer s.gate.leave()
	if s.postgres {
		return s.updatePostgres(ctx, change)
	}
	err := s.writer.do(ctx, change)
	if isUnwritten(err) {
		s.full.Store(true)
	}
	return err
}

// Close waits for the transactions that were begun and closes the database. When ctx ends first, those that have not
// begun are told that they did not happen, those in hand go on, and Close returns CodeUnavailable. It may be called again.
func (s *Store) Close(ctx context.Context) error {
	finished := s.gate.close(ctx)
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
		return core.WrapError(core.CodeUnavailable, "closing the store: transactions are still in hand", ctx.Err())
	}
	return nil
}

// closeDatabases closes the connections, each as soon as nobody uses it.
func (s *Store) closeDatabases() error {
	// What reads goes first: the last connection to SQLite empties the log into the database, which takes one that writes.
	err := s.read.Close()
	if s.write != s.read {
		err = errors.Join(err, s.write.Close())
	}
	return Fault("closing the store", err)
}

// Micros returns t as it is stored: microseconds since 1970 in UTC, 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Time returns what Micros made of a time.
func Time(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
