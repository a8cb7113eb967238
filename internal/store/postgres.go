package store

import (
	"context"
	"database/sql"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"tutti/internal/core"
)

const (
	// postgresTries is how often a transaction is run that PostgreSQL had to undo because of another one.
	postgresTries = 8
	// postgresPause bounds the pause before a transaction is run again, for the first time; it doubles.
	postgresPause = 4 * time.Millisecond
	// postgresIdle is how long a connection is kept that nobody uses.
	postgresIdle = 5 * time.Minute
	// postgresOpen bounds how long Open waits for the first answer, and postgresConnect for each try to connect.
	postgresOpen    = 20 * time.Second
	postgresConnect = 10 * time.Second
	// postgresAbandoned is after how long PostgreSQL undoes a transaction whose process says nothing any more: what it
	// locked must not stay locked when a machine is cut off.
	postgresAbandoned = "SET idle_in_transaction_session_timeout = '60s'"
)

func (s *Store) openPostgres(ctx context.Context) error {
	cfg, err := pgx.ParseConfig(s.cfg.URL)
	if err != nil {
		// The error's text may hold the password.
		return core.NewError(core.CodeInvalid, "the store's URL is not that of a PostgreSQL database")
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = postgresConnect
	}
	cfg.DialFunc = (&dialer{silence: s.cfg.Silence}).DialContext
	var options []stdlib.OptionOpenDB
	if _, given := cfg.RuntimeParams["idle_in_transaction_session_timeout"]; !given {
		// Not as a parameter of the connection, which a pooler between them may refuse.
		options = append(options, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, postgresAbandoned)
			return err
		}))
	}
	db := stdlib.OpenDB(*cfg, options...)
	db.SetMaxOpenConns(s.cfg.MaxConnections)
	db.SetMaxIdleConns(s.cfg.MaxConnections)
	db.SetConnMaxIdleTime(postgresIdle)
	ctx, cancel := context.WithTimeout(ctx, postgresOpen)
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return openFault(err)
	}
	s.read, s.write = db, db
	return nil
}

// updatePostgres runs a transaction, again when it collided with another one.
func (s *Store) updatePostgres(ctx context.Context, change func(context.Context, *Tx) error) error {
	for try := 1; ; try++ {
		err := s.tryPostgres(ctx, change)
		if !isCollision(err) {
			return err
		}
		if try == postgresTries || !pause(ctx, try) {
			return core.WrapError(core.CodeUnavailable, "other transactions were in the way for too long", err)
		}
		s.cfg.Metrics.again()
	}
}

// pause waits at random, longer with each try, and reports whether ctx goes on.
func pause(ctx context.Context, try int) bool {
	timer := time.NewTimer(rand.N(postgresPause << (try - 1)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Store) tryPostgres(ctx context.Context, change func(context.Context, *Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return Fault("beginning a transaction", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit; when it fails, the connection is broken and goes
	if err := guard(ctx, &Tx{Conn: tx, postgres: true}, change); err != nil {
		return err
	}
	return Fault("committing a transaction", tx.Commit())
}

// Lock keeps other transactions that lock one of the same keys waiting until this one ends. On SQLite, where
// transactions run one after the other, it does nothing. A transaction locks once, so that two never wait for each other.
func (tx *Tx) Lock(ctx context.Context, keys ...string) error {
	if !tx.postgres || len(keys) == 0 {
		return nil
	}
	hashes := make([]int64, len(keys))
	for i, k := range keys {
		hashes[i] = lockID(k)
	}
	slices.Sort(hashes)
	for _, h := range slices.Compact(hashes) {
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", h); err != nil {
			return Fault("locking", err)
		}
	}
	return nil
}

// lockID returns the number of an advisory lock. Two keys of one number only wait for each other without need.
func lockID(key string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	return int64(h.Sum64())
}

// migrationLock lets the processes that start together on one PostgreSQL bring its tables up to date one after the other.
// It waits in the database: goose's own asks every few seconds.
type migrationLock struct{}

const migrationKey = "tutti: migrations"

// SessionLock waits for the lock.
func (migrationLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", lockID(migrationKey))
	return err
}

// SessionUnlock returns the lock back.
func (migrationLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", lockID(migrationKey))
	return err
}

var _ Conn = (*sql.DB)(nil)
