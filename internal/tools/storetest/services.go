//go:build services

package storetest

import (
	"context"
	"net/url"
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tutti/internal/store"
)

func services() []database {
	return []database{{name: "postgres", config: func(t testing.TB) store.Config {
		return store.Config{URL: PostgresURL(t)}
	}}}
}

// PostgresURL returns the URL of a new, empty schema on the server that TUTTI_TEST_POSTGRES_URL names, which
// deploy/local/postgres/start prints. The schema is removed when the test ends.
func PostgresURL(t testing.TB) string {
	t.Helper()
	server := os.Getenv("TUTTI_TEST_POSTGRES_URL")
	if server == "" {
		t.Fatal("TUTTI_TEST_POSTGRES_URL is not set: eval \"$(deploy/local/postgres/start | sed 's/^/export /')\"")
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("TUTTI_TEST_POSTGRES_URL is not a URL")
	}
	name := "test_" + uuid.NewString()
	schema := pgx.Identifier{name}.Sanitize()
	execute(t, server, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { execute(t, server, "DROP SCHEMA "+schema+" CASCADE") })
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// PostgresDatabase returns the URL of a new, empty database on the server of PostgresURL, and a function that drops it and creates it again. It
// is removed when the test ends.
func PostgresDatabase(t testing.TB) (address string, empty func()) {
	t.Helper()
	u, err := url.Parse(os.Getenv("TUTTI_TEST_POSTGRES_URL"))
	if err != nil || u.Host == "" {
		t.Fatal("TUTTI_TEST_POSTGRES_URL is not set: eval \"$(deploy/local/postgres/start | sed 's/^/export /')\"")
	}
	server, name := u.String(), "test_"+uuid.NewString()
	quoted := pgx.Identifier{name}.Sanitize()
	create := func() { execute(t, server, "CREATE DATABASE "+quoted) }
	drop := func() { execute(t, server, "DROP DATABASE "+quoted+" WITH (FORCE)") }
	create()
	t.Cleanup(drop)
	u.Path = "/" + name
	return u.String(), func() { drop(); create() }
}

// PostgresRelay returns a Relay to the server of PostgresURL, and the URL of a new schema through it.
func PostgresRelay(t testing.TB) (relay *Relay, address string) {
	t.Helper()
	u, err := url.Parse(PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	relay = NewRelay(t, u.Host)
	u.Host = relay.Addr()
	return relay, u.String()
}

// execute runs one statement on its own connection.
func execute(t testing.TB, server, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), closing)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatalf("connecting to PostgreSQL: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("running %s: %v", statement, err)
	}
}
