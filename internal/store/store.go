package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"tutti/internal/core"
)

// sqliteFile is the name of the database in the data folder.
const sqliteFile = "tutti.db"

// Defaults of Config.
const (
	// DefaultMaxConnections is how many connections to PostgreSQL are open at most unless Config says otherwise.
	DefaultMaxConnections = 16
	// sqliteReaders is how many connections read SQLite side by side.
	sqliteReaders = 4
)

// Config says where the database is. The zero value is a database that no Open accepts: Dir or URL is needed.
type Config struct {
	// URL is that of PostgreSQL, postgres://user:password@host:5432/database; empty for SQLite.
	URL string
	// Dir is the folder that SQLite's file is kept in; it is made when it is missing.
	Dir string
	// MaxConnections bounds the connections to PostgreSQL. Default DefaultMaxConnections.
	MaxConnections int
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
	if c.MaxConnections < 0 {
		return core.NewError(core.CodeInvalid, "the number of connections must not be negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
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
	read     *sql.DB
	write    *sql.DB
	writer   *writer // SQLite alone
}

// Open opens the database and brings its tables up to date. CodeInvalid for a bad Config, CodeUnavailable when the
// database does not answer, CodeConflict when its tables are those of a newer tutti.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg.withDefaults(), postgres: cfg.URL != ""}
	var err error
	if s.postgres {
		err = s.openPostgres()
	} else {
		err = s.openSQLite(ctx, filepath.Join(cfg.Dir, sqliteFile))
	}
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(err, s.closeDatabases())
	}
	if !s.postgres {
		if s.writer, err = newWriter(ctx, s.write, s.cfg.Metrics); err != nil {
			return nil, errors.Join(err, s.closeDatabases())
		}
	}
	return s, nil
}

// Postgres tells whether the database is PostgreSQL, which other processes may use as well.
func (s *Store) Postgres() bool { return s.postgres }

// Read gives what runs statements that change nothing, each on what was committed when it began.
func (s *Store) Read() Conn { return s.read }

// Ping asks the database for a sign of life. CodeUnavailable when it gives none.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return Fault("asking the store for a sign of life", s.read.QueryRowContext(ctx, "SELECT 1").Scan(&one))
}

// Update runs change in a transaction, which is durable when Update returns nil. change may be called again when the
// database had to undo it, so it keeps nothing of an earlier call; it must use its Tx alone, and give an error of its own
// to undo what it did. On SQLite transactions run one after the other, and those that wait together are synced together.
func (s *Store) Update(ctx context.Context, change func(ctx context.Context, tx *Tx) error) error {
	started := time.Now()
	var err error
	if s.postgres {
		err = s.updatePostgres(ctx, change)
	} else {
		err = s.writer.do(ctx, change)
	}
	s.cfg.Metrics.observe(started, err)
	return err
}

// Close ends the transactions in hand and closes the database. It may be called again.
func (s *Store) Close(ctx context.Context) error {
	if s.writer != nil {
		s.writer.stop(ctx)
	}
	return s.closeDatabases()
}

func (s *Store) closeDatabases() error {
	err := s.write.Close()
	if s.read != s.write {
		err = errors.Join(err, s.read.Close())
	}
	return Fault("closing the store", err)
}

// Tx is a transaction.
type Tx struct {
	Conn
	postgres bool
}

// Micros gives t as it is stored: microseconds since 1970 in UTC, 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Time gives what Micros made of a time.
func Time(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
