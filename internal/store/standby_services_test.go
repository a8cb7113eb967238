//go:build services

package store_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// TestPostgresStandby: of several hosts the one that takes changes is used, whatever their order, and of a standby alone Open and Inspect say what
// to set.
func TestPostgresStandby(t *testing.T) {
	standby := os.Getenv("TUTTI_TEST_POSTGRES_STANDBY")
	if standby == "" {
		t.Fatal("TUTTI_TEST_POSTGRES_STANDBY is not set: eval \"$(deploy/local/postgres/start --standby | sed 's/^/export /')\"")
	}
	primary := storetest.PostgresURL(t)
	u, err := url.Parse(primary)
	if err != nil {
		t.Fatal(err)
	}
	at := func(hosts string) store.Config {
		other := *u
		other.Host = hosts
		return store.Config{URL: other.String()}
	}
	for _, hosts := range []string{standby + "," + u.Host, u.Host + "," + standby} {
		s := storetest.OpenConfig(t, at(hosts))
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("%s takes no changes: %v", hosts, err)
		}
		r, err := store.Inspect(t.Context(), at(hosts))
		if err != nil || r.Postgres.ReadOnly {
			t.Errorf("%s: %+v, %v", hosts, r.Postgres, err)
		}
	}
	password, _ := u.User.Password()
	alone := at(standby)
	_, inspected := store.Inspect(t.Context(), alone)
	_, opened := store.Open(t.Context(), alone)
	for _, err := range []error{inspected, opened} {
		if core.CodeOf(err) != core.CodeUnavailable || !strings.Contains(core.MessageOf(err), "PostgreSQL is read-only: it is a standby") ||
			!strings.Contains(core.HintOf(err), "set store.url to the primary server") || strings.Contains(err.Error(), password) {
			t.Errorf("a standby: %v, hint %q", err, core.HintOf(err))
		}
	}
	alone.URL += "&target_session_attrs=any"
	if r, err := store.Inspect(t.Context(), alone); err != nil || !r.Postgres.ReadOnly {
		t.Errorf("as the URL wants any server: %+v, %v", r.Postgres, err)
	}
}
