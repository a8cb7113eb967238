package store

import (
	"context"
	"database/sql"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"tutti/internal/core"
)

const (
	// postgresTries is how often a transaction is run that PostgreSQL had to undo because of another one.
	postgresTries = 8
	// postgresIdle is how long a connection is kept that nobody uses.
	postgresIdle = 5 * time.Minute
)

func (s *Store) openPostgres() error {
	cfg, err := pgx.ParseConfig(s.cfg.URL)
	if err != nil {
		// The error's text may hold the password.
		return core.NewError(core.CodeInvalid, "the store's URL is not that of a PostgreSQL database")
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 10 * time.Second
	}
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(s.cfg.MaxConnections)
	db.SetMaxIdleConns(s.cfg.MaxConnections)
	db.SetConnMaxIdleTime(postgresIdle)
	s.read, s.write = db, db
	return nil
}

// updatePostgres runs a transaction, again when it collided with another one.
func (s *Store) updatePostgres(ctx context.Context, change func(context.Context, *Tx) error) error {
	for try := 1; ; try++ {
		err := s.tryPostgres(ctx, change)
		if try == postgresTries || !collided(err) {
			return err
		}
	}
}

func (s *Store) tryPostgres(ctx context.Context, change func(context.Context, *Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return Fault("beginning a transaction", err)
	}
	if err := guard(ctx, &Tx{Conn: tx, postgres: true}, change); err != nil {
		_ = tx.Rollback() // the connection is broken then, and goes
		return err
	}
	return Fault("committing a transaction", tx.Commit())
}

// collided tells whether PostgreSQL undid a transaction because of another one (SQLSTATE class 40).
func collided(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && len(e.Code) == 5 && e.Code[:2] == "40"
}

// Lock keeps other transactions that lock one of the same keys waiting until this one ends. On SQLite, where
// transactions run one after the other, it does nothing. A transaction locks once, so that two never wait for each other.
func (tx *Tx) Lock(ctx context.Context, keys ...string) error {
	if !tx.postgres || len(keys) == 0 {
		return nil
	}
	hashes := make([]int64, len(keys))
	for i, k := range keys {
		h := fnv.New64a()
		_, _ = h.Write([]byte(k)) // never fails
		hashes[i] = int64(h.Sum64())
	}
	slices.Sort(hashes)
	for _, h := range slices.Compact(hashes) {
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", h); err != nil {
			return Fault("locking", err)
		}
	}
	return nil
}

var _ Conn = (*sql.DB)(nil)
