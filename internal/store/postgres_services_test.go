//go:build services

package store_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
	"tutti/internal/tools/testkit"
)

// onServer runs a statement on its own connection.
func onServer(t *testing.T, address, query string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

// TestPostgresUnreachable: Open fails in bounded time and never shows the password.
func TestPostgresUnreachable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed := testkit.NewAddress(t)
	address := storetest.PostgresURL(t)
	with := func(change func(*url.URL)) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		return u.String()
	}
	const unanswered, refused = "opening the store: the store is not available", "opening the store: PostgreSQL rejected the connection"
	for name, tt := range map[string]struct{ url, message string }{
		"refused":  {"postgres://u:s3cret@" + closed + "/d", unanswered},
		"silence":  {"postgres://u:s3cret@" + silent.Addr().String() + "/d?connect_timeout=1&sslmode=disable", "opening the store: the store did not answer in time"},
		"password": {with(func(u *url.URL) { u.User = url.UserPassword("tutti", "s3cret") }), refused},
		"database": {with(func(u *url.URL) { u.Path = "/none" }), refused},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.Open(t.Context(), store.Config{URL: tt.url})
			code := core.CodeUnavailable
			if tt.message == refused {
				code = core.CodeForbidden
			}
			wantError(t, err, code, tt.message)
			if hint := core.HintOf(err); tt.message == refused && hint != "check the user, the password and the database in store.url" {
				t.Errorf("the hint is %q", hint)
			}
			password, _ := func() (string, bool) { u, _ := url.Parse(tt.url); return u.User.Password() }()
			if text := err.Error() + core.HintOf(err); strings.Contains(text, password) {
				t.Errorf("the password is in %q", text)
			}
		})
	}
	storetest.OpenConfig(t, store.Config{URL: address}) // with the right ones
}

func TestPostgresForeignTables(t *testing.T) {
	address := storetest.PostgresURL(t)
	onServer(t, address, "CREATE TABLE study (x int)")
	_, err := store.Open(t.Context(), store.Config{URL: address})
	wantError(t, err, core.CodeConflict, "the store's database contains another program's tables with the same names")
	if hint := core.HintOf(err); hint != "use a separate database for tutti, or a separate schema with search_path in store.url" {
		t.Errorf("the hint is %q", hint)
	}
	database, _ := storetest.PostgresDatabase(t)
	for _, other := range []string{database, storetest.PostgresURL(t)} { // which has a schema of its own
		storetest.OpenConfig(t, store.Config{URL: other})
	}
}

func TestPostgresNewerTables(t *testing.T) {
	address := storetest.PostgresURL(t)
	storetest.OpenConfig(t, store.Config{URL: address})
	onServer(t, address, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)")
	_, err := store.Open(t.Context(), store.Config{URL: address})
	wantError(t, err, core.CodeConflict, "the store was written by a newer tutti")
}

// TestPostgresCollisions: transactions that PostgreSQL rolls back because of another one are retried.
func TestPostgresCollisions(t *testing.T) {
	for name, isolation := range map[string]string{"deadlock": "", "serialization": "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"} {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			s := storetest.OpenConfig(t, store.Config{URL: storetest.PostgresURL(t), Metrics: store.NewMetrics(reg)})
			if err := s.Update(t.Context(), insert("a", "b")); err != nil {
				t.Fatal(err)
			}
			var both, wg sync.WaitGroup
			both.Add(2)
			for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
				wg.Go(func() {
					met := false
					err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
						if _, err := tx.ExecContext(ctx, isolation); err != nil {
							return err
						}
						var n int
						if err := tx.QueryRowContext(ctx, "SELECT created_at FROM study WHERE id = $1", order[1]).Scan(&n); err != nil {
							return err
						}
						if _, err := tx.ExecContext(ctx, "UPDATE study SET created_at = created_at + $2 WHERE id = $1", order[0], n); err != nil {
							return err
						}
						if !met {
							met = true
							both.Done()
							both.Wait()
						}
						if isolation != "" {
							return nil
						}
						_, err := tx.ExecContext(ctx, "UPDATE study SET created_at = created_at + 1 WHERE id = $1", order[1])
						return store.WrapError("changing a study", err)
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if n, err := testutil.GatherAndCount(reg, "tutti_store_transaction_retries_total"); err != nil || n != 1 {
				t.Fatal(n, err)
			}
			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if f.GetName() == "tutti_store_transaction_retries_total" && f.GetMetric()[0].GetCounter().GetValue() < 1 {
					t.Error("the transactions did not collide")
				}
			}
		})
	}
}

// TestPostgresCollidesEachTime: a transaction that collides each time fails after a bounded number of attempts.
func TestPostgresCollidesEachTime(t *testing.T) {
	s := storetest.OpenConfig(t, store.Config{URL: storetest.PostgresURL(t)})
	tries := 0
	err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		tries++
		_, err := tx.ExecContext(ctx, "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$")
		return err
	})
	wantError(t, err, core.CodeUnavailable, "too many conflicts with other transactions")
	if tries != 8 {
		t.Errorf("%d tries", tries)
	}
}

// TestPostgresLock: transactions that lock a common key run one at a time; others do not wait.
func TestPostgresLock(t *testing.T) {
	s := storetest.OpenConfig(t, store.Config{URL: storetest.PostgresURL(t)})
	held, release := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Lock(ctx, "x", "y", "x"); err != nil {
				return err
			}
			close(held)
			<-release
			return insert("first")(ctx, tx)
		})
	}()
	<-held
	if err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.Lock(ctx, "z") }); err != nil {
		t.Error(err)
	}
	waited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := s.Update(waited, func(ctx context.Context, tx *store.Tx) error { return tx.Lock(ctx, "z", "y") })
	wantError(t, err, core.CodeUnavailable, "locking: the store did not answer in time")
	second := make(chan error, 1)
	go func() {
		second <- s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Lock(ctx, "y", "x"); err != nil {
				return err
			}
			var n int
			if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM study").Scan(&n); err != nil || n != 1 {
				t.Errorf("the second saw %d studies of the first (%v)", n, err)
			}
			return nil
		})
	}()
	close(release)
	for _, ended := range []chan error{first, second} {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestPostgresLostConnection: a lost connection rolls its transaction back; the next transaction gets a new connection.
func TestPostgresLostConnection(t *testing.T) {
	address := storetest.PostgresURL(t)
	s := storetest.OpenConfig(t, store.Config{URL: address, MaxConnections: 1})
	err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := insert("a")(ctx, tx); err != nil {
			return err
		}
		var pid int
		if err := tx.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			return err
		}
		onServer(t, address, "SELECT pg_terminate_backend($1, 5000)", pid)
		return insert("b")(ctx, tx)
	})
	wantError(t, err, core.CodeUnavailable, "adding a study: the store is not available")
	if err := s.Update(t.Context(), insert("c")); err != nil {
		t.Error(err)
	}
	wantStudies(t, s, "c")
}

// TestPostgresConnections: there are no more connections than configured, a waiting caller can give up, and the server rolls an
// abandoned transaction back.
func TestPostgresConnections(t *testing.T) {
	s := storetest.OpenConfig(t, store.Config{URL: storetest.PostgresURL(t), MaxConnections: 1})
	err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		waited, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		wantError(t, s.Ready(waited), core.CodeUnavailable, "beginning a transaction: the store did not answer in time")
		var limit string
		if err := tx.QueryRowContext(ctx, "SHOW idle_in_transaction_session_timeout").Scan(&limit); err != nil || limit != "1min" {
			t.Errorf("an abandoned transaction is rolled back after %q (%v)", limit, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPostgresReady: Ready writes a record to the server's log, which is flushed with its commit.
func TestPostgresReady(t *testing.T) {
	s := storetest.OpenConfig(t, store.Config{URL: storetest.PostgresURL(t)})
	flushed := func() (lsn int64) {
		t.Helper()
		err := s.Read().QueryRowContext(t.Context(), "SELECT pg_current_wal_flush_lsn() - '0/0'").Scan(&lsn)
		if err != nil {
			t.Fatal(err)
		}
		return lsn
	}
	before := flushed()
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if flushed() == before {
		t.Error("nothing was written")
	}
}
