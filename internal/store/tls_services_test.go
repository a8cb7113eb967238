//go:build services

package store_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
	"tutti/internal/tools/testkit"
)

// TestPostgresTLS: connections to a server with TLS, by the files and the name of the configuration: what is wrong is said in one sentence with
// the key to change, by Inspect and Open alike, and never with the password. A file that has become right is used without a new Store.
func TestPostgresTLS(t *testing.T) {
	pki := os.Getenv("TUTTI_TEST_POSTGRES_TLS")
	if pki == "" {
		t.Fatal("TUTTI_TEST_POSTGRES_TLS is not set: eval \"$(deploy/local/postgres/start | sed 's/^/export /')\"")
	}
	in := func(name string) string { return filepath.Join(pki, name) }
	authority, err := testkit.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := authority.Certificate(time.Now().Add(-time.Hour), time.Now().Add(time.Hour), "localhost")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	other, foreignCertificate, foreignKey := write("other.pem", authority.PEM), write("foreign.pem", certificate), write("foreign.key", key)
	own, err := os.ReadFile(in("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	plain := storetest.PostgresURL(t)
	port := plain[strings.LastIndex(plain[:strings.Index(plain, "/tutti?")], ":")+1 : strings.Index(plain, "/tutti?")]
	address := func(change func(*url.URL, url.Values)) string {
		u, err := url.Parse(plain)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Del("sslmode")
		if change != nil {
			change(u, q)
		}
		u.RawQuery = q.Encode()
		return u.String()
	}
	limited := address(func(u *url.URL, _ url.Values) { u.User = url.UserPassword("tutti_certificate", "s3cret") })
	onServer(t, plain, `DO $$ BEGIN CREATE ROLE tutti_certificate LOGIN PASSWORD 's3cret'; EXCEPTION WHEN duplicate_object THEN NULL; END $$`)
	onServer(t, plain, "GRANT tutti TO tutti_certificate") // which owns the tables that a case before has made
	ca, client := tlsconfig.Files{Key: "store", CAFile: in("ca.pem")}, tlsconfig.Files{
		Key: "store", CAFile: in("ca.pem"), ClientCertFile: in("client.pem"), ClientKeyFile: in("client.key"),
	}
	hosts := func(first string) string {
		return address(func(u *url.URL, _ url.Values) { u.Host = first + "," + u.Host })
	}
	for name, tt := range map[string]struct {
		address       string
		files         tlsconfig.Files
		message, hint string
	}{
		"authority":          {address(nil), ca, "", ""},
		"client certificate": {limited, client, "", ""},
		"another authority":  {address(nil), tlsconfig.Files{Key: "store", CAFile: other}, "its certificate is signed by an unknown authority", "set store.caFile to"},
		"system": {
			address(nil),
			tlsconfig.Files{Key: "store", ServerName: "localhost"},
			"its certificate is signed by an unknown authority", "set store.caFile to",
		},
		"by the URL": {
			address(func(_ *url.URL, q url.Values) { q.Set("sslmode", "verify-full") }),
			tlsconfig.Files{Key: "store"},
			"its certificate is signed by an unknown authority", "set store.caFile to",
		},
		"name": {
			address(nil),
			tlsconfig.Files{Key: "store", CAFile: in("ca.pem"), ServerName: "db.example"},
			"its certificate is for another host name", "set store.serverName to",
		},
		"password": {
			address(func(u *url.URL, _ url.Values) { u.User = url.UserPassword("tutti", "wr0ng") }),
			ca, "rejected", "check",
		},
		"no client certificate":      {limited, ca, "requires a client certificate", "set store.clientCertFile"},
		"another client certificate": {limited, tlsconfig.Files{Key: "store", CAFile: in("ca.pem"), ClientCertFile: foreignCertificate, ClientKeyFile: foreignKey}, "client certificate", "store.clientCertFile"},
		"no TLS": {
			address(func(u *url.URL, q url.Values) {
				u.User = url.UserPassword("tutti_certificate", "s3cret")
				q.Set("sslmode", "disable")
			}),
			tlsconfig.Files{Key: "store"},
			"", "",
		},
		"the second of two hosts":                    {hosts("127.0.0.1:1"), ca, "", ""},
		"two hosts of one certificate":               {hosts("localhost:" + port), ca, "", ""},
		"two hosts, the first with another name":     {hosts("127.0.0.2:" + port), ca, "", ""},
		"two hosts, another authority":               {hosts("localhost:" + port), tlsconfig.Files{Key: "store", CAFile: other}, "its certificate is signed by an unknown authority", "set store.caFile to"},
		"the second of two hosts, another authority": {hosts("127.0.0.1:1"), tlsconfig.Files{Key: "store", CAFile: other}, "its certificate is signed by an unknown authority", "set store.caFile to"},
		"the second of two hosts, another name":      {hosts("127.0.0.1:1"), tlsconfig.Files{Key: "store", CAFile: in("ca.pem"), ServerName: "db.example"}, "its certificate is for another host name", "set store.serverName to"},
		"the second of two hosts, no client certificate": {address(func(u *url.URL, _ url.Values) {
			u.User, u.Host = url.UserPassword("tutti_certificate", "s3cret"), "127.0.0.1:1,"+u.Host
		}), ca, "requires a client certificate", "set store.clientCertFile"},
		"two hosts, sslmode": {address(func(u *url.URL, q url.Values) {
			u.Host = "127.0.0.1:1," + u.Host
			q.Set("sslmode", "disable")
		}), ca, "store.url has the parameter sslmode", "remove the parameter"},
		"no file": {address(nil), tlsconfig.Files{Key: "store", CAFile: filepath.Join(dir, "none")}, "store.caFile: " + filepath.Join(dir, "none") + " cannot be read", ""},
		"sslmode": {plain, ca, "store.url has the parameter sslmode, but files or a name for TLS are set", "remove the parameter"},
		"sslcert": {address(func(_ *url.URL, q url.Values) { q.Set("sslcert", "c.pem") }), ca, "store.url has the parameter sslcert", "remove the parameter"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := store.Config{URL: tt.address, TLS: tt.files}
			_, inspected := store.Inspect(t.Context(), cfg)
			s, opened := store.Open(t.Context(), cfg)
			if opened == nil {
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			for _, err := range []error{inspected, opened} {
				if name == "no TLS" {
					if core.CodeOf(err) != core.CodeForbidden {
						t.Errorf("got %v", err)
					}
					continue
				}
				if (err == nil) != (tt.message == "") || !strings.Contains(core.MessageOf(err), tt.message) || !strings.Contains(core.HintOf(err), tt.hint) {
					t.Errorf("got %q, %q, want %q, %q", core.MessageOf(err), core.HintOf(err), tt.message, tt.hint)
				}
				if text := core.MessageOf(err) + core.HintOf(err); strings.Contains(text, "s3cret") || strings.Contains(text, "wr0ng") {
					t.Errorf("the password is in %q", text)
				}
			}
		})
	}
	t.Run("two hosts at once", func(t *testing.T) {
		s := storetest.OpenConfig(t, store.Config{URL: hosts("127.0.0.1:1"), TLS: client})
		var readers sync.WaitGroup
		for range 8 {
			readers.Go(func() {
				if err := s.Ready(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		readers.Wait()
	})
	t.Run("while it runs", func(t *testing.T) {
		file := write("ca.pem", own)
		s := storetest.OpenConfig(t, store.Config{URL: address(nil), TLS: tlsconfig.Files{Key: "store", CAFile: file}, MaxConnections: 1})
		if err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		terminate := func() {
			onServer(t, plain, "SELECT pg_terminate_backend(pid) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND pid <> pg_backend_pid()")
		}
		await := func(want string) {
			t.Helper()
			var err error
			for end := time.Now().Add(testkit.HangLimit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				if err = s.Ready(t.Context()); (err == nil) == (want == "") && strings.Contains(core.MessageOf(err), want) {
					return
				}
				if want != "" {
					terminate()
				}
			}
			t.Fatalf("got %v, want %q", err, want)
		}
		write("ca.pem", authority.PEM)
		await("its certificate is signed by an unknown authority")
		write("ca.pem", own)
		await("")
	})
}
