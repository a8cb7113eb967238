//go:build services

package check_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tutti/internal/app/check"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// TestRealPostgreSQL probes a PostgreSQL that tutti can use, and the problems that keep tutti from using it.
func TestRealPostgreSQL(t *testing.T) {
	address := storetest.PostgresURL(t)
	want := func(t *testing.T, address string, lines ...string) {
		t.Helper()
		cfg := builtInConfig(t, t.TempDir(), fmt.Sprintf("store: {url: %q}", address))
		wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "store"), lines...)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
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
	schema := u.Query().Get("search_path")
	user := "reader_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	sql("CREATE ROLE " + user + " LOGIN PASSWORD 's3cret'")
	defer sql("DROP OWNED BY " + user + "; DROP ROLE " + user)
	theirs := *u
	theirs.User = url.UserPassword(user, "s3cret")

	want(t, address, "ok: PostgreSQL * at "+u.Host+"; its tables will be created")
	want(t, theirs.String(), "fail: PostgreSQL * at "+u.Host+" has no schema for the tables -> create the schema *")
	sql("GRANT USAGE ON SCHEMA " + schema + " TO " + user)
	want(t, theirs.String(), "fail: PostgreSQL * at "+u.Host+" does not let this user create tables in schema test_* -> GRANT CREATE ON SCHEMA *")
	s := storetest.OpenConfig(t, store.Config{URL: address})
	want(t, address, "ok: PostgreSQL * at "+u.Host+"; its tables are up to date")
	want(t, theirs.String(), "fail: PostgreSQL * does not grant this user all privileges on tutti's tables; missing: SELECT on * -> grant the user all privileges on the tables in schema *")
	sql("ALTER ROLE " + user + " SET synchronous_commit = off")
	sql("GRANT ALL ON ALL TABLES IN SCHEMA " + schema + " TO " + user)
	want(t, theirs.String(), "ok: PostgreSQL *; its tables are up to date", "warn: "+u.Host+" does not sync commits to disk: * -> set fsync and synchronous_commit on")
	sql("ALTER ROLE " + user + " SET default_transaction_read_only = on")
	want(t, theirs.String(), "fail: "+u.Host+": PostgreSQL is read-only: * -> set store.url to the primary server*")
	want(t, theirs.String()+"&target_session_attrs=any", "fail: PostgreSQL * is read-only -> set store.url to the primary server*")
	wrong := *u
	wrong.User = url.UserPassword(user, "s3cret too")
	want(t, wrong.String(), "fail: "+u.Host+": the database rejected the user or the password -> check user and password in store.url*")
	execute(t, s, strings.Replace(newer, ", 1)", ", true)", 1))
	want(t, address, "fail: the store was written by a newer tutti: * -> start the newer version*")
}
