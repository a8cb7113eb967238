package store_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// execute runs a statement in a transaction.
func execute(t *testing.T, s *store.Store, query string, args ...any) {
	t.Helper()
	if err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func addKey(t *testing.T, s *store.Store, id string, expires, revoked time.Time) {
	t.Helper()
	execute(t, s, "INSERT INTO api_key (id, name, scopes, hash, created_at, expires_at, revoked_at) VALUES ($1, $1, '', $2, 1, $3, $4)",
		id, []byte("h"), store.Micros(expires), store.Micros(revoked))
}

func addStudy(t *testing.T, s *store.Store, id string) {
	t.Helper()
	execute(t, s, "INSERT INTO study (id, name, organization, description, created_at) VALUES ($1, '', '', '', 1)", id)
}

func inspect(t *testing.T, cfg store.Config) store.Report {
	t.Helper()
	r, err := store.Inspect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// filesOf returns the hashes of the files in a directory.
func filesOf(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][32]byte{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = sha256.Sum256(data)
	}
	return files
}

// copyFiles copies files of a directory into a new one.
func copyFiles(t *testing.T, from string, names ...string) (to string) {
	t.Helper()
	to = t.TempDir()
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestInspect(t *testing.T) {
	storetest.Configs(t, func(t *testing.T, cfg store.Config) {
		r := inspect(t, cfg)
		if r.Version != 0 || r.Newest < 1 || r.Exists || r.Studies != 0 || r.Keys != 0 {
			t.Errorf("of an empty database: %+v", r)
		}
		s := storetest.OpenConfig(t, cfg)
		addStudy(t, s, "S1")
		addStudy(t, s, "S2")
		hour := time.Now().Add(time.Hour)
		addKey(t, s, "for ever", time.Time{}, time.Time{})
		addKey(t, s, "valid", hour, time.Time{})
		addKey(t, s, "expired", time.Now().Add(-time.Hour), time.Time{})
		addKey(t, s, "revoked", hour, time.Now())
		r = inspect(t, cfg)
		if r.Version != r.Newest || r.Studies != 2 || r.Keys != 2 || r.Unreadable {
			t.Errorf("of a store in use: %+v", r)
		}
		if want := map[bool]string{true: "PostgreSQL 1", false: "SQLite 3."}[cfg.URL != ""]; !strings.HasPrefix(r.Engine, want) {
			t.Errorf("engine %q, want %s…", r.Engine, want)
		}
		addStudy(t, s, "S3") // the store still works
		execute(t, s, "INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, $2)", 999, true)
		if r := inspect(t, cfg); r.Version != 999 {
			t.Errorf("of a newer store: %+v", r)
		}
	})
}

func TestInspectChangesNoFile(t *testing.T) {
	t.Run("that is not there", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "deep")
		r := inspect(t, store.Config{Dir: dir})
		if r.Exists || r.File != filepath.Join(dir, "tutti.db") {
			t.Errorf("report %+v", r)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("the folder was made: %v", err)
		}
	})
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	addStudy(t, s, "S1")
	unchanged := func(t *testing.T, dir string, want store.Report) {
		t.Helper()
		before := filesOf(t, dir)
		got := inspect(t, store.Config{Dir: dir})
		if diff := cmp.Diff(before, filesOf(t, dir)); diff != "" {
			t.Errorf("files were changed: %s", diff)
		}
		want.File, want.Exists, want.Newest, got.Engine = filepath.Join(dir, "tutti.db"), true, got.Newest, ""
		if !want.Unreadable {
			want.Version = got.Newest
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	t.Run("in use", func(t *testing.T) {
		r := inspect(t, store.Config{Dir: dir})
		if !r.Exists || r.Studies != 1 {
			t.Errorf("report %+v", r)
		}
	})
	crashed := copyFiles(t, dir, "tutti.db", "tutti.db-wal", "tutti.db-shm")
	t.Run("that a crash left", func(t *testing.T) {
		if r := inspect(t, store.Config{Dir: crashed}); r.Studies != 1 || r.Unreadable {
			t.Errorf("report %+v", r)
		}
		again, err := store.Open(t.Context(), store.Config{Dir: crashed})
		if err != nil {
			t.Fatal(err)
		}
		addStudy(t, again, "S2")
		if err := again.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("whose log has no index", func(t *testing.T) {
		unchanged(t, copyFiles(t, dir, "tutti.db", "tutti.db-wal"), store.Report{Unreadable: true})
	})
	closed := copyFiles(t, dir, "tutti.db", "tutti.db-wal", "tutti.db-shm")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("that was closed", func(t *testing.T) {
		emptyLog(t, closed)
		unchanged(t, closed, store.Report{Studies: 1})
	})
}

// emptyLog opens and closes the database in a directory, after which it has no log.
func emptyLog(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "tutti.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "tutti.db-wal")); !os.IsNotExist(err) {
		t.Errorf("the log is still there: %v", err)
	}
}

func TestInspectDoesNotWaitForAWriter(t *testing.T) {
	dir := t.TempDir()
	s := storetest.OpenConfig(t, store.Config{Dir: dir})
	inside, end := make(chan struct{}), make(chan struct{})
	written := make(chan error)
	go func() {
		written <- s.Update(context.WithoutCancel(t.Context()), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO study (id, name, organization, description, created_at) VALUES ('S', '', '', '', 1)")
			close(inside)
			<-end
			return err
		})
	}()
	<-inside
	if r := inspect(t, store.Config{Dir: dir}); r.Studies != 0 {
		t.Errorf("report %+v of what is not committed", r)
	}
	close(end)
	if err := <-written; err != nil {
		t.Error(err)
	}
}

func TestInspectErrors(t *testing.T) {
	garbage := t.TempDir()
	if err := os.WriteFile(filepath.Join(garbage, "tutti.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "tutti.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		cfg     store.Config
		code    core.Code
		message string
	}{
		"nothing":  {store.Config{}, core.CodeInvalid, "the store needs a directory or the URL of a PostgreSQL database"},
		"garbage":  {store.Config{Dir: garbage}, core.CodeInvalid, "the store's file is damaged or not a SQLite database"},
		"a folder": {store.Config{Dir: folder}, core.CodeInvalid, "the path of the store's file is a directory"},
		"no URL of PostgreSQL": {
			store.Config{URL: "postgres://u:s3cret@host:port/db"}, core.CodeInvalid, "store.url is not the URL of a PostgreSQL database",
		},
		"unreachable": {store.Config{URL: "postgres://u:s3cret@127.0.0.1:1/db"}, core.CodeUnavailable, "the database does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.Inspect(t.Context(), tt.cfg)
			if core.CodeOf(err) != tt.code || core.MessageOf(err) != tt.message {
				t.Errorf("got %s %v", core.CodeOf(err), err)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("a password is shown: %v", err)
			}
		})
	}
}
