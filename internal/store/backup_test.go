package store_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"tutti/internal/store"
)

// TestBackup: the copy has every transaction that was committed before, is complete by itself, and nothing of it stays in the folder.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	// What a killed process left.
	if err := os.WriteFile(filepath.Join(dir, "tutti.db.backup"), []byte("a part"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.WithoutCancel(t.Context())) }()
	add := func(ctx context.Context, id string) error {
		return s.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO study (id, name, organization, description, created_at) VALUES ($1, '', '', '', 1)", id)
			return err
		})
	}
	for i := range 50 {
		if err := add(t.Context(), fmt.Sprintf("before-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	writing, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		for i := 0; writing.Err() == nil; i++ {
			if err := add(context.WithoutCancel(writing), fmt.Sprintf("during-%d", i)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	to := t.TempDir()
	err = s.Backup(t.Context(), func(name string, size int64, write func(io.Writer) error) error {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			return err
		}
		if int64(out.Len()) != size {
			t.Errorf("%d bytes, %d were announced", out.Len(), size)
		}
		return os.WriteFile(filepath.Join(to, name), out.Bytes(), 0o600)
	})
	stop()
	work.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "tutti.db.backup")); !os.IsNotExist(err) {
		t.Errorf("the copy stays: %v", err)
	}
	copied, err := store.Open(t.Context(), store.Config{Dir: to})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = copied.Close(context.WithoutCancel(t.Context())) }()
	var before int
	var check string
	err = copied.Read().QueryRowContext(t.Context(), "SELECT count(*) FROM study WHERE id LIKE 'before-%'").Scan(&before)
	if err != nil || before != 50 {
		t.Errorf("%d studies, %v", before, err)
	}
	if err := copied.Read().QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&check); err != nil || check != "ok" {
		t.Errorf("%s, %v", check, err)
	}
}
