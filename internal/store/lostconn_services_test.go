//go:build services

package store_test

import (
	"context"
	"sync"
	"testing"

	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// TestPostgresRestart: after a restart of PostgreSQL, which closes every connection, each read and each transaction succeeds; a read
// that begins amid the restart waits for its end.
func TestPostgresRestart(t *testing.T) {
	const connections = 8
	relay, address := storetest.PostgresRelay(t)
	s := storetest.OpenConfig(t, store.Config{URL: address, MaxConnections: connections})
	row := func() error {
		var n int
		return s.Read().QueryRowContext(t.Context(), "SELECT count(*) FROM study").Scan(&n)
	}
	rows := func() error {
		rows, err := s.Read().QueryContext(t.Context(), "SELECT id FROM study")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
		}
		return rows.Err()
	}
	update := func() error {
		return s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE study SET created_at = created_at")
			return store.WrapError("changing studies", err)
		})
	}
	// useAll has all connections of the pool open and used within the last second, so that none is pinged for its age.
	useAll := func() {
		t.Helper()
		var all, work sync.WaitGroup
		all.Add(connections)
		for range connections {
			work.Go(func() {
				err := s.Update(t.Context(), func(context.Context, *store.Tx) error {
					all.Done()
					all.Wait()
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
	}
	for name, use := range map[string]func() error{"row": row, "rows": rows, "transaction": update} {
		t.Run(name, func(t *testing.T) {
			useAll()
			relay.Down()
			relay.Up()
			var work sync.WaitGroup
			for range 2 * connections {
				work.Go(func() {
					if err := use(); err != nil {
						t.Error(err)
					}
				})
			}
			work.Wait()
		})
	}
	for name, read := range map[string]func() error{"row amid it": row, "rows amid it": rows} {
		t.Run(name, func(t *testing.T) {
			useAll()
			relay.Down()
			ended := make(chan error)
			go func() { ended <- read() }()
			<-relay.Refused()
			relay.Up()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
