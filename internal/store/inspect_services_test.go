//go:build services

package store_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// changed returns address with another user, password and database; "" keeps the value.
func changed(t *testing.T, address, user, password, database string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	if database != "" {
		u.Path = "/" + database
	}
	return u.String()
}

func TestInspectPostgres(t *testing.T) {
	address := storetest.PostgresURL(t)
	r := inspect(t, store.Config{URL: address})
	if p := r.Postgres; !p.CanCreate || p.ReadOnly || p.Encoding != "UTF8" || !p.Durable || !strings.HasPrefix(p.Schema, "test_") {
		t.Errorf("of an empty schema: %+v %+v", r, p)
	}
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	sql := func(statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	reader := "reader_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	schema := pgx.Identifier{r.Postgres.Schema}.Sanitize()
	sql("CREATE ROLE " + reader + " LOGIN PASSWORD 'p'")
	defer sql("DROP OWNED BY " + reader + "; DROP ROLE " + reader)
	theirs := changed(t, address, reader, "p", "")
	t.Run("a schema that may not be used", func(t *testing.T) {
		if r := inspect(t, store.Config{URL: theirs}); r.Postgres.Schema != "" || r.Postgres.CanCreate {
			t.Errorf("report %+v %+v", r, r.Postgres)
		}
	})
	sql("GRANT USAGE ON SCHEMA " + schema + " TO " + reader)
	t.Run("no right to make tables", func(t *testing.T) {
		if r := inspect(t, store.Config{URL: theirs}); r.Postgres.CanCreate || r.Version != 0 || len(r.Postgres.Missing) > 0 {
			t.Errorf("report %+v %+v", r, r.Postgres)
		}
	})
	storetest.OpenConfig(t, store.Config{URL: address})
	sql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + schema + " TO " + reader)
	t.Run("all rights on the tables", func(t *testing.T) {
		if r := inspect(t, store.Config{URL: theirs}); len(r.Postgres.Missing) > 0 || r.Version != r.Newest {
			t.Errorf("report %+v %+v", r, r.Postgres)
		}
	})
	sql("REVOKE INSERT ON study FROM " + reader)
	sql("REVOKE SELECT ON goose_db_version FROM " + reader)
	t.Run("rights are missing", func(t *testing.T) {
		r := inspect(t, store.Config{URL: theirs})
		if !slices.Equal(r.Postgres.Missing, []string{"INSERT on study", "SELECT on goose_db_version"}) {
			t.Errorf("report %+v %+v", r, r.Postgres)
		}
	})
	sql("ALTER ROLE " + reader + " SET default_transaction_read_only = on")
	sql("ALTER ROLE " + reader + " SET synchronous_commit = off")
	t.Run("takes no changes", func(t *testing.T) {
		if r := inspect(t, store.Config{URL: theirs + "&target_session_attrs=any"}); !r.Postgres.ReadOnly || r.Postgres.Durable {
			t.Errorf("report %+v %+v", r, r.Postgres)
		}
		if _, err := store.Inspect(t.Context(), store.Config{URL: theirs}); core.CodeOf(err) != core.CodeUnavailable || !strings.Contains(core.MessageOf(err), "is read-only") {
			t.Errorf("got %v", err)
		}
	})
	for name, tt := range map[string]struct {
		address string
		code    core.Code
		message string
	}{
		"a wrong password": {changed(t, address, reader, "s3cret", ""), core.CodeForbidden, "the database rejected the user or the password"},
		"no such user":     {changed(t, address, "nobody", "s3cret", ""), core.CodeForbidden, "the database rejected the user or the password"},
		"no such database": {changed(t, address, "", "", "nothing"), core.CodeNotFound, "the server has no such database"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.Inspect(t.Context(), store.Config{URL: tt.address})
			if core.CodeOf(err) != tt.code || core.MessageOf(err) != tt.message || core.HintOf(err) == "" {
				t.Errorf("got %s %v", core.CodeOf(err), err)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("a password is shown: %v", err)
			}
		})
	}
}
