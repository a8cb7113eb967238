package storetest

import (
	"context"
	"testing"

	"tutti/internal/store"
	"tutti/internal/tools/testkit"
)

// closing bounds how long a test's cleanup waits for the store's last transactions.
const closing = testkit.HangLimit

// database is a database to run a suite on: config returns the Config of a new, empty one, which is removed with the test.
type database struct {
	name   string
	config func(t testing.TB) store.Config
}

// databases returns SQLite and, with the tag services, PostgreSQL.
func databases() []database {
	return append([]database{{name: "sqlite", config: sqlite}}, services()...)
}

func sqlite(t testing.TB) store.Config { return store.Config{Dir: t.TempDir()} }

// Open opens a new SQLite store, which is closed and removed when the test ends.
func Open(t testing.TB) *store.Store {
	t.Helper()
	return OpenConfig(t, sqlite(t))
}

// OpenConfig opens the store of cfg, which is closed when the test ends.
func OpenConfig(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("opening the store: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), closing)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	return s
}

// Databases runs suite on a new store of each database, as the sub-tests "sqlite" and, with the tag services, "postgres". The
// store is closed and removed with its sub-test; sub-tests may run in parallel.
func Databases(t *testing.T, suite func(t *testing.T, s *store.Store)) {
	t.Helper()
	Configs(t, func(t *testing.T, cfg store.Config) { suite(t, OpenConfig(t, cfg)) })
}

// Configs is like Databases for a suite that opens the store itself, also several times.
func Configs(t *testing.T, suite func(t *testing.T, cfg store.Config)) {
	t.Helper()
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) { suite(t, d.config(t)) })
	}
}
