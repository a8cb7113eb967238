package check_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/queue/embedded"
	"tutti/internal/store"
	"tutti/internal/tools/testkit"
)

// builtInConfig returns the configuration of the built-in repository in a data folder.
func builtInConfig(t *testing.T, dir, more string) config.Config {
	t.Helper()
	return parse(t, fmt.Sprintf("dataDir: %q\n%s", dir, more))
}

// openStore opens the store of a data folder; the function closes it.
func openStore(t *testing.T, dir string) (s *store.Store, end func()) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

func execute(t *testing.T, s *store.Store, statement string) {
	t.Helper()
	if err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ExecContext(ctx, statement)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

const (
	aStudy = "INSERT INTO study (id, name, organization, description, created_at) VALUES ('S', '', '', '', 1)"
	aKey   = "INSERT INTO api_key (id, name, scopes, hash, created_at, expires_at, revoked_at) VALUES ('k', 'k', '', x'00', 1, 0, 0)"
	newer  = "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)"
)

func TestBuiltInRepository(t *testing.T) {
	dir := t.TempDir()
	cfg := builtInConfig(t, dir, "")
	file := filepath.Join(dir, "store", "tutti.db")
	want := func(t *testing.T, storeLine, repositoryLine string) {
		t.Helper()
		report := check.Run(t.Context(), cfg, check.Options{})
		wantLines(t, of(report, "store"), storeLine)
		wantLines(t, of(report, "repository local"), repositoryLine)
	}
	t.Run("before the first start", func(t *testing.T) {
		want(t, "ok: embedded; "+dir+"/store will be created, with * free", "ok: built in, no studies yet")
		if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
			t.Errorf("the folder was made: %v", err)
		}
	})
	s, end := openStore(t, dir)
	execute(t, s, aStudy)
	t.Run("while it runs", func(t *testing.T) {
		want(t, "ok: embedded; "+dir+"/store can be written, with * free; its tables are up to date", "ok: built in, with 1 study")
	})
	t.Run("while a tutti holds its folder", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("the holder of a lock is only known on Linux")
		}
		lock, err := embedded.LockDir(filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Unlock()
		want(t, fmt.Sprintf("ok: embedded; %s/store is in use by a running tutti (process %d); its tables are up to date", dir, os.Getpid()),
			"ok: built in, with 1 study")
	})
	left := t.TempDir()
	if err := os.Mkdir(filepath.Join(left, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tutti.db", "tutti.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, "store", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(left, "store", name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("a copy of a running one", func(t *testing.T) {
		report := check.Run(t.Context(), builtInConfig(t, left, ""), check.Options{})
		wantLines(t, of(report, "store"), "ok: embedded; *; its database was not closed and is recovered at the next start")
		wantLines(t, of(report, "repository local"), "ok: built in")
	})
	execute(t, s, newer)
	end()
	t.Run("a newer one", func(t *testing.T) {
		want(t, "fail: the store was written by a newer tutti: its tables have version 999, this tutti supports * -> start the newer version, or restore an older backup of the store",
			"ok: built in")
	})
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Remove(file + beside); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("a damaged one", func(t *testing.T) {
		want(t, "fail: embedded; the store's file is damaged or not a SQLite database -> restore it from a backup, or move it away to start with an empty store",
			"ok: built in")
	})
}

func TestFolderOfTheStore(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "store"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	report := check.Run(t.Context(), builtInConfig(t, dir, ""), check.Options{})
	wantLines(t, of(report, "store"), "fail: "+dir+"/store is not a folder -> remove it, or choose another dataDir")
	if report.OK {
		t.Error("the report is fine")
	}
}

func TestPostgresThatCannotBeReached(t *testing.T) {
	cfg := builtInConfig(t, t.TempDir(), fmt.Sprintf("store: {url: %q}", "postgres://u:s3cret@"+testkit.NewAddress(t)+"/db"))
	report := check.Run(t.Context(), cfg, check.Options{})
	wantLines(t, of(report, "store"), "fail: 127.0.0.1:* does not answer: nothing listens there -> check host and port, and that the service runs")
	wantLines(t, of(report, "repository local"), "ok: built in")
}

// refusingPostgres returns the URL of a server that speaks no TLS and refuses each connection with a code of PostgreSQL.
func refusingPostgres(t *testing.T, code, message string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	refuse := func(conn net.Conn) {
		defer conn.Close()
		server := pgproto3.NewBackend(conn, conn)
		for {
			switch first, err := server.ReceiveStartupMessage(); first.(type) {
			case *pgproto3.SSLRequest:
				_, _ = conn.Write([]byte("N"))
			case *pgproto3.StartupMessage:
				server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: message})
				_ = server.Flush()
				return
			default:
				if err != nil {
					return
				}
			}
		}
	}
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { refuse(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return "postgres://u:s3cret@" + l.Addr().String() + "/db"
}

// TestPostgresThatRefuses: what PostgreSQL says when it refuses a connection leads to the setting to change.
func TestPostgresThatRefuses(t *testing.T) {
	pki, err := testkit.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pki.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ code, message, query, more, want string }{
		"password": {"28P01", "password authentication failed", "?sslmode=disable", "", "the database rejected the user or the password -> check user and password in store.url, and pg_hba.conf of the server"},
		"database": {"3D000", "no database", "?sslmode=disable", "", "the server has no such database -> create it (CREATE DATABASE), or check the name at the end of store.url"},
		"connect":  {"42501", "permission denied", "?sslmode=disable", "", "the user may not connect to the database -> grant the user the privilege CONNECT on the database"},
		"full":     {"53300", "too many clients already", "?sslmode=disable", "", "the server has no free connection -> raise its max_connections, or close other connections"},
		"another":  {"XX000", "s3cret", "?sslmode=disable", "", "the database rejected the connection (SQLSTATE XX000) -> check the database server's log, and the sslmode in store.url"},
		"no TLS":   {"", "", "?sslmode=require", "", "PostgreSQL cannot be used: it does not speak TLS -> turn ssl on at the server, or remove sslmode from store.url"},
		"no TLS for a file": {
			"", "", "", fmt.Sprintf(", caFile: %q", ca),
			"PostgreSQL cannot be used: it does not speak TLS -> turn ssl on at the server, or remove store.caFile and the other settings of TLS",
		},
		"two settings": {
			"", "", "?sslmode=require", fmt.Sprintf(", caFile: %q", ca),
			"store.url has the parameter sslmode, but files or a name for TLS are set beside it -> " +
				"remove the parameter: with store.caFile, store.clientCertFile or store.serverName all connections use TLS and verify the server",
		},
		"TLS only": {
			"28000", "no pg_hba.conf entry for host, no encryption", "?sslmode=disable", "",
			"PostgreSQL rejected the connection: it takes only connections with TLS from this user, or none -> " +
				"set store.caFile to a PEM file of the authority of its certificate, or sslmode in store.url; else check its pg_hba.conf",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := builtInConfig(t, t.TempDir(), fmt.Sprintf("store: {url: %q%s}", refusingPostgres(t, tt.code, tt.message)+tt.query, tt.more))
			wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "store"), "fail: 127.0.0.1:*: "+tt.want)
		})
	}
}

// TestStoredBeforeTheRules: stored analyses that the rules of today refuse, and types that could not be registered now, are listed.
func TestStoredBeforeTheRules(t *testing.T) {
	dir := t.TempDir()
	s, end := openStore(t, dir)
	execute(t, s, aStudy)
	for i, body := range []string{
		`{"experiment":{},"files":[{"info":{}},{}]}`, `{"experiment":"x","files":[]}`, `{"experiment":{},"files":[{},{"info":"x"}]}`,
		`{"experiment":{},"files":[{"info":null}]}`, `{"files":[{"a":[]}]}`,
	} {
		execute(t, s, fmt.Sprintf("INSERT INTO analysis (id, study, state, type_name, type_version, updated_at, body) VALUES ('a%d', 'S', 'PUBLISHED', 't', 1, 1, CAST('%s' AS BLOB))", i, body))
	}
	for i, schema := range []string{
		`{"type":"object","required":["experiment"],"properties":{"experiment":{"pattern":"^\\s"}}}`,
		`{"type":"object","required":["experiment"],"properties":{"experiment":{"type":"string"}}}`,
		`{"type":"object","required":["experiment"],"properties":{"experiment":{},"a":{"pattern":"a\\z"}}}`,
	} {
		execute(t, s, fmt.Sprintf("INSERT INTO analysis_type_name (name, latest) VALUES ('t%d', 2)", i))
		for version := 1; version < 3; version++ {
			execute(t, s, fmt.Sprintf("INSERT INTO analysis_type (name, version, created_at, options, schema) VALUES ('t%d', %d, 1, '{}', '%s')", i, version, schema))
		}
	}
	end()
	report := check.Run(t.Context(), builtInConfig(t, dir, ""), check.Options{})
	wantLines(t, of(report, "repository local"),
		"ok: built in, with 1 study",
		"warn: 3 stored analyses have an experiment, or the info of a file, that is not an object, and cannot be indexed: S/a1, S/a2, S/a3 -> replace or patch them",
		`warn: version 2 of the analysis type "t1" stays as it was registered, but could not be registered now: /properties/experiment accepts no object, but experiment is an object in every analysis -> register a corrected version`,
		`warn: version 2 of the analysis type "t2" stays as it was registered, but could not be registered now: /properties/a/pattern is not a valid regular expression: it has \z, which ECMA-262 does not know; the end of a text is $ -> register a corrected version`,
		"ok: declares the types of 1 field",
	)
}
