//go:build services

package store_test

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// TestPostgresRights runs the statements of the guide, and everything that a store does as the user whom they make.
func TestPostgresRights(t *testing.T) {
	guide, err := os.ReadFile("../../deploy/docs/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sql\n(.*?)```").FindSubmatch(guide)
	if block == nil {
		t.Fatal("the guide has no statements")
	}
	name := "tutti_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	server, err := url.Parse(storetest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	server.RawQuery = "sslmode=" + server.Query().Get("sslmode")
	within := *server
	within.Path = "/" + name
	conn, err := pgx.Connect(t.Context(), server.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, statement := range []string{"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", "DROP ROLE IF EXISTS " + name} {
			onServer(t, server.String(), statement)
		}
	}()
	for statement := range strings.Lines(strings.ReplaceAll(string(block[1]), "tutti", name)) {
		if strings.HasPrefix(statement, `\connect`) {
			conn.Close(t.Context())
			if conn, err = pgx.Connect(t.Context(), within.String()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	conn.Close(t.Context())
	within.User = url.UserPassword(name, "a secret")
	cfg := store.Config{URL: within.String()}
	if r, err := store.Inspect(t.Context(), cfg); err != nil || !r.Postgres.CanCreate || len(r.Postgres.Missing) > 0 {
		t.Errorf("report %+v %+v, %v", r, r.Postgres, err)
	}
	s := storetest.OpenConfig(t, cfg)
	if err := s.Update(t.Context(), insert("a")); err != nil {
		t.Error(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Secret(t.Context(), "cursors"); err != nil {
		t.Error(err)
	}
}
