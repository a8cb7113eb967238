//go:build services

package store_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// TestPgBouncer: processes that start together migrate one after the other, and many statements and transactions share a few connections,
// without prepared statements of others, settings that others made, or a lock that stays.
func TestPgBouncer(t *testing.T) {
	pooled, direct := storetest.PgBouncer(t)
	stores := make([]*store.Store, 3)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() { stores[i] = storetest.OpenConfig(t, store.Config{URL: pooled, MaxConnections: 4}) })
	}
	wg.Wait()
	const workers, rounds = 4, 40
	for n, s := range stores {
		for w := range workers {
			wg.Go(func() {
				for i := range rounds {
					id := fmt.Sprintf("%d-%d-%d", n, w, i)
					if err := s.Update(t.Context(), insert(id)); err != nil {
						t.Errorf("inserting %s: %v", id, err)
					}
					var found string
					query := fmt.Sprintf("SELECT id FROM study WHERE id = $1 AND %d = %d", i, i) // a statement of its own
					if err := s.Read().QueryRowContext(t.Context(), query, id).Scan(&found); err != nil || found != id {
						t.Errorf("read %q, %v", found, err)
					}
					err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
						var timeout string
						if err := tx.QueryRowContext(ctx, "SELECT current_setting('idle_in_transaction_session_timeout')").Scan(&timeout); err != nil {
							return err
						}
						if timeout != "1min" {
							t.Errorf("the timeout of an abandoned transaction is %s", timeout)
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	conn, err := pgx.Connect(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var studies, locks int
	err = conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM study), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))").
		Scan(&studies, &locks)
	if err != nil || studies != len(stores)*workers*rounds || locks != 0 {
		t.Errorf("%d studies, %d locks, %v", studies, locks, err)
	}
	r, err := store.Inspect(t.Context(), store.Config{URL: pooled})
	if err != nil || !r.Postgres.Pooled || r.Version != r.Newest || r.Studies != studies {
		t.Errorf("report %+v %+v, %v", r, r.Postgres, err)
	}
	if r, err := store.Inspect(t.Context(), store.Config{URL: direct}); err != nil || r.Postgres.Pooled {
		t.Errorf("report %+v of the server itself, %v", r.Postgres, err)
	}
}

// TestPgBouncerParameters: a parameter of the URL that the pooler rejects, or ignores, is an error that names it.
func TestPgBouncerParameters(t *testing.T) {
	for name, settings := range map[string]string{"rejected": "", "ignored": "ignore_startup_parameters = search_path,statement_timeout"} {
		t.Run(name, func(t *testing.T) {
			pooled, _ := storetest.PgBouncer(t, settings)
			with := func(name, value string) store.Config {
				u, err := url.Parse(pooled)
				if err != nil {
					t.Fatal(err)
				}
				q := u.Query()
				q.Set(name, value)
				u.RawQuery = q.Encode()
				return store.Config{URL: u.String()}
			}
			for parameter, value := range map[string]string{"search_path": "other", "statement_timeout": "5000"} {
				cfg := with(parameter, value)
				_, inspected := store.Inspect(t.Context(), cfg)
				_, opened := store.Open(t.Context(), cfg)
				for _, err := range []error{inspected, opened} {
					if core.CodeOf(err) != core.CodeInvalid || !strings.HasSuffix(core.MessageOf(err), "the connection pooler does not apply the parameter "+parameter+" of store.url") ||
						!strings.Contains(core.HintOf(err), "ALTER ROLE … SET "+parameter) {
						t.Errorf("%s: got %v, hint %q", parameter, err, core.HintOf(err))
					}
				}
			}
			storetest.OpenConfig(t, with("application_name", "tutti"))
		})
	}
}
