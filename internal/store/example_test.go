package store_test

import (
	"context"
	"fmt"
	"os"

	"tutti/internal/store"
)

func ExampleStore_Update() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s, err := store.Open(ctx, store.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)
	err = s.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO study (id, name, organization, description, created_at)
			VALUES ($1, $2, $3, '', 0)`, "S1", "First", "OICR")
		return store.WrapError("adding a study", err)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var name string
	err = s.Read().QueryRowContext(ctx, "SELECT name FROM study WHERE id = $1", "S1").Scan(&name)
	fmt.Println(name, err)
	// Output: First <nil>
}
