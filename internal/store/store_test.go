package store_test

import (
	"context"
	"testing"

	"tutti/internal/store"
)

func TestUpdate(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	err = s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO study (id, name, organization, description, created_at) VALUES ($1,$2,$2,$2,$3)", "S", "n", 1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := s.Read().QueryRowContext(t.Context(), "SELECT count(*) FROM study WHERE name = $1", "n").Scan(&n); err != nil || n != 1 {
		t.Fatal(n, err)
	}
}
