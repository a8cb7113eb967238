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
	want(t, theirs.String(), "fail: PostgreSQL * at "+u.Host+" has no schema for the tables -> create the schema that the user's search_path names, or set another search_path")
	sql("GRANT USAGE ON SCHEMA " + schema + " TO " + user)
	want(t, theirs.String(), "fail: PostgreSQL * at "+u.Host+" does not let this user create tables in schema test_* -> GRANT CREATE ON SCHEMA test_* to the user, or make it the owner of the database")
	s := storetest.OpenConfig(t, store.Config{URL: address})
	want(t, address, "ok: PostgreSQL * at "+u.Host+"; its tables are up to date")
	want(t, theirs.String(), "fail: PostgreSQL * does not grant this user all privileges on tutti's tables; missing: SELECT on * -> grant the user all privileges on the tables in schema *")
	sql("ALTER ROLE " + user + " SET synchronous_commit = off")
	sql("GRANT ALL ON ALL TABLES IN SCHEMA " + schema + " TO " + user)
	want(t, theirs.String(), "ok: PostgreSQL *; its tables are up to date", "warn: "+u.Host+" does not sync commits to disk: * -> set fsync and synchronous_commit on")
	sql("ALTER ROLE " + user + " SET default_transaction_read_only = on")
	want(t, theirs.String(), "fail: "+u.Host+": PostgreSQL is read-only: * -> set store.url to the primary server, or to all servers separated by commas")
	want(t, theirs.String()+"&target_session_attrs=any", "fail: PostgreSQL * is read-only -> set store.url to the primary server, and check that default_transaction_read_only is off")
	sql("ALTER ROLE " + user + " SET default_transaction_read_only = off")
	want(t, theirs.String(), "ok: PostgreSQL *; its tables are up to date", "warn: *")
	other := "other_" + user
	sql("CREATE DATABASE " + other + " ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'C'")
	defer sql("DROP DATABASE " + other + " WITH (FORCE)")
	ascii := *u
	values := u.Query()
	values.Set("search_path", "public")
	ascii.Path, ascii.RawQuery = "/"+other, values.Encode()
	want(t, ascii.String(), "ok: PostgreSQL * at *; its tables will be created", "warn: the database at * is encoded in SQL_ASCII, and rejects characters that this encoding lacks -> create the database with ENCODING 'UTF8'")
	wrong := *u
	wrong.User = url.UserPassword(user, "s3cret too")
	want(t, wrong.String(), "fail: "+u.Host+": the database rejected the user or the password -> check user and password in store.url, and pg_hba.conf of the server")
	execute(t, s, strings.Replace(newer, ", 1)", ", true)", 1))
	want(t, address, "fail: the store was written by a newer tutti: * -> start the newer version*")
}

// TestRealPgBouncer probes a PostgreSQL behind a connection pooler, with settings that tutti can use, and those that keep tutti from using it.
func TestRealPgBouncer(t *testing.T) {
	const ok = "ok: PostgreSQL * at *, behind a connection pooler, whose database must name only the primary server as its host; its tables will be created"
	const parameter = "fail: *: the connection pooler does not apply the parameter search_path of store.url -> remove it from store.url, and set it for the user: ALTER ROLE … SET search_path = …"
	for name, tt := range map[string]struct{ settings, parameters, want string }{
		"transaction mode":   {"", "", ok},
		"session mode":       {"pool_mode = session", "", ok},
		"statement mode":     {"pool_mode = statement", "", "fail: *: the connection pooler is in statement mode, which refuses transactions -> set its pool_mode to transaction or session"},
		"one connection":     {"default_pool_size = 1", "", "fail: *: the connection pooler gave no second connection to the server within 5s -> set its default_pool_size to 2 or more"},
		"parameter":          {"", "search_path=other", parameter},
		"parameter ignored":  {"ignore_startup_parameters = search_path", "search_path=other", parameter},
		"name of the client": {"", "application_name=tutti", ok},
		"unknown user":       {"auth_type = plain\nauth_file = /dev/null", "", "fail: *: the connection pooler rejected the connection -> check user and password in store.url, and the users of the pooler"},
	} {
		t.Run(name, func(t *testing.T) {
			pooled, _ := storetest.PgBouncer(t, tt.settings)
			cfg := builtInConfig(t, t.TempDir(), fmt.Sprintf("store: {url: %q}", pooled+"&"+tt.parameters))
			wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "store"), tt.want)
		})
	}
}
