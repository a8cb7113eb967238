package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReadsBesideAWriter: reads do not wait for a transaction, see what was committed, and change nothing.
func TestReadsBesideAWriter(t *testing.T) {
	s := storetest.Open(t)
	if err := s.Update(t.Context(), insert("a")); err != nil {
		t.Fatal(err)
	}
	err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := insert("b")(ctx, tx); err != nil {
			return err
		}
		wantStudies(t, s, "a")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	wantStudies(t, s, "a", "b")
	_, err = s.Read().ExecContext(t.Context(), insertStudy, "c", 1)
	wantError(t, store.WrapError("writing", err), core.CodeInternal, "writing")
}

// TestSettings: the settings that make a commit durable; a test cannot cut the power.
func TestSettings(t *testing.T) {
	s := storetest.Open(t)
	err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1", "busy_timeout": "10000", "wal_autocheckpoint": "8000"} {
			var got string
			if err := tx.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %q, want %q (%v)", pragma, got, want, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFilesAreTheOwners(t *testing.T) {
	dir := t.TempDir()
	check := func(s *store.Store, id string) {
		t.Helper()
		if err := s.Update(t.Context(), insert(id)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"tutti.db", "tutti.db-wal", "tutti.db-shm"} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", name, info.Mode(), err)
			}
		}
	}
	first, err := store.Open(t.Context(), store.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	check(first, "a")
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d.IsDir() {
			return nil
		}
		return os.Chmod(path, 0o664)
	})
	if err != nil {
		t.Fatal(err)
	}
	check(storetest.OpenConfig(t, store.Config{Dir: dir}), "b") // while the first store is open
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOpenDamaged(t *testing.T) {
	garbage := func(t *testing.T, dir string) {
		write(t, filepath.Join(dir, "tutti.db"), strings.Repeat("not a database ", 1000))
	}
	damaged := func(t *testing.T, dir string) {
		s, err := store.Open(t.Context(), store.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "tutti.db")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, string(data[:100])+strings.Repeat("\xff", len(data)-100))
	}
	folder := func(t *testing.T, dir string) {
		if err := os.Mkdir(filepath.Join(dir, "tutti.db"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	newer := func(t *testing.T, dir string) {
		s := storetest.OpenConfig(t, store.Config{Dir: dir})
		statement(t, s, "INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, $2)", 99999, true)
	}
	foreign := func(t *testing.T, dir string) {
		db, err := sql.Open("sqlite", filepath.Join(dir, "tutti.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE study (x)"); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		prepare func(*testing.T, string)
		code    core.Code
		message string
		hint    string
	}{
		"garbage":  {garbage, core.CodeConflict, "opening the store: its file is damaged, or not a database", "restore a backup of the store, or move the file tutti.db away to start with an empty store"},
		"damaged":  {damaged, core.CodeConflict, "opening the store: its file is damaged, or not a database", "restore a backup of the store, or move the file tutti.db away to start with an empty store"},
		"a folder": {folder, core.CodeInvalid, "creating the store's file", ""},
		"newer":    {newer, core.CodeConflict, "the store was written by a newer tutti", "start that version, or restore an older backup of the store"},
		"foreign":  {foreign, core.CodeInternal, "migrating the store's tables", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tt.prepare(t, dir)
			_, err := store.Open(t.Context(), store.Config{Dir: dir})
			wantError(t, err, tt.code, tt.message)
			if hint := core.HintOf(err); hint != tt.hint {
				t.Errorf("hint %q, want %q", hint, tt.hint)
			}
		})
	}
}

// TestOpenTogether: several stores, like those of several processes, open one new database at once and write to it concurrently.
func TestOpenTogether(t *testing.T) {
	storetest.Configs(t, func(t *testing.T, cfg store.Config) {
		const opened, each = 4, 20
		var wg sync.WaitGroup
		for i := range opened {
			wg.Go(func() {
				s, err := store.Open(t.Context(), cfg)
				if err != nil {
					t.Error(err)
					return
				}
				for n := range each {
					if err := s.Update(t.Context(), insert(fmt.Sprintf("%d-%02d", i, n))); err != nil {
						t.Error(err)
					}
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := studies(t, storetest.OpenConfig(t, cfg)); len(got) != opened*each {
			t.Errorf("%d studies, want %d", len(got), opened*each)
		}
	})
}

func TestOpenIsSilent(t *testing.T) {
	storetest.Configs(t, func(t *testing.T, cfg store.Config) {
		file, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		out, errors := os.Stdout, os.Stderr
		os.Stdout, os.Stderr = file, file
		s, err := store.Open(t.Context(), cfg)
		os.Stdout, os.Stderr = out, errors
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if said, err := os.ReadFile(file.Name()); err != nil || len(said) > 0 {
			t.Errorf("Open wrote %q (%v)", said, err)
		}
	})
}

// TestCloseEmptiesTheLog: after Close the directory contains only the database file, so that a copy of it is complete.
func TestCloseEmptiesTheLog(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO study (id, name, organization, description, created_at) VALUES ($1,'','','',0)", "a")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := s.Read().QueryRowContext(t.Context(), "SELECT count(*) FROM study WHERE id = $1", "a").Scan(&n); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "tutti.db-wal")); err == nil {
		t.Errorf("a closed store leaves a log of %d bytes", info.Size())
	}
}
