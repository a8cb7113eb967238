package store

import (
	"context"
	"database/sql"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/store/connection"
)

const (
	// postgresTries bounds the attempts of a transaction that PostgreSQL rolled back because of another one.
	postgresTries = 8
	// postgresIdleTimeout is the default of Config.IdleTimeout.
	postgresIdleTimeout = 30 * time.Second
	// firstBackoff is the longest delay before the first retry of a transaction; it doubles with each retry, up to lastBackoff.
	firstBackoff, lastBackoff = 4 * time.Millisecond, 256 * time.Millisecond
	// postgresMaxIdleTime is how long an unused connection is kept.
	postgresMaxIdleTime = 5 * time.Minute
	// postgresOpen bounds how long Open waits for the first answer, postgresConnect each attempt to connect.
	postgresOpen    = 20 * time.Second
	postgresConnect = 10 * time.Second
	// abandonedTimeout, as a setting, has PostgreSQL roll back a transaction whose process no longer sends anything, so that locks do not
	// stay held when a machine loses its network.
	abandonedTimeout = "idle_in_transaction_session_timeout = '60s'"
)

func (s *Store) openPostgres(ctx context.Context) error {
	to, err := s.cfg.target()
	if err != nil {
		return err
	}
	if to.ConnectTimeout == 0 {
		to.ConnectTimeout = postgresConnect
	}
	to.DialFunc = (&connection.Dialer{IdleTimeout: s.cfg.IdleTimeout}).DialContext
	ctx, cancel := context.WithTimeout(ctx, postgresOpen)
	defer cancel()
	pooled, err := connection.ProbePooler(ctx, to)
	if err != nil {
		return openError(err)
	}
	s.direct = to
	options := []stdlib.OptionOpenDB{stdlib.OptionShouldPing(s.lost.Ping(to.ConnectTimeout))}
	_, given := to.RuntimeParams["idle_in_transaction_session_timeout"]
	switch {
	case pooled:
		s.cfg.Logger.Info("the store is behind a connection pooler: statements are not prepared, and settings are made in each transaction")
		connection.UseUnnamedStatements(to.ConnConfig)
		s.begin = "SET LOCAL " + abandonedTimeout
	case !given:
		options = append(options, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SET "+abandonedTimeout)
			return err
		}))
	}
	db := sql.OpenDB(to.Connector(options...))
	db.SetMaxOpenConns(s.cfg.MaxConnections)
	db.SetMaxIdleConns(s.cfg.MaxConnections)
	db.SetConnMaxIdleTime(postgresMaxIdleTime)
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return openError(err)
	}
	s.read, s.write = db, db
	return nil
}

// updatePostgres runs a transaction. It retries it when it collided with another one, and once when the connection was lost before
// the commit.
func (s *Store) updatePostgres(ctx context.Context, change func(context.Context, *Tx) error) error {
	for try := 1; ; try++ {
		var committed error
		err := s.lost.Retry(ctx, 0, func() error {
			tx, err := s.tryPostgres(ctx, change)
			if err == nil {
				committed = WrapError("committing a transaction", tx.Commit())
			}
			return err
		})
		if err == nil {
			err = committed
		}
		if !isCollision(err) {
			return err
		}
		if try == postgresTries || backoff(ctx, try) != nil {
			return core.WrapError(core.CodeUnavailable, "too many conflicts with other transactions", err)
		}
		s.cfg.Metrics.retried()
	}
}

// backoff waits before the retry after try attempts.
func backoff(ctx context.Context, try int) error {
	return retry.Sleep(ctx, retry.Delay(try-1, firstBackoff, lastBackoff))
}

// tryPostgres begins a transaction and runs change in it. After an error it is rolled back, else the caller must commit it.
func (s *Store) tryPostgres(ctx context.Context, change func(context.Context, *Tx) error) (*sql.Tx, error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, WrapError("beginning a transaction", err)
	}
	if s.begin != "" {
		if _, err := tx.ExecContext(ctx, s.begin); err != nil {
			_ = tx.Rollback()
			return nil, WrapError("beginning a transaction", err)
		}
	}
	if err := runChange(ctx, &Tx{Conn: tx, postgres: true}, change); err != nil {
		_ = tx.Rollback() // a failure closes the broken connection
		return nil, err
	}
	return tx, nil
}

// Lock blocks other transactions that lock one of the same keys until this one ends. On SQLite, where transactions run one after
// the other, it has no effect. A transaction must lock only once, so that two never wait for each other.
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
			return WrapError("locking", err)
		}
	}
	return nil
}

// lockID returns the advisory lock number of a key. Two keys with the same number only wait for each other needlessly.
func lockID(key string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	return int64(h.Sum64())
}

const migrationKey = "tutti: migrations"

// lockMigrations blocks until no other process migrates the tables, and returns the function that ends the lock. The lock is that of a
// transaction on a connection of its own: behind a connection pooler the lock of a session would stay with a connection of the pooler.
func (s *Store) lockMigrations(ctx context.Context) (unlock func(), err error) {
	const doing = "waiting for the migrations of another process"
	conn, err := s.direct.Connect(ctx)
	if err != nil {
		return nil, openError(err)
	}
	unlock = func() { _ = conn.Close(context.WithoutCancel(ctx)) } // rolls back
	tx, err := conn.Begin(ctx)
	for _, statement := range []string{"SET LOCAL idle_in_transaction_session_timeout = 0", "SELECT pg_advisory_xact_lock($1)"} {
		if err == nil {
			args := []any{lockID(migrationKey)}[:strings.Count(statement, "$1")]
			_, err = tx.Exec(ctx, statement, args...)
		}
	}
	if err != nil {
		unlock()
		return nil, WrapError(doing, err)
	}
	return unlock, nil
}

var _ Conn = (*sql.DB)(nil)
